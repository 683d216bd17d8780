# ruff: noqa: E501 - tables of SQL read better unbroken
"""Averages are answered only where they are exact, whatever they are computed above."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark

BIG = f"INSERT INTO big VALUES (1, {1 << 52}, 3), (1, {1 << 52}, 4), (2, 1, 1)"


@pytest.fixture
def small(lab):
    """A table of whole numbers whose types alone bound no sum of many of them."""
    lab.plain.sql("CREATE TABLE big (k INT, v BIGINT, w INT) USING delta")
    lab.plain.sql("INSERT INTO big VALUES (1, 5, 1), (1, -7, 2), (2, NULL, 3), (3, 9, NULL)")
    return lab


def test_averages_over_rows_of_whole_numbers(small):
    small.cache("rows AS SELECT k, v, w FROM big")
    averages = [
        "AVG(v)",
        "AVG(v + w)",
        "AVG(DISTINCT v)",
        "AVG(coalesce(v, 0)) FILTER (WHERE k < 3)",
    ]
    for average in averages:
        small.hit(f"SELECT k, {average} AS a FROM big GROUP BY k")
    small.plain.sql("INSERT INTO big VALUES (1, 6, 2)")
    for average in averages:
        small.hit(f"SELECT k, {average} AS a FROM big GROUP BY k")
    small.sql("REFRESH RELATIONAL CACHE rows INCREMENTAL")
    small.hit("SELECT AVG(v + w) AS a FROM big")
    small.plain.sql(BIG)
    small.sql("REFRESH RELATIONAL CACHE rows INCREMENTAL")
    for average in averages:
        small.miss(f"SELECT k, {average} AS a FROM big GROUP BY k", "AVG_NOT_EXACT")
    small.hit("SELECT k, AVG(w) AS a FROM big GROUP BY k")
    small.hit("SELECT k, AVG(CAST(v AS DECIMAL(19,0))) AS a FROM big GROUP BY k")
    small.plain.sql("DELETE FROM big WHERE v > 1000")
    small.sql("REFRESH RELATIONAL CACHE rows FULL")
    small.hit("SELECT k, AVG(v) AS a FROM big GROUP BY k")


def test_averages_over_rows_and_a_table_joined_to_them(small):
    """What the refresh saw is of the stored rows, not of the table where it stands once more."""
    small.plain.sql(f"INSERT INTO big VALUES (4, {1 << 60}, NULL)")
    small.cache("rows AS SELECT k, v, w FROM big WHERE w IS NOT NULL")
    small.hit("SELECT AVG(v) AS a FROM big WHERE w IS NOT NULL")
    small.miss(
        "SELECT AVG(b.v) AS a FROM big a JOIN big b ON a.k = b.k WHERE a.w > 1", "AVG_NOT_EXACT"
    )


def test_averages_above_what_a_cache_gives(small):
    small.cache(
        "parts AS SELECT k, w, SUM(v) AS s, COUNT(*) AS n, MAX(v) AS m FROM big GROUP BY k, w"
    )
    counts = "SELECT k, COUNT(*) AS n FROM big GROUP BY k"
    sums = "SELECT k, SUM(v) AS s, MAX(v) AS m FROM big GROUP BY k"
    exact = [
        f"SELECT AVG(n) AS a FROM ({counts})",
        f"SELECT k, AVG(n) OVER () AS a FROM ({counts})",
        f"SELECT AVG(n) AS a FROM (SELECT k AS j, n FROM ({counts}) WHERE n > 1 LIMIT 5)",
    ]
    bounded = [
        f"SELECT AVG(s) AS a FROM ({sums})",
        f"SELECT k % 2 AS j, AVG(s) AS a, AVG(m) AS b FROM ({sums}) GROUP BY 1",
        f"SELECT k, AVG(m) OVER (ORDER BY k) AS a FROM ({sums})",
        "SELECT AVG(DISTINCT s - m) AS a FROM (SELECT k, SUM(v) AS s, MAX(v) AS m FROM big GROUP BY k)",
    ]
    for query in (*exact, *bounded[:3]):
        small.hit(query)
    small.plain.sql("INSERT INTO big VALUES (1, 6, 2)")
    for query in (*exact, *bounded[:3]):
        small.hit(query)
    small.plain.sql(BIG)
    for query in exact:
        small.hit(query)
    for query in bounded:
        small.miss(query, "AVG_NOT_EXACT")
    small.sql("REFRESH RELATIONAL CACHE parts")
    for query in exact:
        small.hit(query)
    for query in bounded:
        small.miss(query, "AVG_NOT_EXACT")


def test_averages_above_a_join_of_what_a_cache_gives(small):
    """A join may repeat rows, whatever is known of them."""
    small.cache("parts AS SELECT k, COUNT(*) AS n FROM big GROUP BY k")
    counts = "SELECT k, COUNT(*) AS n FROM big GROUP BY k"
    small.miss(f"SELECT AVG(n) AS a FROM ({counts}) CROSS JOIN sales", "AVG_NOT_EXACT")
    small.miss(f"SELECT AVG(n * k) AS a FROM ({counts}) WHERE n > 0", "AVG_NOT_EXACT")
    small.miss(f"SELECT AVG(n) AS a FROM ({counts} UNION ALL {counts})", "AVG_NOT_EXACT")
    small.hit(f"SELECT AVG(CAST(n AS DECIMAL(19,0))) AS a FROM ({counts}) WHERE n > 0")


CORRELATED = [
    "SELECT cid, (SELECT AVG(u) FROM large b WHERE b.k = cid) AS a FROM cust",
    "SELECT cid, (SELECT SUM(f) FROM large b WHERE b.k = cid) AS a FROM cust",
    "SELECT cid, (SELECT STDDEV(u) FROM large b WHERE b.k = cid) AS a FROM cust",
    "SELECT cid FROM cust WHERE cid < (SELECT AVG(u) FROM large b WHERE b.k = cid)",
    "SELECT cid, (SELECT AVG(n) FROM (SELECT k, j, SUM(u DIV 64) AS n FROM large GROUP BY k, j) b "
    "WHERE b.k = cid) AS a FROM cust",
]


@pytest.mark.parametrize("query", CORRELATED)
def test_what_spark_aggregates_above_a_correlated_subquery(lab, query: str):
    """It optimises the rows of the subquery apart from the aggregation over them."""
    lab.plain.sql("CREATE TABLE large (k INT, j INT, u BIGINT, f DOUBLE) USING delta")
    lab.plain.sql(
        "INSERT INTO large SELECT CAST(id % 3 + 1 AS INT), CAST(id % 40 AS INT), xxhash64(id), "
        "rand(3) FROM range(0, 4000, 1, 2)"
    )
    lab.cache("rows AS SELECT k, j, u, f FROM large")
    lab.cache("parts AS SELECT k, j, SUM(u DIV 64) AS n FROM large GROUP BY k, j")
    lab.miss(query)


def test_extremes_in_a_correlated_subquery_are_answered(lab):
    lab.cache("rows AS SELECT cust, amt, region FROM sales")
    lab.hit("SELECT cid, (SELECT MAX(amt) FROM sales WHERE cust = cid) AS a FROM cust")
    lab.hit("SELECT cid, (SELECT COUNT(*) FROM sales WHERE cust = cid) AS a FROM cust")
