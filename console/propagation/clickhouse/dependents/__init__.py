"""Dependents of a ClickHouse table: its own indices, TTLs and projections, views, Buffer tables, dictionaries."""
