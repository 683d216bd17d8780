"""The caches by what they can answer: candidates for a query, and why the nearest ones miss."""
