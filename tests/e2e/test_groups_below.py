# ruff: noqa: E501 - tables of SQL read better unbroken
"""Caches whose definition joins, filters or groups the groups of a subquery, through Spark."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F

import cachemgr
from cachemgr.errors import CacheManagerError, DefinitionError
from cachemgr.text import offline

pytestmark = pytest.mark.spark

TOTALS = "(SELECT cust, SUM(amt) AS total, COUNT(*) AS n FROM sales GROUP BY cust)"
ROWS = f"r AS SELECT c.cid, c.city, c.nation, g.total, g.n FROM cust c JOIN {TOTALS} g ON c.cid = g.cust"
LEFT = f"l AS SELECT c.cid, c.city, g.cust, g.total, g.n FROM cust c LEFT JOIN {TOTALS} g ON c.cid = g.cust"
SALES = f"s AS SELECT s.region, s.cust, g.n AS orders, SUM(s.amt) AS amt, COUNT(*) AS n FROM sales s JOIN {TOTALS} g ON s.cust = g.cust GROUP BY s.region, s.cust, g.n"
OF_GROUPS = f"o AS SELECT n, COUNT(*) AS custs, SUM(total) AS amt FROM {TOTALS} g GROUP BY n"


def joined(out: str, rest: str = "", groups: str = TOTALS, kind: str = "JOIN") -> str:
    return f"SELECT {out} FROM cust c {kind} {groups} g ON c.cid = g.cust{rest}"


def ways(lab, name: str) -> str:
    return " ".join(str(row) for row in lab.sql(f"EXPLAIN REFRESH {name}"))


def way_of(lab, name: str) -> tuple[str, str | None]:
    with lab.metastore() as store:
        cache = next(c for c in store.caches.all() if c.name == name)
        account = store.refreshes.of(cache.id, limit=1)[0].account
    return account.way, account.code


def test_rows_joined_to_groups(lab):
    lab.cache(ROWS)
    lab.hit(joined("c.city, g.total"))
    lab.hit(joined("c.city, g.total", " WHERE g.total > 20 AND c.nation = 'Italy'"))
    lab.hit(joined("c.city", " WHERE c.cid = 2"))
    lab.hit(
        joined(
            "c.city",
            groups="(SELECT cust FROM sales WHERE cust < 3 GROUP BY cust HAVING COUNT(*) > 1)",
        )
    )
    lab.hit(
        "WITH g AS (SELECT cust AS k, SUM(amt) AS t FROM sales GROUP BY cust) SELECT city, t * 2 AS t2 FROM g, cust WHERE k = cid ORDER BY t2 LIMIT 2"
    )
    lab.miss(
        joined(
            "c.city, g.total",
            groups="(SELECT cust, region, SUM(amt) AS total FROM sales GROUP BY cust, region)",
        )
    )
    lab.miss(
        joined(
            "c.city, g.total",
            groups="(SELECT cust, SUM(amt) AS total FROM sales WHERE region = 'north' GROUP BY cust)",
        )
    )
    lab.miss(
        joined(
            "c.city, g.total",
            groups="(SELECT cust, SUM(amt) AS total FROM sales WHERE region = 'south' GROUP BY cust)",
            kind="LEFT JOIN",
        )
    )


def test_the_shapes_of_a_dataframe(lab):
    lab.cache(ROWS)

    def query(spark):
        sales, cust = spark.table("sales"), spark.table("cust")
        totals = sales.groupBy("cust").agg(F.sum("amt").alias("t"), F.count("*").alias("k"))
        return cust.join(totals, cust.cid == totals.cust).where("k > 2").select("city", "t")

    before = lab.hits()
    got = sorted(map(tuple, query(lab.spark).collect()))
    assert lab.hits() == before + 1
    assert got == sorted(map(tuple, query(lab.plain).collect()))


def test_groups_that_some_rows_do_not_find(lab):
    lab.plain.sql("INSERT INTO cust VALUES (9, 'Nice', NULL)")
    lab.cache(LEFT)
    lab.hit(joined("c.city, g.total", kind="LEFT JOIN"))
    lab.hit(joined("c.city, coalesce(g.n, 0) AS n", kind="LEFT JOIN"))
    lab.hit(joined("c.city", " WHERE g.cust IS NULL", kind="LEFT JOIN"))
    lab.hit(joined("c.city, g.total"))
    lab.hit(
        "SELECT c.city, (SELECT SUM(amt) FROM sales s WHERE s.cust = c.cid) AS total FROM cust c"
    )
    lab.hit("SELECT city, COUNT(*) AS n FROM cust GROUP BY city")


def test_a_left_join_onto_one_row(lab):
    lab.plain.sql("CREATE TABLE none (k INT, v BIGINT) USING delta")
    lab.cache(
        "e AS SELECT c.city, g.n, g.v FROM cust c LEFT JOIN (SELECT COUNT(*) AS n, SUM(v) AS v FROM none) g ON TRUE"
    )
    rows = lab.hit(
        "SELECT c.city, g.n, g.v FROM cust c LEFT JOIN (SELECT COUNT(*) AS n, SUM(v) AS v FROM none) g ON TRUE"
    )
    assert {(row.n, row.v) for row in rows} == {(0, None)} and len(rows) == 3
    lab.miss(
        "SELECT c.cid, g.n FROM cust c LEFT JOIN (SELECT k, COUNT(*) AS n FROM none GROUP BY k) g ON TRUE"
    )


def test_groups_above_groups(lab):
    lab.cache(SALES)
    lab.cache(OF_GROUPS)
    lab.hit(
        f"SELECT s.region, SUM(s.amt) AS amt FROM sales s JOIN {TOTALS} g ON s.cust = g.cust GROUP BY s.region"
    )
    lab.hit(
        f"SELECT g.n, COUNT(*) AS k FROM sales s JOIN {TOTALS} g ON s.cust = g.cust WHERE s.region IS NOT NULL GROUP BY g.n HAVING COUNT(*) > 1"
    )
    lab.hit(f"SELECT COUNT(*) AS custs FROM {TOTALS} g")
    lab.hit(f"SELECT n, SUM(total) AS amt FROM {TOTALS} g WHERE n > 2 GROUP BY n")
    lab.hit("SELECT DISTINCT n FROM (SELECT cust, COUNT(*) AS n FROM sales GROUP BY cust) g")
    lab.miss(
        "SELECT n, COUNT(*) AS k FROM (SELECT cust, region, COUNT(*) AS n FROM sales GROUP BY cust, region) g GROUP BY n"
    )


def test_a_stored_grouping_stands_for_the_groups_below(lab):
    lab.cache(
        "g AS SELECT cust, region, SUM(amt) AS total, COUNT(*) AS n FROM sales GROUP BY cust, region"
    )
    lab.hit(joined("c.city, g.total"))
    lab.cache(ROWS)
    explained = cachemgr.explain(lab.spark, joined("c.city, g.total"))
    assert "r" in explained.text()


def test_a_change_of_the_inner_side_is_seen(lab):
    """Of a table that is only read below groups, and of one that is read above them, too."""
    lab.cache(ROWS)
    lab.cache(SALES)
    query = joined("c.city, g.total")
    lab.hit(query)
    lab.plain.sql("INSERT INTO sales VALUES (20, NULL, 'north', 1, 500, 1, 1, 1)")
    lab.miss(query, "DELTA_NOT_LINEAR")
    lab.miss(
        f"SELECT s.region, SUM(s.amt) AS amt FROM sales s JOIN {TOTALS} g ON s.cust = g.cust GROUP BY s.region"
    )
    assert "DELTA_NOT_LINEAR" in ways(lab, "r")
    with pytest.raises(CacheManagerError, match="DELTA_NOT_LINEAR"):
        lab.sql("REFRESH RELATIONAL CACHE r INCREMENTAL ONLY")
    lab.sql("REFRESH RELATIONAL CACHE r")
    assert way_of(lab, "r") == ("FULL", "DELTA_NOT_LINEAR")
    lab.hit(query)
    lab.plain.sql("DELETE FROM sales WHERE id = 20")
    lab.miss(query)
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(query)


def test_rows_appended_to_the_outer_side_are_added(lab):
    lab.cache(ROWS)
    lab.cache(
        f"a AS SELECT c.nation, SUM(g.total) AS total, COUNT(*) AS n FROM cust c JOIN {TOTALS} g ON c.cid = g.cust GROUP BY c.nation"
    )
    by_nation = joined("c.nation, SUM(g.total) AS total", " GROUP BY c.nation")
    lab.plain.sql("INSERT INTO sales VALUES (20, NULL, 'north', 7, 500, 1, 1, 1)")
    for name in ("r", "a"):
        lab.sql(f"REFRESH RELATIONAL CACHE {name}")
    lab.plain.sql("INSERT INTO cust VALUES (7, 'Lima', 'Peru')")
    lab.miss(joined("c.city, g.total"), "DELTA_NOT_LINEAR")
    for name, way in (("r", "APPEND"), ("a", "REPLACE")):
        lab.sql(f"REFRESH RELATIONAL CACHE {name} INCREMENTAL ONLY")
        assert way_of(lab, name) == (way, None)
    rows = lab.hit(joined("c.city, g.total"))
    assert ("Lima", 500) in map(tuple, rows)
    lab.hit(by_nation)
    lab.plain.sql("DELETE FROM cust WHERE cid = 7")
    lab.sql("REFRESH RELATIONAL CACHE a")
    lab.hit(by_nation)


def test_the_right_side_of_a_left_join_is_computed_anew(lab):
    lab.cache(LEFT)
    lab.plain.sql("INSERT INTO sales VALUES (20, NULL, 'north', 2, 500, 1, 1, 1)")
    lab.sql("REFRESH RELATIONAL CACHE l")
    assert way_of(lab, "l") == ("FULL", "DELTA_NOT_LINEAR")
    lab.hit(joined("c.city, g.total", kind="LEFT JOIN"))


def test_the_ways_of_its_refreshes_are_told(lab):
    rows = lab.sql(f"EXPLAIN CREATE RELATIONAL CACHE {ROWS}")
    told = " ".join(str(row) for row in rows)
    assert "sales is read below groups: a row appended to it changes groups that were there" in told
    assert "APPEND" in told


def test_a_view_below_that_is_changed(lab):
    lab.plain.sql("CREATE VIEW totals AS SELECT cust, SUM(amt) AS total FROM sales GROUP BY cust")
    lab.cache("v AS SELECT c.city, g.total FROM cust c JOIN totals g ON c.cid = g.cust")
    query = "SELECT c.city, g.total FROM cust c JOIN totals g ON c.cid = g.cust"
    lab.hit(query)
    lab.plain.sql(
        "CREATE OR REPLACE VIEW totals AS SELECT cust, MAX(amt) AS total FROM sales GROUP BY cust"
    )
    lab.miss(query)
    lab.sql("REFRESH RELATIONAL CACHE v")
    lab.hit(query)


def test_over_another_cache(lab):
    lab.cache(
        "t AS SELECT cust, region, SUM(amt) AS total, COUNT(*) AS n FROM sales GROUP BY cust, region"
    )
    lab.cache("two AS SELECT c.city, t.region, t.total FROM cust c JOIN t ON c.cid = t.cust")
    lab.cache("three AS SELECT n, COUNT(*) AS k FROM t GROUP BY n")
    lab.hit(
        "SELECT c.city, x.total FROM cust c JOIN (SELECT cust, region, SUM(amt) AS total FROM sales GROUP BY cust, region) x ON c.cid = x.cust WHERE x.region = 'north'"
    )
    lab.sql("ALTER RELATIONAL CACHE t DISABLE REWRITE")
    lab.hit(
        "SELECT n, COUNT(*) AS k FROM (SELECT cust, region, COUNT(*) AS n FROM sales GROUP BY cust, region) x GROUP BY n"
    )


def test_whoever_may_not_read_what_is_below_gets_nothing(lab):
    lab.cache(ROWS)
    query = joined("c.city, g.total")
    lab.hit(query)
    lab.sql("RESTRICT BASE TABLE sales")
    lab.miss(query)
    lab.sql("UNRESTRICT BASE TABLE sales")
    lab.hit(query)


def test_settings_that_matter_below_groups(lab):
    lab.cache(
        "d AS SELECT c.city, g.k FROM cust c JOIN (SELECT cust, MAX(CAST(day AS TIMESTAMP)) AS k FROM sales GROUP BY cust) g ON c.cid = g.cust"
    )
    query = "SELECT c.city, g.k FROM cust c JOIN (SELECT cust, MAX(CAST(day AS TIMESTAMP)) AS k FROM sales GROUP BY cust) g ON c.cid = g.cust"
    lab.hit(query)
    with lab.conf(**{"spark__sql__session__timeZone": "Asia/Tokyo"}):
        lab.miss(query, "SETTINGS_DIFFER")


def test_a_column_below_that_is_gone(lab):
    lab.plain.sql("ALTER TABLE sales SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lab.cache(ROWS)
    lab.plain.sql("ALTER TABLE sales DROP COLUMN amt")
    with pytest.raises(CacheManagerError, match="amt"):
        lab.sql("REFRESH RELATIONAL CACHE r FULL")


def test_what_is_still_refused(lab):
    for text, words in (
        (
            f"x AS SELECT c.city, g.total, COUNT(*) AS n FROM cust c JOIN {TOTALS} g ON c.cid = g.cust GROUP BY CUBE (c.city, g.total)",
            "GROUPING SETS over groups",
        ),
        (
            "x AS SELECT c.city FROM cust c JOIN (SELECT cust, SUM(weight) AS w FROM sales GROUP BY cust) g ON c.cid = g.cust AND g.w > 1",
            "may come out differently",
        ),
        (
            "x AS SELECT c.city FROM cust c JOIN (SELECT weight, COUNT(*) AS n FROM sales GROUP BY weight) g ON c.cid = g.n",
            "equal values may differ",
        ),
    ):
        with pytest.raises(DefinitionError, match=words):
            lab.sql(f"CREATE RELATIONAL CACHE {text}")


def test_what_would_be_answered_is_what_is(lab):
    queries = [
        joined("c.city, g.total"),
        joined("c.city, g.total", " WHERE g.n > 2"),
        joined("c.city, g.x", groups="(SELECT cust, MIN(amt) AS x FROM sales GROUP BY cust)"),
    ]
    told = cachemgr.would_answer(lab.spark, f"CREATE RELATIONAL CACHE {ROWS}", queries)
    assert [one.hit for one in told] == [True, True, False]
    schema = "CREATE TABLE sales (id BIGINT NOT NULL, day DATE, region STRING, cust INT, amt BIGINT, cost BIGINT); CREATE TABLE cust (cid INT NOT NULL, city STRING, nation STRING);"
    found = [
        offline.explain(schema, f"CREATE RELATIONAL CACHE {ROWS};", query)["hit"]
        for query in queries
    ]
    assert found == [True, True, False]
    lab.cache(ROWS)
    for query, hit in zip(queries, found, strict=True):
        lab.check(query, hit)


def test_the_stored_plan_names_all_base_tables(lab):
    lab.cache(ROWS)
    with lab.metastore() as store:
        (cache,) = store.caches.all()
    assert len(json.loads(json.dumps(cache.plan["relations"]))) == 2
