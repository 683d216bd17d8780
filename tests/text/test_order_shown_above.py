"""What a text has above a block that shows in which order its rows come: sums of FLOAT and DOUBLE
values, and what is drawn or numbered by the place of a row (matcher/model/row_order.py)."""

from __future__ import annotations

import pytest

from cachemgr.text import offline

SCHEMA = """CREATE TABLE t (a INT, d INT, x INT NOT NULL, p DECIMAL(10,2) NOT NULL);
CREATE TABLE u (a INT, f DOUBLE, g DECIMAL(10,2), k INT, s FLOAT)"""
CACHE = """CREATE RELATIONAL CACHE c AS
SELECT a, d, SUM(x) AS s, COUNT(*) AS n, SUM(p) AS p FROM t GROUP BY a, d;"""
GROUPS = "(SELECT a, d, SUM(x) AS s, COUNT(*) AS n, SUM(p) AS p FROM t GROUP BY a, d) q"
PLAIN = "SELECT a, d, SUM(x) AS s FROM t GROUP BY a, d"
WHOLE = f"({PLAIN}) q"


def answer(query: str) -> offline.Answer:
    return offline.answer(offline.prepare(SCHEMA, CACHE), query)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a, SUM(s / n) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(CAST(s AS DOUBLE)) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(DOUBLE(s)) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(s * 1e0) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(s * 0.1D) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(SQRT(n)) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(my_function(n)) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(r) AS r FROM (SELECT a, s / n AS r FROM {GROUPS}) w GROUP BY a",
        f"SELECT a, SUM(s) OVER (ORDER BY d) AS r FROM (SELECT a, d, s / n AS s FROM {GROUPS}) w",
        f"SELECT q.a, SUM(f) AS r FROM {GROUPS} JOIN u ON q.a = u.a GROUP BY q.a",
        f"SELECT q.a, SUM(u.s) AS r FROM {GROUPS}, u WHERE q.a = u.a GROUP BY q.a",
        f"SELECT q.a, AVG(k) AS r FROM {WHOLE} LEFT JOIN u ON q.a = u.a GROUP BY q.a",
        f"SELECT a, SUM(r) AS r FROM (SELECT q.a, n, f AS r FROM {GROUPS} JOIN u ON q.a = u.a) w "
        "GROUP BY a",
        f"SELECT a, SUM(r) FROM (SELECT q.a, k AS r FROM {GROUPS} JOIN u USING (a)) w GROUP BY a",
        f"SELECT SUM(m) FROM (SELECT a, AVG(s) AS m FROM {WHOLE} GROUP BY a) w",
    ],
)
def test_noop_floats_are_made_and_added_above(query: str) -> None:
    found = answer(query)
    assert not found.rewrites
    told = {r.code.value for r in (*found.reasons, *found.refused)}
    assert told & {
        "FLOAT_NOT_EXACT",
        "AVG_NOT_EXACT",
        "NON_DETERMINISTIC",
        "UNSUPPORTED_EXPRESSION",
    }


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a, SUM(s) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(s * 2 + n) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(CASE WHEN n > 1 THEN COALESCE(s, 0) END) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(p * 0.1) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, SUM(CAST(s AS DECIMAL(30,2))) AS r FROM {GROUPS} GROUP BY a",
        f"SELECT a, s / n AS r FROM {GROUPS}",
        f"SELECT q.a, SUM(g) AS r, SUM(n) AS n FROM {GROUPS} JOIN u ON q.a = u.a GROUP BY q.a",
        f"SELECT q.a, SUM(k) AS r FROM {GROUPS} JOIN u ON q.a = u.a GROUP BY q.a",
        f"SELECT f, n FROM {GROUPS} JOIN u ON q.a = u.a",
        f"SELECT a, MAX(s / n) AS r, SUM(s) AS u FROM {GROUPS} GROUP BY a",
        f"SELECT a, s / n AS r, SUM(s) OVER (PARTITION BY a) AS u FROM {GROUPS}",
    ],
)
def test_sums_of_exact_numbers_above_are_hits(query: str) -> None:
    assert [r.cache for r in answer(query).rewrites] == ["c"]


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a, rand(0) AS r FROM {WHOLE}",
        f"SELECT a, s FROM {WHOLE} ORDER BY random() LIMIT 3",
        f"WITH q AS ({PLAIN}) SELECT a, s FROM q WHERE randn(1) < 0.5",
        f"SELECT a, SUM(s) AS u, MAX(uuid()) AS id FROM {WHOLE} GROUP BY a",
        f"SELECT s, monotonically_increasing_id() AS i FROM {WHOLE}",
        f"SELECT a FROM (SELECT a, spark_partition_id() AS p FROM {WHOLE}) r WHERE p = 0",
        f"SELECT * FROM ({PLAIN}) TABLESAMPLE (50 PERCENT)",
        f"WITH q AS ({PLAIN}) SELECT a, s FROM q TABLESAMPLE (5 ROWS)",
        f"WITH q AS ({PLAIN}) SELECT a, s FROM t JOIN q TABLESAMPLE (5 ROWS) USING (a)",
    ],
)
def test_noop_what_is_by_place(query: str) -> None:
    found = answer(query)
    assert not found.rewrites
    assert "NON_DETERMINISTIC" in {r.code.value for r in (*found.reasons, *found.refused)}


def test_what_is_the_same_wherever_a_row_stands_is_a_hit() -> None:
    found = answer(f"SELECT a, s, current_date() AS today FROM {WHOLE}")
    assert [r.cache for r in found.rewrites] == ["c"]
