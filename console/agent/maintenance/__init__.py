"""Maintenance of managed tables: compaction, retention, VACUUM. It runs concurrently with the follower, never in its thread."""
