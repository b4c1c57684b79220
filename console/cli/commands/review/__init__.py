"""Commands for the review of a change: the live state of regions, the effect of the change, the keys of landing data."""
