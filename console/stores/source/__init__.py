"""PostgreSQL, where the rows come from."""
