"""Rows and sums computed a second time by Delta's own reader, from pinned versions. This package checks the feeds, so it does
not read with their code (a contract of the import linter)."""
