"""Catalyst's plans, as plain data, read into blocks."""
