# ruff: noqa: E501 - tables of SQL read better unbroken
"""EXISTS, IN and their negations over a cached table, asked of a small table that no cache knows:
the rows of the subquery may be groups of a cache, for a second equal row changes nothing."""

from __future__ import annotations

import pytest

import cachemgr
import cachemgr.spark.hook as hook

pytestmark = pytest.mark.spark

GROUPS = "g AS SELECT cust, region, COUNT(*) AS n FROM sales GROUP BY cust, region"
FLOATS = "w AS SELECT weight, COUNT(*) AS n FROM sales GROUP BY weight"
SERVED = {
    "NOT EXISTS": "SELECT * FROM small s WHERE NOT EXISTS (SELECT 1 FROM sales f WHERE f.cust = s.k)",
    "EXISTS": "SELECT * FROM small s WHERE EXISTS (SELECT * FROM sales f WHERE f.cust = s.k)",
    "IN": "SELECT * FROM small s WHERE s.k IN (SELECT cust FROM sales)",
    "NOT IN, a NULL outside": "SELECT * FROM small s WHERE s.k NOT IN (SELECT cust FROM sales)",
    "NOT IN, a NULL inside": "SELECT * FROM small s WHERE s.name NOT IN (SELECT region FROM sales)",
    "NOT IN, no NULL inside": "SELECT * FROM small s WHERE s.name NOT IN (SELECT region FROM sales WHERE region IS NOT NULL)",
    "NOT IN nothing": "SELECT * FROM small s WHERE s.k NOT IN (SELECT cust FROM sales WHERE region = 'nowhere')",
    "NOT IN, correlated": "SELECT * FROM small s WHERE s.k NOT IN (SELECT cust FROM sales f WHERE f.region = s.name)",
    "NOT IN by two columns": "SELECT * FROM small s WHERE (s.k, s.name) NOT IN (SELECT cust, region FROM sales)",
    "a filter inside": "SELECT * FROM small s WHERE NOT EXISTS (SELECT 1 FROM sales f WHERE f.cust = s.k AND f.region <> 'north')",
    "another comparison": "SELECT * FROM small s WHERE NOT EXISTS (SELECT 1 FROM sales f WHERE f.cust < s.k AND f.region > s.name)",
    "an expression": "SELECT * FROM small s WHERE NOT EXISTS (SELECT 1 FROM sales f WHERE f.cust + 1 = s.k)",
    "under OR": "SELECT * FROM small s WHERE s.k > 5 OR EXISTS (SELECT 1 FROM sales f WHERE f.cust = s.k)",
    "as a value": "SELECT k, EXISTS (SELECT 1 FROM sales f WHERE f.cust = s.k) AS e FROM small s",
    "two of them": "SELECT * FROM small s WHERE s.k IN (SELECT cust FROM sales) AND NOT EXISTS (SELECT 1 FROM sales f WHERE f.cust = s.k AND f.region = 'west')",
    "one in another": "SELECT * FROM small s WHERE EXISTS (SELECT 1 FROM small t WHERE t.k = s.k AND NOT EXISTS (SELECT 1 FROM sales f WHERE f.cust = t.k AND f.region = 'west'))",
    "a known table around": "SELECT city FROM cust c WHERE c.cid NOT IN (SELECT cust FROM sales)",
    "ANTI JOIN": "SELECT * FROM small s LEFT ANTI JOIN sales f ON f.cust = s.k",
    "SEMI JOIN": "SELECT * FROM small s LEFT SEMI JOIN sales f ON f.cust = s.k AND f.region = 'north'",
    "not correlated, some": "SELECT * FROM small s WHERE EXISTS (SELECT 1 FROM sales WHERE region = 'north')",
    "not correlated, none": "SELECT * FROM small s WHERE EXISTS (SELECT 1 FROM sales WHERE region = 'nowhere')",
    "NOT EXISTS, not correlated": "SELECT * FROM small s WHERE NOT EXISTS (SELECT 1 FROM sales WHERE region = 'nowhere')",
}
# Every row is wanted, or the cache does not say enough.
LEFT_ALONE = {
    "a scalar subquery": "SELECT k, (SELECT f.cust FROM sales f WHERE f.cust = s.k AND f.region = 'west') AS v FROM small s WHERE k IN (1, 77)",
    "a lateral join": "SELECT * FROM small s, LATERAL (SELECT f.cust FROM sales f WHERE f.cust = s.k)",
    "an inner join": "SELECT s.k FROM small s JOIN sales f ON f.cust = s.k",
    "a LEFT JOIN": "SELECT s.k FROM small s LEFT JOIN sales f ON f.cust = s.k",
    "the left side of an ANTI JOIN": "SELECT f.cust FROM sales f LEFT ANTI JOIN small s ON f.cust = s.k AND f.region < s.name",
    "a LIMIT inside": "SELECT * FROM small s WHERE s.k IN (SELECT cust FROM sales WHERE region = 'north' AND cust = 1 LIMIT 2)",
    "a count of rows": "SELECT * FROM small s WHERE s.k IN (SELECT cust FROM (SELECT cust, ROW_NUMBER() OVER (PARTITION BY cust ORDER BY region) AS r FROM sales) WHERE r = 2)",
    "a column that is not stored": "SELECT * FROM small s WHERE NOT EXISTS (SELECT 1 FROM sales f WHERE f.cust = s.k AND f.amt > 10)",
    "a column of the condition": "SELECT * FROM small s WHERE NOT EXISTS (SELECT 1 FROM sales f WHERE f.cust = s.k AND f.amt > s.k)",
    "EXCEPT ALL": "SELECT k FROM small EXCEPT ALL SELECT cust FROM sales",
}


