"""Expressions of SQL texts: names, types and functions as Spark resolves them."""
