"""Regions behind SSH: `driver` on this side, `remote` on the host; only `connection` and `trust` use asyncssh."""
