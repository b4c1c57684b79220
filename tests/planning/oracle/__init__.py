"""Spark itself as the judge of what we read, send and call the same: its parser and its rows, never ours."""
