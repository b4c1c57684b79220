"""Managed landing tables whose declaration changes: what needs no row moved, and how it is stored."""
