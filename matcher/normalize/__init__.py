"""Blocks brought into one normal form, in which queries and caches are compared."""
