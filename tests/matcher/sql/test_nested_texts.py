"""Caches over caches in the text door: the same plans as of their definitions over base tables, and
answers from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachemgr.errors import DefinitionError
from cachemgr.text.offline import explain, prepare
from matcher.model.ir import CachePlan

DDL = """
CREATE TABLE sales (id BIGINT NOT NULL, day DATE, region STRING, cust INT, amt BIGINT, price DECIMAL(10,2));
CREATE TABLE cust (cid INT NOT NULL, city STRING);
"""  # noqa: E501 - tables of SQL read better unbroken
BELOW = """
CREATE RELATIONAL CACHE by_day AS SELECT day, region, cust, SUM(amt) AS s, SUM(price) AS p,
  COUNT(*) AS n, MIN(amt) AS low FROM sales WHERE amt > 0 GROUP BY day, region, cust;
CREATE RELATIONAL CACHE flat AS SELECT id, region, amt * 2 AS twice FROM sales LEFT JOIN cust
  ON cust = cid WHERE city IS NULL;
"""


def plan(select: str) -> CachePlan:
    return prepare(DDL, f"{BELOW} CREATE RELATIONAL CACHE c AS {select};").plans["c"]


@pytest.mark.parametrize(
    ("nested", "flat"),
    [
        (
            "SELECT region, SUM(s) AS s, SUM(p) AS p, SUM(n) AS n, MIN(low) AS low, MAX(day) AS d "
            "FROM by_day GROUP BY region",
            "SELECT region, SUM(amt) AS s, SUM(price) AS p, COUNT(*) AS n, MIN(amt) AS low, "
            "MAX(day) AS d FROM sales WHERE amt > 0 GROUP BY region",
        ),
        (
            "SELECT year(day) AS y, SUM(x.s) AS s FROM by_day x WHERE region = 'n' GROUP BY 1",
            "SELECT year(day) AS y, SUM(amt) AS s FROM sales WHERE amt > 0 AND region = 'n' "
            "GROUP BY 1",
        ),
        (
            "SELECT city, SUM(s) AS s FROM by_day JOIN cust ON cust = cid GROUP BY city",
            "SELECT city, SUM(amt) AS s FROM sales JOIN cust ON cust = cid WHERE amt > 0 "
            "GROUP BY city",
        ),
        (
            "SELECT city, SUM(s) AS s FROM cust JOIN by_day ON cust = cid GROUP BY city",
            "SELECT city, SUM(amt) AS s FROM cust JOIN sales ON cust = cid WHERE amt > 0 "
            "GROUP BY city",
        ),
        (
            "SELECT region, s FROM by_day WHERE region <> 'x'",
            "SELECT region, SUM(amt) AS s FROM sales WHERE amt > 0 AND region <> 'x' "
            "GROUP BY day, region, cust",
        ),
        (
            "SELECT region, SUM(twice) AS t FROM flat WHERE id < 7 GROUP BY region",
            "SELECT region, SUM(amt * 2) AS t FROM sales LEFT JOIN cust ON cust = cid "
            "WHERE city IS NULL AND id < 7 GROUP BY region",
        ),
        (
            "SELECT region, twice FROM flat",
            "SELECT region, amt * 2 AS twice FROM sales LEFT JOIN cust ON cust = cid "
            "WHERE city IS NULL",
        ),
    ],
)
def test_a_definition_over_a_cache_is_one_over_its_base_tables(nested: str, flat: str) -> None:
    found, wanted = plan(nested), plan(flat)
    assert set(found.predicates) == set(wanted.predicates)
    assert replace(found, predicates=()) == replace(wanted, predicates=())
    types = [(m.name, m.agg.type) for m in found.measures]
    assert types == [(m.name, m.agg.type) for m in wanted.measures]


OVER_GROUPS = [
    "SELECT region, COUNT(*) AS n FROM {} GROUP BY region",
    "SELECT region, SUM(s) AS s FROM {} WHERE s > 1 GROUP BY region",
    "SELECT s, SUM(n) AS n FROM {} GROUP BY s",
    "SELECT a.region, SUM(a.s) AS s FROM {} a JOIN {} b ON a.day = b.day GROUP BY a.region",
    "SELECT city, SUM(n) AS n FROM cust JOIN {} ON cust = cid AND s > 3 GROUP BY city",
    "SELECT city, s FROM {} JOIN cust ON cust = cid",
    "SELECT city, n FROM cust JOIN (SELECT cust, COUNT(*) AS n FROM {} GROUP BY cust) "
    "ON cust = cid",
    "SELECT f.id, x.n FROM (SELECT id, region FROM sales WHERE id > 3) f JOIN (SELECT region, "
    "COUNT(*) AS n FROM {} GROUP BY region) x ON x.region = f.region",
]


@pytest.mark.parametrize("select", OVER_GROUPS)
def test_a_definition_that_counts_or_joins_groups_of_a_cache_is_one_over_groups(
    select: str,
) -> None:
    text = BELOW.partition("by_day AS ")[2].partition(";")[0]
    found, wanted = plan(select.replace("{}", "by_day")), plan(select.replace("{}", f"({text})"))
    assert {table.name for table in found.tables} <= {"sales", "cust"}
    assert sorted(r.key for r in found.relations) == sorted(r.key for r in wanted.relations)
    assert sorted(map(repr, found.predicates)) == sorted(map(repr, wanted.predicates))
    assert (found.keys, found.measures) == (wanted.keys, wanted.measures)
    assert (found.columns, found.outer) == (wanted.columns, wanted.outer)


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("SELECT region, s FROM by_day WHERE s > 1", "a condition"),
        ("SELECT city, SUM(s) AS s FROM cust LEFT JOIN by_day ON cust = cid AND s > 1 "
         "LEFT JOIN flat ON id = cid GROUP BY city", "anti joined with"),
        ("SELECT SUM(v) AS v FROM later", "later is not declared"),
    ],
)  # fmt: skip
def test_what_is_no_block_over_the_base_tables_is_refused(select: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        prepare(
            DDL,
            f"{BELOW} CREATE RELATIONAL CACHE c AS {select};"
            "CREATE RELATIONAL CACHE later AS SELECT SUM(amt) AS v FROM sales;",
        )


def test_queries_are_answered_from_the_cache_above() -> None:
    caches = (
        "CREATE RELATIONAL CACHE by_day DISABLE REWRITE AS SELECT day, region, SUM(amt) AS s "
        "FROM sales GROUP BY day, region;"
        "CREATE RELATIONAL CACHE by_region AS SELECT region, SUM(s) AS s FROM by_day "
        "GROUP BY region;"
    )
    answer = explain(DDL, caches, "SELECT region, SUM(amt) AS total FROM sales GROUP BY region")
    assert answer["caches"] == ["by_region"] and "FROM `by_region`" in answer["rewrittenSql"]
    assert "FROM `sales`" in answer["stored"]["by_region"]
