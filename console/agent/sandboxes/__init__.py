"""Sandboxes: pending changes built beside live with their newest days, for inspection, then dropped or continued by a rollout."""
