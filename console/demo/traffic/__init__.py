"""The demo's traffic: history made from an access log, and producers that go on from there."""
