"""Cleanup of a pipeline, at once or in two stages."""
