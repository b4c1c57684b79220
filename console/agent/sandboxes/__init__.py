"""Sandboxes: pending changes built beside live with their newest days, to be looked at and thrown away, or gone on with."""
