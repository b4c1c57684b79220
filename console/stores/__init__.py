"""The stores to which a PostgreSQL schema is propagated: their tables, the migrations applied to them, their clients.

A client library is imported when its store is reached, never before.
"""
