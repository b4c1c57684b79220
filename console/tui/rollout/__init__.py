"""Drawings of one rollout: its steps, its days, where its time went, its rates and its log."""
