"""Maintenance of our own tables: compaction, retention, VACUUM. Runs beside the follower, never in its thread."""
