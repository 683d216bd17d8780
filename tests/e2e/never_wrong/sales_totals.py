"""The query that most tests of the contract ask, and a hit that may be of an earlier state."""

from __future__ import annotations

TOTALS = "SELECT region, SUM(amt) AS total FROM sales GROUP BY region"


def stale_hit(lab, query):
    """Run a query that a stale cache may answer: (was a hit, rows)."""
    before = lab.hits()
    rows = lab.sql(query)
    return lab.hits() > before, rows
