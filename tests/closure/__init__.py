"""Every change of every kind of table has a way through: drawn, planned, followed where it is refused, judged."""
