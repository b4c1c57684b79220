"""Checks that go on while a rollout waits at its gate, and after its promotion: looks at both releases, round by round."""
