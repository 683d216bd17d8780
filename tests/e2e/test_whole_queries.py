# ruff: noqa: E501 - tables of SQL read better unbroken
"""Whole queries through Spark: each block inside them is answered on its own, with the rows of the
original.
"""

from __future__ import annotations

import pytest

import cachemgr
from cachemgr.errors import CacheManagerError

pytestmark = pytest.mark.spark

CUBE = "c AS SELECT region, day, cust, SUM(amt) AS s, COUNT(*) AS n, MAX(amt) AS m FROM sales GROUP BY region, day, cust"
SERVED = {
    "a CTE used once": "WITH x AS (SELECT region, SUM(amt) AS s FROM sales GROUP BY region) SELECT * FROM x WHERE s > 20",
    "a CTE used twice": "WITH x AS (SELECT region, SUM(amt) AS s FROM sales GROUP BY region) SELECT a.region, b.s FROM x a JOIN x b ON a.region = b.region",
    "groups of groups": "SELECT n, COUNT(*) AS k FROM (SELECT cust, COUNT(*) AS n FROM sales GROUP BY cust) x GROUP BY n",
    "a FROM-subquery joined with a table": "SELECT c.city, x.s FROM (SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust) x JOIN cust c ON x.cust = c.cid",
    "IN": "SELECT city FROM cust WHERE cid IN (SELECT cust FROM sales WHERE region = 'north' GROUP BY cust)",
    "NOT IN": "SELECT city FROM cust WHERE cid NOT IN (SELECT cust FROM sales WHERE region = 'west' GROUP BY cust)",
    "EXISTS": "SELECT city FROM cust WHERE EXISTS (SELECT SUM(amt) FROM sales GROUP BY region HAVING COUNT(*) > 2)",
    "a scalar subquery": "SELECT city, (SELECT MAX(amt) FROM sales) AS m FROM cust",
    "a scalar subquery in WHERE": "SELECT city FROM cust WHERE cid < (SELECT COUNT(*) FROM sales)",
    "a scalar subquery of a CTE": "WITH x AS (SELECT region, SUM(amt) AS s FROM sales GROUP BY region) SELECT city FROM cust WHERE cid < (SELECT MAX(s) FROM x)",
    "a scalar subquery in another": "SELECT (SELECT MIN(city) FROM cust WHERE cid < (SELECT COUNT(*) FROM sales)) AS c",
    "a scalar subquery in EXISTS": "SELECT city FROM cust WHERE EXISTS (SELECT 1 FROM cust c WHERE c.cid = cust.cid AND c.cid < (SELECT COUNT(*) FROM sales))",
    "IN in the select list": "SELECT city, cid IN (SELECT cust FROM sales WHERE region = 'north') AS x FROM cust",
    "EXISTS in the select list": "SELECT city, EXISTS (SELECT 1 FROM sales WHERE cust = cid) AS x FROM cust",
    "IN in the condition of an outer join": "SELECT a.city FROM cust a LEFT JOIN cust b ON a.cid = b.cid AND a.cid IN (SELECT cust FROM sales)",
    "a correlated scalar subquery": "SELECT city, (SELECT SUM(amt) FROM sales WHERE cust = cid) AS s FROM cust",
    "UNION ALL": "SELECT region AS k, SUM(amt) AS s FROM sales GROUP BY region UNION ALL SELECT CAST(cust AS STRING), SUM(amt) FROM sales GROUP BY cust",
    "UNION": "SELECT COUNT(*) AS n FROM sales GROUP BY region UNION SELECT COUNT(*) FROM sales GROUP BY cust",
    "INTERSECT": "SELECT COUNT(*) AS n FROM sales GROUP BY region INTERSECT SELECT COUNT(*) FROM sales GROUP BY cust",
    "EXCEPT": "SELECT COUNT(*) AS n FROM sales GROUP BY day EXCEPT SELECT COUNT(*) FROM sales GROUP BY cust",
    "EXCEPT ALL": "SELECT COUNT(*) AS n FROM sales GROUP BY day EXCEPT ALL SELECT COUNT(*) FROM sales GROUP BY cust",
    "a window over groups": "SELECT region, SUM(amt) AS s, RANK() OVER (ORDER BY SUM(amt) DESC) AS r FROM sales GROUP BY region",
    "DISTINCT above groups": "SELECT DISTINCT COUNT(*) AS n FROM sales GROUP BY region, day",
    "ORDER BY and LIMIT": "SELECT region, SUM(amt) AS s FROM sales GROUP BY region ORDER BY s DESC, region LIMIT 2",
    "OFFSET": "SELECT day, COUNT(*) AS n FROM sales GROUP BY day ORDER BY day LIMIT 3 OFFSET 1",
    "LIMIT above UNION ALL": "SELECT COUNT(*) AS n FROM (SELECT region FROM sales GROUP BY region UNION ALL SELECT city FROM cust LIMIT 4) x",
    "LIMIT above an outer join": "SELECT COUNT(*) AS n FROM (SELECT x.s, c.city FROM (SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust) x LEFT JOIN cust c ON x.cust = c.cid LIMIT 2) y",
    "a letter as an escape character": "SELECT region AS k, SUM(amt) AS s FROM sales GROUP BY region UNION ALL SELECT city, cid FROM cust WHERE city LIKE 'B_%' ESCAPE 'q'",
    "a view": "SELECT region, s FROM per_region WHERE s > 20",
}


