"""Benchmarks against budgets; `python -m bench` runs them (make bench)."""
