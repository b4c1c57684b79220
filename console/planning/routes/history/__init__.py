"""The operator's choice for the rows that a table already holds: recomputed, copied unchanged, or split at a day."""
