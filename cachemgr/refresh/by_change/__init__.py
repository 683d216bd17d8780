"""Refreshes by what changed alone: whether there is such a way, what it is expected to cost, the
rows that it adds, what is known of the cache after it, and why there is none."""
