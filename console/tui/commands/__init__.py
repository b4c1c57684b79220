"""Keys of the footer, typed commands, and what was run, as commands."""
