"""Who is at the wheel: of a region (its lock) and of a rollout (its console)."""
