"""What follows from the verdicts: the release to become live, the steps that build it, prices, and what the plan shows of it."""
