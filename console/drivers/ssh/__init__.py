"""Regions behind SSH: `reach` here, `far` over there; `connection` and `trust` are the door to asyncssh."""
