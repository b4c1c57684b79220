"""A managed landing table changes its version: the intake is held, and the feed between the two turns round."""
