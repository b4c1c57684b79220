"""Spellings of one thing brought to one: conditions, choices, counts, and joins that keep fewer rows than they seem to."""
