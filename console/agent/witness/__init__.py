"""Queries over rows that are sent with the request: no warehouse, no lock, nothing written."""
