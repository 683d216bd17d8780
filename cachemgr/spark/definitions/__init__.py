"""What a definition means on Spark: its SELECT analysed, the caches that it names put in, what its
names stand for now, and what a cache that is not built would answer."""
