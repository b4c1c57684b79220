"""The handover to the next shift: running and waiting rollouts, decisions with their deadlines, how to stop."""
