"""The stores that a PostgreSQL schema is carried into: what they hold, what they are asked to do, what was done there.

Clients are imported when a store is reached, never before.
"""
