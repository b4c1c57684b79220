"""Parts of a plan's text: the overview of the groups, drift, owners, prices."""
