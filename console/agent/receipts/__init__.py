"""Evidence of a rollout's results: written beside the data, verified on request."""
