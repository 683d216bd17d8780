"""What counts as the same block, whichever door it came through."""

from __future__ import annotations

import pytest

from matcher.model.ir import Block
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema
from tests.matcher.equal_blocks import differences

SCHEMA = Schema.parse(
    "CREATE TABLE t (k INT, a INT NOT NULL, b INT); CREATE TABLE u (k INT NOT NULL, c INT)"
)


def block(text: str) -> Block:
    found = parse_query(text, SCHEMA).roots[0].block
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE b > 1", "SELECT a FROM t WHERE 1 < b AND b IS NOT NULL"),
        ("SELECT k FROM t GROUP BY k HAVING k > 1", "SELECT k FROM t WHERE k > 1 GROUP BY k"),
        ("SELECT COUNT(a) AS n FROM t", "SELECT COUNT(*) AS n FROM t"),
        ("SELECT t.k FROM t, u WHERE t.k = u.k", "SELECT u.k FROM u JOIN t ON u.k = t.k"),
        ("SELECT x.a FROM t x, t y WHERE x.b < y.b", "SELECT y.a FROM t x, t y WHERE x.b > y.b"),
        ("SELECT k, b FROM t GROUP BY k, b", "SELECT k, b FROM t GROUP BY b, k"),
    ],
)
def test_the_same(one: str, other: str) -> None:
    assert differences(block(one), block(other)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE b > 1", "SELECT a FROM t WHERE b >= 1"),
        ("SELECT a FROM t", "SELECT b AS a FROM t"),
        ("SELECT a, b FROM t", "SELECT b, a FROM t"),
        ("SELECT a FROM t", "SELECT a FROM t, u"),
        ("SELECT COUNT(b) AS n FROM t", "SELECT COUNT(*) AS n FROM t"),
        ("SELECT COUNT(*) AS n FROM t", "SELECT COUNT(*) AS n FROM t GROUP BY k"),
        ("SELECT k FROM t GROUP BY k", "SELECT k FROM t"),
        ("SELECT k FROM t GROUP BY k HAVING COUNT(*) > 1", "SELECT k FROM t GROUP BY k, a"),
        (
            "SELECT k, COUNT(*) AS n FROM t GROUP BY CUBE (k, b)",
            "SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k, b)",
        ),
    ],
)
def test_not_the_same(one: str, other: str) -> None:
    assert differences(block(one), block(other)) != []
    assert differences(block(other), block(one)) != []
