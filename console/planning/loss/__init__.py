"""What a plan would lose, and what may be accepted: history, values, the way back."""
