# ruff: noqa: E501 - tables of SQL read better unbroken
"""Queries with ROLLUP, CUBE and GROUPING SETS, and with coarser time buckets, through Catalyst."""

from __future__ import annotations

import pytest

import cachemgr
from cachemgr.refresh.by_change import incremental

pytestmark = pytest.mark.spark

CUBE = (
    "cube AS SELECT region, cust, day, SUM(amt) AS s, COUNT(*) AS n, COUNT(amt) AS c, MIN(amt) AS lo, "
    "SUM(price) AS p, COUNT(DISTINCT cost) AS d FROM sales "
    "GROUP BY GROUPING SETS ((region, cust), (region), (cust), (region, cust, day), ())"
)
PLAIN = (
    "plain AS SELECT region, city, day, SUM(amt) AS s, COUNT(*) AS n, MAX(cost) AS hi, SUM(price) AS p "
    "FROM sales JOIN cust ON cust = cid GROUP BY region, city, day"
)
MONTHS = (
    "months AS SELECT date_trunc('MONTH', day) AS m, region, SUM(amt) AS s, COUNT(*) AS n "
    "FROM sales GROUP BY date_trunc('MONTH', day), region"
)


def test_grouping_sets_from_a_cube(lab):
    lab.cache(CUBE)
    for query in (
        "SELECT region, cust, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY CUBE (region, cust)",
        "SELECT region, cust, SUM(amt), grouping_id() AS g, grouping(cust) AS gc FROM sales GROUP BY ROLLUP (region, cust)",
        "SELECT cust, region, grouping_id(cust, region) AS g, grouping(region) + 1 AS more, COUNT(amt) FROM sales GROUP BY CUBE (cust, region)",
        "SELECT region, COUNT(DISTINCT cost) FROM sales GROUP BY ROLLUP (region)",
        "SELECT region, COUNT(DISTINCT cost) AS d FROM sales GROUP BY GROUPING SETS ((region), (region), ())",
        "SELECT coalesce(region, 'all') AS r, MIN(amt) AS lo, AVG(price) AS a FROM sales GROUP BY ROLLUP (region) ORDER BY r, lo",
        "SELECT day, region, SUM(price) AS p, MIN(cust) AS m FROM sales WHERE cust IN (1, 2) GROUP BY ROLLUP (day, region)",
        "SELECT region, cust, SUM(amt) AS s FROM sales GROUP BY CUBE (region, cust) HAVING grouping(region) = 0 AND COUNT(*) > 1",
        "SELECT region, cust, SUM(amt) AS s FROM sales GROUP BY CUBE (region, cust) ORDER BY grouping_id(), region, cust LIMIT 5",
        "SELECT region, SUM(amt) AS s FROM sales WHERE cust = 99 GROUP BY ROLLUP (region)",
        "SELECT year(day) AS y, region, SUM(amt) AS s FROM sales GROUP BY ROLLUP (year(day), region)",
        "SELECT * FROM (SELECT region, cust, SUM(amt) AS s FROM sales GROUP BY CUBE (region, cust)) WHERE region IS NULL",
        "SELECT region, s, rank() OVER (ORDER BY s) AS k FROM (SELECT region, SUM(amt) AS s FROM sales GROUP BY ROLLUP (region))",
    ):
        lab.hit(query)
    sales = lab.spark.table("sales")
    frame = sales.rollup("region", "cust").agg({"amt": "sum"})
    wanted = lab.plain.table("sales").rollup("region", "cust").agg({"amt": "sum"})
    before = lab.hits()
    assert sorted(map(repr, frame.collect())) == sorted(map(repr, wanted.collect()))
    assert lab.hits() == before + 1


def test_grouping_sets_from_a_plain_cache(lab):
    lab.cache(PLAIN)
    from_join = "FROM sales JOIN cust ON cust = cid"
    for query in (
        f"SELECT region, city, SUM(amt) AS s, COUNT(*) AS n {from_join} GROUP BY ROLLUP (region, city)",
        f"SELECT city, region, grouping_id() AS g, grouping(city) AS gc, SUM(price) AS p {from_join} GROUP BY CUBE (city, region)",
        f"SELECT city, MAX(cost) AS hi, MIN(city) AS c {from_join} WHERE region IS NOT NULL GROUP BY GROUPING SETS ((city), (city), ())",
        f"SELECT year(day) AS y, upper(region) AS r, COUNT(*) AS n {from_join} GROUP BY CUBE (year(day), upper(region)) ORDER BY n, y, r",
        f"SELECT city, COUNT(*) AS n {from_join} GROUP BY ROLLUP (city) HAVING grouping(city) = 1 OR city > 'B'",
        f"SELECT city, SUM(amt) AS s {from_join} WHERE region = 'nowhere' GROUP BY ROLLUP (city)",
    ):
        lab.hit(query)


