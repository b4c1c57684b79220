"""The pages, taken at their word: every command that they show is run as it stands there, or listed with the reason why not."""
