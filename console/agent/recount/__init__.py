"""Rows and sums computed a second time by Delta's own reader, from pinned versions. This package checks the feeds, so
it must not share their reading code (a contract of the import linter)."""
