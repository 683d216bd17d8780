"""What is drawn or numbered by the place of a row is no hit by text either: the rows of a cache
stand elsewhere (docs/matching.md)."""

from __future__ import annotations

import pytest

from cachemgr.text import offline

SCHEMA = "CREATE TABLE t (a INT, d INT, x INT NOT NULL)"
CACHE = "CREATE RELATIONAL CACHE c AS SELECT a, d, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY a, d;"
GROUPS = "SELECT a, d, SUM(x) AS s FROM t GROUP BY a, d"


def answer(query: str) -> offline.Answer:
    return offline.answer(offline.prepare(SCHEMA, CACHE), query)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a, rand(0) AS r FROM ({GROUPS}) q",
        f"SELECT a, s FROM ({GROUPS}) q ORDER BY random() LIMIT 3",
        f"WITH q AS ({GROUPS}) SELECT a, s FROM q WHERE randn(1) < 0.5",
        f"SELECT a, SUM(s) AS u, MAX(uuid()) AS id FROM ({GROUPS}) q GROUP BY a",
        f"SELECT s, monotonically_increasing_id() AS i FROM ({GROUPS}) q",
        f"SELECT a FROM (SELECT a, spark_partition_id() AS p FROM ({GROUPS}) q) r WHERE p = 0",
        f"SELECT * FROM ({GROUPS}) TABLESAMPLE (50 PERCENT)",
        f"WITH q AS ({GROUPS}) SELECT a, s FROM q TABLESAMPLE (5 ROWS)",
        f"WITH q AS ({GROUPS}) SELECT a, s FROM t JOIN q TABLESAMPLE (5 ROWS) USING (a)",
    ],
)
def test_noop_what_is_by_place(query: str) -> None:
    found = answer(query)
    assert not found.rewrites
    assert "NON_DETERMINISTIC" in {r.code.value for r in (*found.reasons, *found.refused)}


def test_what_is_the_same_wherever_a_row_stands_is_a_hit() -> None:
    found = answer(f"SELECT a, s, current_date() AS today FROM ({GROUPS}) q")
    assert [r.cache for r in found.rewrites] == ["c"]
