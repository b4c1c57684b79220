"""Proof of what a rollout did: written beside the data, and checked again whenever somebody asks."""