def test_grouping_sets_over_a_table_that_the_cache_lacks(lab):
    lab.cache(
        "narrow AS SELECT cust, region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY cust, region"
    )
    query = "SELECT city, region, SUM(amt) AS s, COUNT(*) AS n, grouping(city) AS g FROM sales JOIN cust ON cust = cid GROUP BY ROLLUP (city, region)"
    lab.hit(query)
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Turin', 'Italy'), (3, NULL, NULL)")
    lab.hit(query + " HAVING COUNT(*) > 1 ORDER BY s, city, region")


def test_what_a_set_lacks_is_a_miss(lab):
    lab.cache(CUBE)
    lab.miss(
        "SELECT region, id, SUM(amt) AS s FROM sales GROUP BY ROLLUP (region, id)",
        "COLUMN_NOT_IN_GROUPING_SET",
    )
    lab.miss(
        "SELECT day, COUNT(DISTINCT cost) AS d FROM sales GROUP BY ROLLUP (day)",
        "DISTINCT_NOT_DERIVABLE",
    )
    # several DISTINCT aggregates become an Expand as well, and are no grouping sets
    lab.hit("SELECT COUNT(DISTINCT cust), COUNT(DISTINCT region) FROM sales")


def test_grouping_sets_over_an_empty_table(lab):
    lab.plain.sql("DELETE FROM sales")
    lab.cache(CUBE)
    assert lab.hit("SELECT region, SUM(amt) AS s FROM sales GROUP BY ROLLUP (region)") == []


def test_coarser_time_buckets(lab):
    lab.cache(MONTHS)
    for query in (
        "SELECT year(day) AS y, SUM(amt) AS s FROM sales GROUP BY year(day)",
        "SELECT date_trunc('year', day) AS y, COUNT(*) AS n FROM sales GROUP BY 1",
        "SELECT date_format(day, 'yyyy-MM') AS m, SUM(amt) AS s FROM sales GROUP BY date_format(day, 'yyyy-MM')",
        "SELECT extract(QUARTER FROM day) AS q, region, SUM(amt) AS s FROM sales GROUP BY ALL",
        "SELECT region, SUM(amt) AS s FROM sales WHERE day >= '2024-01-01' AND day < '2024-02-01' GROUP BY region",
        "SELECT SUM(amt) AS s FROM sales WHERE year(day) = 2024 AND month(day) = 2",
    ):
        lab.hit(query)
    for query in (
        "SELECT SUM(amt) AS s FROM sales WHERE day >= '2024-01-02'",
        "SELECT SUM(amt) AS s FROM sales WHERE day < '2024-02-02'",
        "SELECT date_format(day, 'yyyy-MM-dd') AS m, SUM(amt) AS s FROM sales GROUP BY 1",
        "SELECT weekofyear(day) AS w, SUM(amt) AS s FROM sales GROUP BY weekofyear(day)",
    ):
        lab.miss(query)
    # the next constant of the same shape is looked at anew
    lab.hit("SELECT SUM(amt) AS s FROM sales WHERE day < '2024-02-01'")
    lab.miss("SELECT SUM(amt) AS s FROM sales WHERE day < '2024-02-03'")
    assert cachemgr.counters(lab.spark).get("failed", 0) == 0


TOTAL = (
    "SELECT COUNT(DISTINCT cust) AS d, AVG(amt) AS a, STDDEV(price) AS v, MEDIAN(amt) AS m, "
    "COUNT(*) AS n, SUM(weight) AS w FROM sales"
)


