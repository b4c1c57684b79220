"""Checks that go on while a rollout waits at its gate: a look at both releases by their logs, round by round."""
