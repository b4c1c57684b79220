"""Recorded calls of endpoints, run against the live release and the new one at one position."""
