"""Evidence of what a rollout did: written beside the data, verified on request."""
