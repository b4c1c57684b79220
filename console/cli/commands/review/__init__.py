"""Commands for whoever reviews a change: what regions hold, what a change would do to them, what landing data carries."""
