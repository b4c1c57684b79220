"""What one run of the planner has computed and the next one need not: compiled queries by their inputs, the rest by identity."""
