"""Managed landing tables whose declaration changes: changes that move no row, and the storage of each column."""
