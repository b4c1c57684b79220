"""What the next shift must know: what runs, what waits and why, what has to be decided and by when, how to stop."""
