"""The demo's traffic: history generated from an access log, and producers of live events."""
