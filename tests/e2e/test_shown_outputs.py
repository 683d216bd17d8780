# ruff: noqa: E501 - tables of SQL read better unbroken
"""Definitions as people write them: outputs computed of aggregates and keys, constants, columns
without a name or of one name. Each is created, refreshed, read by hand, asked for again and rolled
up, before and after rows came."""

from __future__ import annotations

from decimal import Decimal

import pytest

import cachemgr
from cachemgr.errors import DefinitionError, RefreshError
from tests.worlds.lab_star import same

pytestmark = pytest.mark.spark

CAME = "INSERT INTO sales VALUES (9, DATE'2024-01-02', 'north', 2, 31, 5, 2.50, 0.25), (10, NULL, 'new', 3, NULL, 1, 7.00, 1.5)"

# By what is special: the definition, queries that it answers beside itself, and some that it does not.
DEFINITIONS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "a ratio": (
        "SELECT region, SUM(amt) / COUNT(*) AS mean FROM sales GROUP BY region",
        (
            "SELECT SUM(amt) / COUNT(*) AS mean, COUNT(*) AS n FROM sales",
            "SELECT region, SUM(amt) AS s FROM sales GROUP BY region",
            "SELECT region, 2 * (SUM(amt) / COUNT(*)) AS twice FROM sales WHERE region > 'n' GROUP BY region",
        ),
        (
            "SELECT region, SUM(cost) / COUNT(*) AS mean FROM sales GROUP BY region",
            "SELECT region, AVG(price) AS mean FROM sales GROUP BY region",
            "SELECT region, day, SUM(amt) / COUNT(*) AS mean FROM sales GROUP BY region, day",
        ),
    ),
    "rounded averages and CASE": (
        "SELECT day, ROUND(AVG(price), 2) AS p, CASE WHEN COUNT(amt) = 0 THEN 'none' ELSE CAST(MAX(amt) AS STRING) END AS top FROM sales GROUP BY day",
        (
            "SELECT ROUND(AVG(price), 1) AS p, MAX(amt) AS m FROM sales",
            "SELECT day, AVG(price) AS p FROM sales GROUP BY day",
        ),
        ("SELECT day, MIN(amt) AS m FROM sales GROUP BY day",),
    ),
    "keys computed, repeated and constants": (
        "SELECT 'all' AS kind, cust + 2 AS next, cust, cust AS again, 1, UPPER(region) AS up, COUNT(*) + 1 AS n FROM sales GROUP BY cust, region",
        (
            "SELECT cust, COUNT(*) AS n FROM sales GROUP BY cust",
            "SELECT cust + 2 AS next, COUNT(*) AS n FROM sales GROUP BY cust + 2",
            "SELECT DISTINCT LOWER(region) AS low FROM sales",
        ),
        ("SELECT cust, day, COUNT(*) AS n FROM sales GROUP BY cust, day",),
    ),
    "no names": (
        "SELECT year(day), SUM(amt), COUNT(*), -MAX(cost) FROM sales GROUP BY year(day)",
        (
            "SELECT SUM(amt), COUNT(*) FROM sales",
            "SELECT year(day) AS y, MAX(cost) FROM sales WHERE year(day) = 2024 GROUP BY year(day)",
        ),
        ("SELECT month(day), SUM(amt) FROM sales GROUP BY month(day)",),
    ),
    "names alike": (
        "SELECT region AS a, day AS A, SUM(amt) AS `a b`, MIN(amt) AS `A B` FROM sales GROUP BY region, day",
        ("SELECT region, SUM(amt) AS s, MIN(amt) AS m FROM sales GROUP BY region",),
        ("SELECT region, MAX(amt) AS s FROM sales GROUP BY region",),
    ),
    "no groups": (
        "SELECT cust, cid, cust AS CUST, amt + 1, upper(region) AS `the region`, 7 FROM sales JOIN cust ON cust = cid WHERE amt > 1",
        (
            "SELECT cust, amt + 1 AS next FROM sales JOIN cust ON cust = cid WHERE amt > 1 AND cust = 1",
        ),
        ("SELECT cust, cost FROM sales JOIN cust ON cust = cid WHERE amt > 1",),
    ),
    "both sides of a join": (
        "SELECT a.cid, b.cid, a.city, b.city FROM cust a JOIN cust b ON a.nation = b.nation",
        ("SELECT a.cid AS x, b.city AS y FROM cust a JOIN cust b ON a.nation = b.nation",),
        ("SELECT a.cid AS x, b.city AS y FROM cust a JOIN cust b ON a.city = b.city",),
    ),
    "a global aggregate": (
        "SELECT SUM(amt) / SUM(cost) AS ratio, 'all' AS kind, COUNT(*) = 0 AS nothing FROM sales",
        ("SELECT SUM(cost) AS c, COUNT(*) AS n FROM sales",),
        ("SELECT SUM(price) AS p FROM sales",),
    ),
    "grouping sets": (
        "SELECT COALESCE(region, 'any') AS r, GROUPING(region) AS gr, GROUPING_ID() + 1 AS g, day, SUM(amt) / COUNT(*) AS mean, COUNT(*) FROM sales GROUP BY GROUPING SETS ((region, day), (region), ())",
        (
            "SELECT region, SUM(amt) AS s FROM sales GROUP BY region",
            "SELECT SUM(amt) / COUNT(*) AS mean FROM sales",
            "SELECT day, COUNT(*) AS n FROM sales GROUP BY day",
        ),
        ("SELECT day, MAX(amt) AS n FROM sales GROUP BY day",),
    ),
    "DISTINCT": (
        "SELECT DISTINCT region, cust + 1, region AS again FROM sales",
        ("SELECT DISTINCT region FROM sales",),
        ("SELECT DISTINCT day FROM sales",),
    ),
}


