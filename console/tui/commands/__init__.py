"""Keys, the palette, and what was run, as commands."""
