"""One decision for every door: which caches may answer, and why the others do not."""