def read_by_hand(lab, name: str, definition: str) -> None:
    """DESCRIBE's SELECT gives the definition's names, types and rows."""
    told = {row[0]: row[1] for row in lab.sql(f"DESCRIBE RELATIONAL CACHE {name}")}
    got = lab.plain.sql(told["read it with"])
    if "GROUPING" in definition:  # a cube's number stands before its columns
        got = got.select(*[got[i] for i in range(1, len(got.columns))])
    expected = lab.plain.sql(definition)
    described = list(told)
    assert set(expected.columns) <= set(described), described
    same(got, got.collect(), expected, ordered=False)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_it_is_stored_read_asked_again_and_rolled_up(lab, name: str) -> None:
    definition, answered, missed = DEFINITIONS[name]
    lab.cache(f"c AS {definition}")
    for _ in ("as created", "after rows came"):
        read_by_hand(lab, "c", definition)
        lab.hit(definition)
        for query in answered:
            lab.hit(query)
        for query in missed:
            lab.miss(query)
        lab.plain.sql(CAME)
        (done,) = lab.sql("REFRESH RELATIONAL CACHE c INCREMENTAL")
        assert done["mode"] != "FULL", done
    assert cachemgr.would_answer(
        lab.spark, f"CREATE RELATIONAL CACHE d AS {definition}", [definition]
    )[0].hit


def test_a_ratio_that_divides_by_zero_raises_where_it_is_read(lab) -> None:
    ratio = (
        "SELECT region, SUM(amt) / SUM(cost - 1) AS r FROM sales WHERE cust <> 2 GROUP BY region"
    )
    lab.cache(f"c AS {ratio}")
    lab.hit("SELECT region, SUM(amt) AS s FROM sales WHERE cust <> 2 GROUP BY region")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        lab.sql(ratio)
    with lab.conf(spark__sql__ansi__enabled="false"):
        lab.cache(f"loose AS {ratio}")
        read_by_hand(lab, "loose", ratio)
        assert lab.hit(ratio)


@pytest.mark.parametrize(
    ("clause", "told"),
    [
        (
            "PARTITIONED BY (next)",
            "PARTITIONED BY names next, which is no column of the cache's table",
        ),
        ("CLUSTER BY (`sum(amt)`)", "CLUSTER BY names sum"),
        ("PARTITIONED BY (cust)", None),
    ],
)
def test_a_table_is_laid_out_by_what_it_has(lab, clause: str, told: str | None) -> None:
    select = "SELECT cust, cust + 1 AS next, SUM(amt) FROM sales WHERE cust > 0 GROUP BY cust"
    if told is None:
        lab.cache(f"c {clause} AS {select}")
        lab.hit(select)
        return
    with pytest.raises(DefinitionError, match=told):
        lab.cache(f"c {clause} AS {select}")


def test_caches_over_such_caches(lab) -> None:
    """An output of the cache below stands for what it is computed of."""
    lab.cache(
        "c AS SELECT cust + 1 AS next, region, SUM(amt), COUNT(*) AS n, 'x' AS kind FROM sales GROUP BY cust, region"
    )
    lab.cache(
        "d AS SELECT next * 2 AS k, SUM(`sum(amt)`) AS s, SUM(n) AS n FROM c WHERE kind = 'x' GROUP BY next * 2"
    )
    read_by_hand(
        lab, "d", "SELECT (cust + 1) * 2 AS k, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY 1"
    )
    lab.cache("e AS SELECT cust, cust AS again, amt FROM sales")
    with pytest.raises(DefinitionError, match="no_such"):
        lab.cache("f AS SELECT no_such, COUNT(*) FROM e GROUP BY no_such")


def test_a_table_that_gets_columns_under_two_of_one_name(lab) -> None:
    lab.cache("c AS SELECT a.*, b.* FROM cust a JOIN cust b ON a.cid = b.cid")
    lab.plain.sql("ALTER TABLE cust ADD COLUMNS (zip STRING)")
    lab.plain.sql("INSERT INTO cust VALUES (4, 'Genf', 'Schweiz', '1200')")
    try:
        lab.sql("REFRESH RELATIONAL CACHE c")
    except RefreshError:
        pytest.fail("the columns at CREATE are still told apart")
    lab.hit("SELECT a.cid AS x, b.city AS y FROM cust a JOIN cust b ON a.cid = b.cid")


def test_decimals_keep_their_digits(lab) -> None:
    lab.cache(
        "c AS SELECT region, SUM(price) / SUM(amt) AS r, SUM(price) * 3 AS t FROM sales WHERE amt > 0 GROUP BY region"
    )
    rows = lab.hit(
        "SELECT region, SUM(price) / SUM(amt) AS r, SUM(price) * 3 AS t FROM sales WHERE amt > 0 GROUP BY region"
    )
    assert all(isinstance(row.t, Decimal) or row.t is None for row in rows)
