"""Maintenance of our own tables: compaction, retention, VACUUM. It runs beside the follower, never in its thread."""
