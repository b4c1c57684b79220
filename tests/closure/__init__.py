"""Every change of every kind of table has a plan or a remedy that leads to one: drawn, planned, refusals followed, judged."""
