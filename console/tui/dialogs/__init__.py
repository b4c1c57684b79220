"""Questions before a deed: what they say is computed from the views, one dialog asks them all."""