@pytest.fixture
def small(lab):
    lab.plain.sql("CREATE TABLE small (k INT, name STRING) USING delta")
    lab.plain.sql(
        "INSERT INTO small VALUES (1, 'north'), (2, 'x'), (3, 'west'), (77, 'y'), (NULL, 'z'), (4, NULL)"
    )
    return lab


def checked(lab, queries, hit):
    wrong = {}
    for title, query in queries.items():
        try:
            lab.check(query, hit)
        except AssertionError as error:
            wrong[title] = str(error)
    assert not wrong


def test_groups_serve_where_a_row_is_wanted_once(small):
    small.cache(GROUPS)
    checked(small, SERVED, True)
    checked(small, LEFT_ALONE, False)


def test_rows_serve_as_they_did(small):
    small.cache("r AS SELECT cust, region, amt FROM sales")
    checked(small, SERVED, True)


def test_the_right_side_in_a_dataframe(small):
    small.cache(GROUPS)
    frames = []
    for spark in (small.spark, small.plain):
        left, right = spark.table("small"), spark.table("sales")
        frames.append(left.join(right, left.k == right.cust, "left_anti"))
    before = small.hits()
    assert sorted(map(str, frames[0].collect())) == sorted(map(str, frames[1].collect()))
    assert small.hits() == before + 1


def test_values_that_are_equal_and_not_the_same_are_all_there(small):
    """CAST(-0.0 AS STRING) is not CAST(0.0 AS STRING), and groups have one of the two."""
    small.plain.sql("INSERT INTO sales (id, weight) VALUES (90, -0.0D), (91, 0.0D)")
    small.plain.sql("INSERT INTO small VALUES (5, '-0.0'), (6, '0.0')")
    small.cache(FLOATS)
    query = "SELECT * FROM small s WHERE EXISTS (SELECT 1 FROM sales f WHERE CAST(f.weight AS STRING) = s.name)"
    rows = small.miss(query)
    assert len(rows) == 2


def test_a_stale_cache_does_not_answer_a_part(small):
    small.cache("g MAX STALENESS UNLIMITED AS " + GROUPS.split(" AS ", 1)[1])
    query = SERVED["NOT EXISTS"]
    small.hit(query)
    small.plain.sql("INSERT INTO sales (id, cust) VALUES (92, 77)")
    with small.caches_alone():
        small.miss(query, "MIXED_SNAPSHOTS")
    small.hit(query)  # with the appended row, which makes the hit exact
    small.plain.sql("DELETE FROM sales WHERE cust = 1")
    small.miss(query, "MIXED_SNAPSHOTS")
    small.sql("REFRESH RELATIONAL CACHE g")
    small.hit(query)


def test_a_write_and_a_kept_result(small):
    small.cache(GROUPS)
    text = SERVED["NOT IN, no NULL inside"]
    before = small.hits()
    small.spark.sql("CREATE TABLE mine USING delta AS " + text)
    assert small.hits() > before
    assert small.plain.table("mine").count() == small.plain.sql(text).count()
    kept = small.spark.sql(text).cache()
    before = small.hits()
    assert kept.count() == small.plain.sql(text).count()
    assert small.hits() == before
    kept.unpersist()


def test_spark_is_asked_once_more_only_where_groups_serve(small, monkeypatch):
    asked = []
    answer = hook._answer
    monkeypatch.setattr(hook, "_answer", lambda *args: (asked.append(1), answer(*args))[1])
    small.cache(GROUPS)
    for query, times in (
        (SERVED["NOT EXISTS"], 2),
        (LEFT_ALONE["a column that is not stored"], 1),
        ("SELECT * FROM small WHERE k > 1", 0),
    ):
        asked.clear()
        small.sql(query)
        assert len(asked) == times, query


def test_explain_tells_of_the_subquery(small):
    small.cache(GROUPS)
    found = cachemgr.explain(small.spark, SERVED["NOT EXISTS"])
    assert found.hit and found.caches == (f"{small.schema}.g",)
    missed = cachemgr.explain(small.spark, LEFT_ALONE["a column that is not stored"])
    assert not missed.hit and "amt" in missed.text()
