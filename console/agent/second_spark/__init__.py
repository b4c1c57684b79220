"""The region's second Spark: a process of its own, which writes the data files of large builds and commits none of them."""
