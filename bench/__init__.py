"""Benchmarks against the budgets of the design; `python -m bench` runs them (make bench)."""
