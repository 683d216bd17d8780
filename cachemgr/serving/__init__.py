"""One decision for every door: which caches may answer, and why the others do not.

Nothing here needs Spark: sessions, REST and offline explain are served by the same code.
"""