def test_the_total_of_a_cube_has_what_does_not_add_up(lab):
    """Also after appends: then the stored total is one of two, and nothing is its largest."""
    cube = TOTAL.replace("SELECT", "SELECT region,") + " GROUP BY GROUPING SETS ((region), ())"
    lab.cache(f"totals AS {cube}")
    lab.hit(TOTAL)
    lab.hit("SELECT COUNT(DISTINCT cust) AS d FROM sales")
    lab.miss("SELECT COUNT(DISTINCT cust) AS d FROM sales WHERE region = 'north'")
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE region = 'north'")
    lab.plain.sql("INSERT INTO sales VALUES (90, DATE'2024-03-01', 'x', 777, 5, 1, 4.00, 0.5)")
    lab.hit("SELECT AVG(amt) AS a, COUNT(*) AS n FROM sales")
    lab.miss(TOTAL)
    lab.sql("REFRESH RELATIONAL CACHE totals INCREMENTAL")
    lab.hit(TOTAL)
    lab.plain.sql("DELETE FROM sales")
    lab.sql("REFRESH RELATIONAL CACHE totals")
    assert lab.hit(TOTAL)[0].d == 0


def test_the_total_of_partial_rows_is_that_of_them_together(lab, monkeypatch):
    monkeypatch.setattr(incremental, "FEW_ROWS", -1)  # partial rows are appended
    monkeypatch.setattr(incremental, "MOST_PARTIALS", 1e9)
    total = "SELECT AVG(amt) AS a, AVG(price) AS p FROM sales"
    cube = "SELECT region, AVG(amt) AS a, AVG(price) AS p FROM sales"
    lab.cache(f"totals AS {cube} GROUP BY GROUPING SETS ((region), ())")
    for amt in (0, 50, 100):
        lab.plain.sql(
            f"INSERT INTO sales VALUES (90, DATE'2024-03-01', 'x', 7, {amt}, 1, 4.00, 0.5)"
        )
        (done,) = lab.sql("REFRESH RELATIONAL CACHE totals INCREMENTAL")
        assert done["mode"] == "PARTIALS"
        lab.hit(total)


# Spark numbers the keys by where the sets, in their order, name them first.
BY_SETS = {"spark__sql__legacy__groupingIdWithAppendedUserGroupBy": "true"}
BY_ID = "SELECT id, SUM(amt) AS s, COUNT(*) AS n FROM sales WHERE id < 5 GROUP BY id"
BY_REGION = "SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region"


def test_some_sets_of_a_cube_keep_their_numbers(lab, monkeypatch):
    monkeypatch.setattr(incremental, "FEW_ROWS", 6)  # between the groups of the two sets
    monkeypatch.setattr(incremental, "MOST_PARTIALS", 1e9)
    with lab.conf(**BY_SETS):
        lab.cache(
            "cube AS SELECT id, region, SUM(amt) AS s, COUNT(*) AS n FROM sales "
            "GROUP BY id, region GROUPING SETS ((region), (id))"
        )
        lab.hit(BY_ID)
        lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id < 3")
        lab.hit(BY_ID)
        (done,) = lab.sql("REFRESH RELATIONAL CACHE cube INCREMENTAL")
        assert done["mode"] == "PARTIALS"
        lab.hit(BY_ID)
        lab.hit(BY_REGION)
        lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id < 3")
        lab.sql("REFRESH RELATIONAL CACHE cube FULL")
        lab.hit(BY_ID)
        lab.hit(BY_REGION)


def test_numbers_of_sets_that_a_query_asks_for_by_their_own_order(lab):
    with lab.conf(**BY_SETS):
        lab.cache(CUBE)
        lab.cache(PLAIN)
        for append in (False, True):
            if append:
                lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id < 3")
            for sets in (
                "region, cust GROUPING SETS ((cust), (region))",
                "region, cust GROUPING SETS ((cust, region), (cust))",
                "region, cust GROUPING SETS ((), (cust), (region, cust))",
                "region, CUBE (cust)",
                "ROLLUP (cust, region)",
            ):
                lab.hit(
                    "SELECT region, cust, SUM(amt) AS s, grouping_id() AS g, grouping(cust) AS c "
                    f"FROM sales GROUP BY {sets}"
                )
            for sets in ("((city), (region))", "((city, region), (region), ())"):
                lab.hit(
                    "SELECT region, city, SUM(amt) AS s, grouping_id() AS g FROM sales JOIN cust "
                    f"ON cust = cid GROUP BY region, city GROUPING SETS {sets} HAVING COUNT(*) > 0"
                )
