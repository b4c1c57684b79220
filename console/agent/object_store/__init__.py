"""Warehouses on an object store, as far as they are read (docs/stores.md)."""
