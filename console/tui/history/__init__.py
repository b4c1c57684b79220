"""The history screen: rollouts of all regions, one rollout's decisions and receipts, and their verification."""
