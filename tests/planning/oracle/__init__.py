"""Spark itself as the judge of parsing, of compiled SQL and of equal queries: its parser and its rows, never ours."""
