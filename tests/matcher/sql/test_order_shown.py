"""What a text shows of the order of a block's rows: averages of whole numbers."""

from __future__ import annotations

import pytest

from matcher.model.row_order import Shown
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

SCHEMA = "CREATE TABLE t (k INT NOT NULL, v BIGINT, p DECIMAL(9,2), s STRING)"
COUNTS = "SELECT k, COUNT(*) AS n FROM t GROUP BY k LIMIT 9"
NAMES = "SELECT s, SUM(p) AS q FROM t GROUP BY s LIMIT 9"


def shown(text: str) -> Shown:
    """Of the rows of the innermost block."""
    found: list[Shown] = []
    parse_query(text, Schema.parse(SCHEMA)).visit(
        lambda b: found.append(b.above) or False if b.block is not None else False
    )
    return found[-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"SELECT AVG(n) AS a FROM ({COUNTS})", Shown.AVERAGES),
        (f"SELECT k, MEAN(n) AS a FROM ({COUNTS}) GROUP BY k", Shown.AVERAGES),
        (f"SELECT MAX(n) AS a FROM ({COUNTS})", Shown.NOTHING),
        (f"SELECT AVG(q) AS a FROM ({NAMES})", Shown.NOTHING),
        ("SELECT k, AVG(v) OVER (PARTITION BY k) AS a FROM t", Shown.AVERAGES),
        ("SELECT k, AVG(k + 0.5) OVER () AS a, v FROM t", Shown.AVERAGES),
        ("SELECT k, AVG(p) OVER (PARTITION BY k) AS a FROM t", Shown.NOTHING),
        ("SELECT k, AVG(SUM(p)) OVER () AS a FROM t GROUP BY k", Shown.NOTHING),
        ("SELECT k, AVG(SUM(v)) OVER () AS a FROM t GROUP BY k", Shown.AVERAGES),
        ("SELECT k, SUM(p) OVER () AS a FROM t ORDER BY AVG(v) OVER ()", Shown.AVERAGES),
    ],
)
def test_averages_above(text: str, expected: Shown) -> None:
    assert shown(text) == expected