def test_every_block_of_a_query(lab):
    lab.plain.sql(
        "CREATE VIEW per_region AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    )
    lab.cache(CUBE)
    wrong = {}
    for title, query in SERVED.items():
        try:
            lab.hit(query)
        except AssertionError as error:
            wrong[title] = str(error)
    assert not wrong
    told = {title: cachemgr.explain(lab.spark, query).caches for title, query in SERVED.items()}
    assert told == dict.fromkeys(SERVED, (f"{lab.schema}.c",))


def test_a_scalar_subquery_that_misses_says_why(lab):
    lab.cache(CUBE)
    found = cachemgr.explain(lab.spark, "SELECT city, (SELECT SUM(cost) FROM sales) AS c FROM cust")
    codes = {reason.code.value for reason in found.reasons}
    assert not found.hit and "AGG_NOT_DERIVABLE" in codes, found.text()


def test_explain_says_what_is_of_a_subquery(lab):
    lab.cache(CUBE)
    query = "SELECT id FROM sales WHERE amt > (SELECT MAX(amt) - 5 FROM sales)"
    rows = [tuple(row) for row in lab.sql(f"EXPLAIN REWRITE {query}")]
    assert rows[0] == ("result", "hit, by subqueries alone")
    at = rows.index(("subquery 1", "hit"))
    assert not any(item in ("cache", "rewritten SQL") for item, _ in rows[:at])
    told = dict(rows[at:])
    assert told["subquery 1: cache"] == f"{lab.schema}.c"
    assert "`c`" in told["subquery 1: rewritten SQL"]
    both = "SELECT region, SUM(amt) / (SELECT SUM(amt) FROM sales) AS x FROM sales GROUP BY region"
    rows = [tuple(row) for row in lab.sql(f"EXPLAIN REWRITE {both}")]
    assert rows[:2] == [("result", "hit"), ("cache", f"{lab.schema}.c")]
    assert ("subquery 1", "hit") in rows


def test_each_part_is_explained_by_the_tables_that_it_reads(lab):
    lab.cache(CUBE)
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'east', 3, 500, 1, 1.00, 0.0)")
    lab.sql("REFRESH RELATIONAL CACHE c")
    query = "SELECT (SELECT SUM(amt) FROM sales VERSION AS OF 1) AS a, (SELECT SUM(amt) FROM sales) AS b"
    lab.hit(query)
    found = cachemgr.explain(lab.spark, query)
    assert [part.hit for part in found.subqueries] == [False, True], found.text()


def test_what_is_never_rewritten_is_not_told_as_a_hit(lab):
    lab.cache(CUBE)
    grouped = "SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    kept = lab.spark.sql(grouped).cache()
    try:
        assert not cachemgr.explain(lab.spark, grouped).hit
        assert not cachemgr.explain(lab.spark, kept).hit
    finally:
        kept.unpersist(blocking=True)
    assert cachemgr.explain(lab.spark, grouped).hit
    stream = lab.spark.readStream.table("sales").join(lab.spark.sql(grouped), "region")
    found = cachemgr.explain(lab.spark, stream)
    assert not found.hit and "is a stream" in found.text()


def test_rows_from_a_cache_without_groups(lab):
    lab.cache("p AS SELECT region, day, amt, cust FROM sales WHERE amt IS NOT NULL")
    lab.hit("SELECT region, amt FROM sales WHERE amt > 10")
    lab.hit("SELECT region, SUM(amt) AS s FROM sales WHERE amt > 0 GROUP BY region")
    lab.hit(
        "SELECT region, amt, SUM(amt) OVER (PARTITION BY region) AS w FROM sales WHERE amt > 10"
    )
    lab.miss("SELECT region, amt FROM sales", "PREDICATE_NOT_CONTAINED")
    lab.miss("SELECT region, cost FROM sales WHERE amt > 10", "COLUMN_NOT_IN_CACHE")


TOP = "SELECT id, region, amt FROM sales WHERE cust < 3"
ORDER = "ORDER BY amt DESC NULLS LAST, id"


