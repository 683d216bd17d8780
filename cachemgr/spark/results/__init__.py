"""Statements of the service: what they may read, how they run, and the files they become."""
