"""Queries with grouping sets: which of the three forms is chosen, and that it stays right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachemgr.text import offline
from matcher.index.registry import Registry
from matcher.render.select import render_rewrite
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

TABLE = "CREATE TABLE t (a INT, b INT NOT NULL, c STRING, v BIGINT NOT NULL)"
SETS = "CREATE RELATIONAL CACHE cube AS SELECT a, b, SUM(v) AS s, COUNT(DISTINCT c) AS d FROM t GROUP BY GROUPING SETS ((a, b), (a), (b))"  # fmt: skip # noqa: E501


def registry_with(rows: dict[int, int]) -> Registry:
    plan = offline.prepare(TABLE, SETS + ";").plans["cube"]
    sets = tuple(replace(s, rows=rows[s.grouping_id]) for s in plan.grouping_sets)
    registry = Registry()
    registry.put(replace(plan, grouping_sets=sets))
    return registry


def decided(registry: Registry, query: str):
    block = parse_query(query, Schema.parse(TABLE)).roots[0].block
    assert block is not None
    return registry.decide(block).rewrite


def test_each_set_from_the_smallest_one_that_serves_it():
    registry = registry_with({0: 1_000_000, 1: 50, 2: 8})
    found = decided(registry, "SELECT a, b, SUM(v) AS s FROM t GROUP BY CUBE (a, b)")
    assert [b.grouping_set.grouping_id for b in found.branches] == [0, 1, 2, 2]
    assert found.cost == pytest.approx(1_000_000 + 50 + 8 + 8 * 1.2 + 4)


def test_one_aggregation_where_all_sets_need_the_large_one():
    registry = registry_with({0: 1_000, 1: 900, 2: 900})
    found = decided(registry, "SELECT a, b, SUM(v) AS s FROM t GROUP BY CUBE (a, b)")
    assert found.grouping_sets == ((0, 1), (0,), (1,), ())
    assert found.grouping_set.grouping_id == 0


def test_one_scan_of_stored_sets():
    registry = registry_with({0: 1_000, 1: 900, 2: 900})
    found = decided(
        registry, "SELECT b, a, COUNT(DISTINCT c) AS d FROM t GROUP BY GROUPING SETS ((a), (b))"
    )
    assert "IN (1L, 2L)" in render_rewrite(found, "cube")
    assert not found.branches and found.grouping_sets is None


@pytest.mark.parametrize("keys", ["ROLLUP (a, b)", "GROUPING SETS ((a), (b), (b))"])
def test_a_remembered_decision_takes_the_next_constants(keys):
    registry = registry_with({0: 100, 1: 90, 2: 9})
    for value in (1, 7, 7, 0):
        text = f"SELECT a, b, SUM(v) AS s FROM t WHERE b > {value} GROUP BY {keys}"
        found = decided(registry, text)
        sql = render_rewrite(found, "cube")
        assert sql.count(f"(`b` > {value})") >= 1
        fresh = Registry()
        fresh.put(registry.plan("cube"))
        assert render_rewrite(decided(fresh, text), "cube") == sql


def test_too_many_sets_are_put_together_by_one_aggregation_alone():
    columns = [f"k{i}" for i in range(6)]
    table = f"CREATE TABLE t ({', '.join(f'{c} INT' for c in columns)}, v BIGINT NOT NULL)"
    keys = ", ".join(columns)
    cache = f"CREATE RELATIONAL CACHE c AS SELECT {keys}, SUM(v) AS s FROM t GROUP BY CUBE ({keys})"
    query = f"SELECT {keys}, SUM(v) AS s FROM t GROUP BY CUBE ({keys})"
    found = offline.explain(table, cache + ";", query)
    assert found["hit"] and "GROUPING SETS" in found["rewrittenSql"]
    # one set more is lacking: no view has all keys
    fewer = cache.replace(f"CUBE ({keys})", "GROUPING SETS ((k0, k1, k2), (k3, k4, k5))")
    missed = offline.explain(table, fewer + ";", query)
    codes = {r["code"] for c in missed["candidates"] for r in c["reasons"]}
    assert "GROUPING_SETS_IN_QUERY" in codes