def test_the_first_rows(lab):
    lab.cache(f"t AS {TOP} {ORDER} LIMIT 4")
    for query in (
        f"{TOP} {ORDER} LIMIT 4",
        f"{TOP} {ORDER} LIMIT 2 OFFSET 2",
        "SELECT region FROM sales WHERE cust < 3 ORDER BY amt DESC NULLS LAST, id LIMIT 3",
        f"SELECT SUM(amt) AS s FROM ({TOP} {ORDER} LIMIT 3) x",
        f"SELECT id + 1 AS x FROM ({TOP} {ORDER} LIMIT 3) x ORDER BY x",
    ):
        lab.hit(query)
    for query in (
        f"{TOP} {ORDER} LIMIT 5",
        f"{TOP} {ORDER} LIMIT 2 OFFSET 3",
        f"{TOP} {ORDER}",
        f"{TOP} AND region = 'north' {ORDER} LIMIT 2",
        f"{TOP} ORDER BY amt, id LIMIT 2",
        f"{TOP} ORDER BY amt DESC NULLS FIRST, id LIMIT 2",
        f"{TOP} ORDER BY id LIMIT 2",
        "SELECT DISTINCT region, amt FROM sales WHERE cust < 3 ORDER BY amt DESC NULLS LAST LIMIT 3",
        "SELECT MAX(amt) AS m FROM sales WHERE cust < 3 LIMIT 1",
        "SELECT id, amt FROM sales WHERE cust < 3 ORDER BY cost DESC NULLS LAST, id LIMIT 2",
    ):
        lab.miss(query)
    any_two = f"{TOP} LIMIT 2"  # which rows is Spark's to choose
    assert cachemgr.explain(lab.spark, any_two).hit
    found, whole = lab.spark.sql(any_two).collect(), lab.plain.sql(TOP).collect()
    assert len(found) == 2 and set(found) <= set(whole)
    assert not cachemgr.explain(lab.spark, f"{TOP} LIMIT 5").hit
    assert "LIMIT_NOT_CONTAINED" in lab.codes(f"{TOP} {ORDER} LIMIT 5")


def test_the_first_groups(lab):
    lab.cache(
        "t AS SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust ORDER BY s DESC, cust LIMIT 2"
    )
    lab.hit("SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust ORDER BY s DESC, cust LIMIT 1")
    lab.hit("SELECT cust FROM sales GROUP BY cust ORDER BY SUM(amt) DESC, cust LIMIT 2")
    lab.miss("SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust ORDER BY s DESC, cust LIMIT 3")
    lab.miss(
        "SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust HAVING SUM(amt) < 90 ORDER BY s DESC, cust LIMIT 1"
    )
    lab.miss("SELECT SUM(amt) AS s FROM sales ORDER BY s DESC LIMIT 1")
    # a new row that becomes the first one: the cache is stale, then right again
    lab.plain.sql("INSERT INTO sales VALUES (9, NULL, 'east', 3, 500, 1, 1.00, 0.0)")
    query = "SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust ORDER BY s DESC, cust LIMIT 2"
    lab.miss(query, "STALE")
    lab.sql("REFRESH RELATIONAL CACHE t")
    assert lab.hit(query)[0]["cust"] == 3


@pytest.mark.parametrize(
    ("tail", "code"),
    [
        ("LIMIT 3", "CLAUSE_NOT_SUPPORTED"),
        ("ORDER BY cost LIMIT 3", "ORDER_KEY_NOT_STORED"),
        ("ORDER BY amt LIMIT 3 OFFSET 1", "CLAUSE_NOT_SUPPORTED"),
    ],
)
def test_a_definition_of_first_rows_names_its_order(lab, tail, code):
    with pytest.raises(CacheManagerError) as caught:
        lab.sql(f"CREATE RELATIONAL CACHE t AS SELECT id, amt FROM sales {tail}")
    assert caught.value.code == code


def test_delta_takes_no_informational_constraint(lab):
    """Once it does, its PRIMARY KEY and FOREIGN KEY … RELY can stand for declared joins."""
    with pytest.raises(Exception, match="does not support table constraint"):
        lab.plain.sql(
            "CREATE TABLE keyed (id INT NOT NULL PRIMARY KEY NOT ENFORCED RELY) USING delta"
        )


def test_a_hint_names_a_cache_of_the_current_schema(lab):
    lab.cache(CUBE)
    query = "SELECT {}region, SUM(amt) AS s FROM sales GROUP BY region"
    for name in ("c", "C", f"{lab.schema}.c", f"spark_catalog.{lab.schema}.c"):
        lab.hit(query.format(f"/*+ RELATIONAL_CACHE({name}) */ "))
    before = lab.hits()
    lab.spark.sql(query.format("")).hint("RELATIONAL_CACHE", "c").collect()
    assert lab.hits() == before + 1
    for name in ("other", "default.c"):
        lab.miss(query.format(f"/*+ RELATIONAL_CACHE({name}) */ "), "HINT")
