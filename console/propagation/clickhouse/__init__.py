"""A generic migration as ClickHouse statements: its types, its views, and everything that depends on a table."""
