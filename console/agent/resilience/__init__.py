"""Retries, throttles, quarantine, and the health of feeds."""
