"""Queries over rows that come with the question: no warehouse, no lock, nothing written."""
