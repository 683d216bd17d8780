"""Queries and caches that grow, to see how the work of a decision grows with them."""
