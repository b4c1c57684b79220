"""Keys of the footer, typed commands, and the log of commands that were run."""
