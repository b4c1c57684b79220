"""What happened: rollouts of all regions, who did what in one, its receipts, and their verification."""
