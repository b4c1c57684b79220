"""Results that a planner run can reuse: compiled queries keyed by their inputs, everything else by identity."""
