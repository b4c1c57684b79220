"""The operator's choice for the rows that a table already holds: recomputed, copied as they are, or cut at a day."""
