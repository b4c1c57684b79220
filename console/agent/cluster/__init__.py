"""A Spark whose tasks run in executors: its size, the settings chosen by it, and what its executors must share."""
