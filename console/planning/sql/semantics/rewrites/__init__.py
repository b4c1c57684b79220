"""Rewrites of equivalent spellings to one form: conditions, choices, counts, and outer joins that are inner ones in effect."""
