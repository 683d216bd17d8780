"""Spark SQL texts read into blocks."""
