"""Rewrites as SQL text."""
