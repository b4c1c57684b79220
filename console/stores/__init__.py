"""The stores that a PostgreSQL schema is carried into: their tables, the migrations applied to them, their clients.

A client library is imported when its store is reached, never before.
"""
