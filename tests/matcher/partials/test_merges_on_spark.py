"""Queries computed from two parts of a table give what they give over the whole table, row for row
and type for type."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from matcher.index.registry import Registry
from matcher.model.ir import MatchOptions, Rewrite
from matcher.normalize.stored_plan import plan_definition
from matcher.partials.merge import merge, render_merged
from matcher.partials.split import States, split
from matcher.render.select import render_rewrite, render_stored
from tests.matcher.partials.parted import (
    block_of,
    facts,
    hold,
    result,
    sessions,
    show_parts,
    tables_of,
)

pytestmark = pytest.mark.spark
QUERIES = (
    # single rows
    "SELECT k, x, p FROM facts",
    "SELECT k + 1 AS k1, UPPER(g) AS u FROM facts WHERE x > 0",
    "SELECT 1 AS one FROM facts",
    "SELECT facts.k, name FROM facts LEFT JOIN dims ON facts.k = dims.k",
    "SELECT facts.k, name, 7 AS seven FROM facts JOIN dims ON facts.k = dims.k WHERE size > 5",
    "SELECT k, x FROM facts LEFT SEMI JOIN dims ON facts.k = dims.k",
    "SELECT k, x FROM facts LEFT ANTI JOIN dims ON facts.k = dims.k",
    "SELECT x, s, i FROM facts ORDER BY x, s, i LIMIT 7",
    "SELECT s FROM facts ORDER BY x DESC, s DESC NULLS LAST LIMIT 5 OFFSET 3",
    # groups
    "SELECT k, SUM(x) AS a, COUNT(*) AS n, COUNT(y) AS c FROM facts GROUP BY k",
    "SELECT k, g, MIN(x) AS a, MAX(y) AS b, MIN(g) AS c, MAX(d) AS e FROM facts GROUP BY k, g",
    "SELECT d, SUM(y) AS a, SUM(i) AS b, SUM(s) AS c FROM facts GROUP BY d",
    "SELECT k, SUM(p) AS a, SUM(w) AS b, AVG(p) AS c FROM facts GROUP BY k",
    "SELECT g, AVG(x) AS a, AVG(y) AS b, AVG(i) AS c, AVG(s) AS d FROM facts GROUP BY g",
    "SELECT r, COUNT(*) AS n, SUM(x) AS a FROM facts GROUP BY r",
    "SELECT k, MAX(r) AS a, COUNT(r) AS n FROM facts WHERE r > 1 GROUP BY k",
    "SELECT b, BIT_AND(x) AS a, BIT_OR(y) AS o, BIT_XOR(i) AS c, BIT_XOR(s) AS e "
    "FROM facts GROUP BY b",
    "SELECT k, BOOL_AND(b) AS a, BOOL_OR(b) AS o FROM facts GROUP BY k",
    "SELECT k, COLLECT_SET(i) AS a FROM facts GROUP BY k",
    "SELECT g, YEAR(d) AS y, SUM(x) + COUNT(*) * 2 AS a FROM facts GROUP BY g, YEAR(d)",
    "SELECT DATE_TRUNC('DAY', at) AS day, SUM(x) AS a FROM facts GROUP BY DATE_TRUNC('DAY', at)",
    "SELECT k, MAX(at) AS a, MIN(at) AS b FROM facts GROUP BY k",
    "SELECT k % 2 AS odd, SUM(k) AS a, COUNT(k) AS n, MAX(k) AS m FROM facts GROUP BY k % 2",
    "SELECT k AS a, k AS b, 5 AS c, COUNT(*) AS n FROM facts GROUP BY k",
    "SELECT COUNT(*) AS n FROM facts GROUP BY k",
    "SELECT 'x' AS c, COUNT(*) AS n FROM facts GROUP BY 1",
    "SELECT k, MAX_BY(x, s * 100 + x) AS a FROM facts GROUP BY k",
    "SELECT k, MIN_BY(i, x * 1000 + s) AS a FROM facts GROUP BY k",
    "SELECT k, SUM(x * 2 - s) AS a, SUM(-y) AS b FROM facts GROUP BY k",
    "SELECT k, MAX_BY(x, CASE WHEN b THEN x END) AS a FROM facts GROUP BY k",
    "SELECT k, HLL_SKETCH_ESTIMATE(HLL_SKETCH_AGG(y)) AS a FROM facts GROUP BY k",
    # conditions in aggregates
    "SELECT k, SUM(x) FILTER (WHERE x > 0) AS a, COUNT(*) FILTER (WHERE g = 'a') AS n "
    "FROM facts GROUP BY k",
    "SELECT g, AVG(p) FILTER (WHERE k = 1) AS a, MAX(y) FILTER (WHERE y < 0) AS b "
    "FROM facts GROUP BY g",
    "SELECT k, SUM(CASE WHEN g = 'a' THEN x ELSE 0 END) AS a FROM facts GROUP BY k",
    "SELECT k, SUM(CASE WHEN g = 'b' THEN y END) AS a, COUNT_IF(y > 0) AS n FROM facts GROUP BY k",
    "SELECT k, SUM(CASE WHEN k = 1 THEN x ELSE y END) AS a FROM facts GROUP BY k",
    "SELECT SUM(x) FILTER (WHERE x > 1000) AS a, COUNT(y) FILTER (WHERE x > 1000) AS n FROM facts",
    # DISTINCT
    "SELECT DISTINCT k, g FROM facts",
    "SELECT DISTINCT r FROM facts",
    "SELECT k, COUNT(DISTINCT i) AS a, SUM(x) AS b FROM facts GROUP BY k",
    "SELECT COUNT(DISTINCT k, g) AS a, COUNT(DISTINCT r) AS b, COUNT(*) AS n FROM facts",
    "SELECT g, SUM(DISTINCT i) AS a, AVG(p) AS b, COUNT(DISTINCT s) AS c FROM facts GROUP BY g",
    "SELECT g, COUNT(DISTINCT i) FILTER (WHERE x > 0) AS a FROM facts GROUP BY g",
    "SELECT k, MEDIAN(i) AS a, PERCENTILE(s, 0.25) AS b, COUNT(y) AS n FROM facts GROUP BY k",
    "SELECT k, APPROX_COUNT_DISTINCT(i) AS a FROM facts GROUP BY k",
    # one row for all
    "SELECT COUNT(*) AS n, SUM(x) AS a, MIN(g) AS b, AVG(p) AS c, AVG(x) AS d, COUNT(y) AS e "
    "FROM facts",
    "SELECT SUM(y) AS a, COUNT(*) AS n, BOOL_OR(b) AS o, BIT_XOR(y) AS z FROM facts WHERE k = 3",
    "SELECT SUM(w) / COUNT(*) AS a FROM facts HAVING COUNT(*) >= 0",
    "SELECT MAX_BY(x, x * 20 + s) AS a, MIN_BY(x, CASE WHEN b THEN x END) AS c FROM facts",
    "SELECT COLLECT_SET(i) AS a, BIT_AND(y) AS c, COUNT(DISTINCT y, i) AS n FROM facts",
    # above the groups
    "SELECT k, SUM(x) AS a FROM facts GROUP BY k HAVING SUM(x) > 0 AND COUNT(y) > 1",
    "SELECT g, COUNT(*) AS n FROM facts GROUP BY g HAVING g IS NOT NULL ORDER BY n DESC, g",
    "SELECT SUM(x) AS k, k AS a FROM facts GROUP BY k ORDER BY 2 DESC, SUM(y) LIMIT 2",
    "SELECT k, g, SUM(x) AS a FROM facts GROUP BY k, g ORDER BY SUM(x) DESC, k, g LIMIT 4 OFFSET 1",
    # grouping sets
    "SELECT k, g, SUM(x) AS a, COUNT(*) AS n FROM facts GROUP BY CUBE (k, g)",
    "SELECT k, g, AVG(p) AS a, COUNT(y) AS n, GROUPING_ID() AS i FROM facts GROUP BY ROLLUP (k, g)",
    "SELECT k, d, MAX(y) AS a, GROUPING(k) AS i "
    "FROM facts GROUP BY k, d GROUPING SETS ((k), (d), (d), ())",
    "SELECT k, SUM(x) AS a FROM facts GROUP BY ROLLUP (k) HAVING GROUPING(k) = 1 OR SUM(x) > 0",
    "SELECT k, g, COUNT(DISTINCT i) AS a, SUM(x) AS b FROM facts GROUP BY ROLLUP (k, g)",
    # joins
    "SELECT name, SUM(x) AS a, COUNT(*) AS n "
    "FROM facts JOIN dims ON facts.k = dims.k GROUP BY name",
    "SELECT name, SUM(size) AS a, COUNT(name) AS n "
    "FROM facts LEFT JOIN dims ON facts.k = dims.k GROUP BY name",
    "SELECT g, SUM(x) AS a FROM facts WHERE EXISTS (SELECT 1 "
    "FROM dims WHERE dims.k = facts.k) GROUP BY g",
    "SELECT g, COUNT(*) AS n FROM facts LEFT ANTI JOIN dims ON facts.k = dims.k GROUP BY g",
)  # fmt: skip
# ANSI, rows in part 0, rows in part 1
WORLDS = ((True, 40, 25), (False, 60, 3))
EMPTY = ((True, 30, 0), (True, 0, 30), (True, 0, 0))


World = tuple[Any, MatchOptions]


def made(spark: Any, ansi: bool, *counts: int) -> World:
    """A session with the parts of `facts`, of so many rows each."""
    session = sessions(spark, ansi)
    random = Random(str(counts))
    show_parts(session, [facts(random, count) for count in counts])
    return session, MatchOptions(ansi=ansi, time_zone="UTC")


@pytest.fixture(scope="module", params=WORLDS, ids=str)
def world(spark: Any, request: Any) -> World:
    return made(spark, *request.param)


@pytest.fixture(scope="module", params=EMPTY, ids=str)
def empty(spark: Any, request: Any) -> World:
    return made(spark, *request.param)


def states_of(query: str, options: MatchOptions) -> tuple[States, Rewrite]:
    block = block_of(query, options)
    states = split(block, options)
    assert isinstance(states, States), states
    found = merge(block, states, options, exact_sums=list(states.averaged))
    assert isinstance(found, Rewrite), found
    return states, found


def sides_of(states: States) -> list[str]:
    return [render_stored(states.stored, tables_of(states.stored, part)) for part in (0, 1)]


def assert_whole(world: World, query: str) -> None:
    session, options = world
    states, found = states_of(query, options)
    ordered = "ORDER BY" in query
    merged = result(session.sql(render_merged(found, sides_of(states))), ordered=ordered)
    assert merged == result(session.sql(query), ordered=ordered)


@pytest.mark.parametrize("query", QUERIES)
def test_two_parts_are_the_whole(world: World, query: str) -> None:
    assert_whole(world, query)


@pytest.mark.parametrize("query", [q for q in QUERIES if "GROUP BY" not in q or "ROLLUP" in q])
def test_empty_parts(empty: World, query: str) -> None:
    assert_whole(empty, query)


@pytest.mark.slow
@pytest.mark.parametrize("query", [q for q in QUERIES if "GROUP BY" in q and "ROLLUP" not in q])
def test_empty_parts_of_groups(empty: World, query: str) -> None:
    assert_whole(empty, query)


CACHES = (
    "SELECT k, g, d, SUM(x) AS sx, AVG(p) AS ap, MIN(y) AS my, COUNT(y) AS cy, COUNT(*) AS n "
    "FROM facts GROUP BY GROUPING SETS ((k, g, d), (k, g), (d), ())",
    "SELECT k, g, d, x, y, p FROM facts",
)
FROM_CACHES = (
    "SELECT k, SUM(x) AS a, AVG(p) AS b FROM facts GROUP BY k",
    "SELECT g, MIN(y) AS a, COUNT(y) AS b FROM facts WHERE k IN (1, 2) GROUP BY g",
    "SELECT COUNT(*) AS n, SUM(x) AS a FROM facts",
    "SELECT COUNT(DISTINCT k) AS n, COUNT(*) AS m FROM facts WHERE d = DATE'2024-02-29'",
    "SELECT k, g, SUM(x) AS a, COUNT(*) AS n FROM facts GROUP BY ROLLUP (k, g)",
    "SELECT YEAR(d) AS y, SUM(x) AS a FROM facts GROUP BY YEAR(d) ORDER BY y",
)


@pytest.mark.parametrize("definition", CACHES, ids=["cube", "rows"])
@pytest.mark.parametrize("query", FROM_CACHES)
def test_a_cache_and_a_part(world: World, definition: str, query: str) -> None:
    session, options = world
    plan = plan_definition("kept", block_of(definition, options))
    hold(session, "kept", session.sql(render_stored(plan, tables_of(plan, 0))))
    registry = Registry()
    registry.put(plan)
    states, found = states_of(query, options)
    asked = registry.decide(states.block, options).rewrite
    assert asked is not None
    sides = [render_rewrite(asked, "kept", positional=True), sides_of(states)[1]]
    ordered = "ORDER BY" in query
    merged = result(session.sql(render_merged(found, sides)), ordered=ordered)
    assert merged == result(session.sql(query), ordered=ordered)


EXTREME = (
    "SELECT SUM(huge) AS a FROM facts",
    "SELECT k, COUNT(*) AS n, SUM(huge) AS a FROM facts GROUP BY k",
    "SELECT SUM(huge) FILTER (WHERE huge <> 1) AS a FROM facts",
    "SELECT k, SUM(huge) AS a FROM facts GROUP BY ROLLUP (k)",
)


def _exact(query: str) -> str:
    return query.replace("SUM(huge)", "SUM(CAST(huge AS DECIMAL(38,0)))")


MAX, MIN = 2**63 - 1, -(2**63)
SUMMANDS = (
    ((MAX, 1), (-5,)),
    ((MAX, MAX), (MIN, MIN)),
    ((None, 4), (MIN, -1, 7)),
    ((MAX,), (1,)),
    ((MIN, -1), (-1,)),
)


@pytest.fixture(scope="module", params=SUMMANDS, ids=str)
def extreme(spark: Any, request: Any) -> tuple[Any, Any]:
    """The same small parts in a session with ANSI and in one without."""
    row = facts(Random(1), 1)[0]
    parts = [[(1, *row[1:-1], value) for value in values] for values in request.param]
    both = sessions(spark, True), sessions(spark, False)
    for session in both:
        show_parts(session, parts)
    return both


@pytest.mark.parametrize("query", EXTREME)
def test_sums_that_overflow_in_a_part_alone(extreme: tuple[Any, Any], query: str) -> None:
    """Under ANSI what fits is answered, and what does not is an error; else sums wrap around."""
    session, legacy = extreme
    assert_whole((legacy, MatchOptions(ansi=False, time_zone="UTC")), query)
    states, found = states_of(query, MatchOptions(time_zone="UTC"))
    merged = session.sql(render_merged(found, sides_of(states)))
    exact = [tuple(row) for row in session.sql(_exact(query)).collect()]
    totals = [int(row[-1]) for row in exact if row[-1] is not None]
    if all(-(2**63) <= total < 2**63 for total in totals):
        right = sorted(repr((*r[:-1], None if r[-1] is None else int(r[-1]))) for r in exact)
        assert sorted(repr(tuple(row)) for row in merged.collect()) == right
    else:
        with pytest.raises(Exception, match=r"OVERFLOW|OUT_OF_RANGE"):
            merged.collect()


MOMENTS = (
    "SELECT k, VAR_POP(x) AS a, STDDEV(y) AS b, COVAR_POP(x, y) AS c FROM facts GROUP BY k",
    "SELECT 1 AS k, CORR(x, s) AS a, SKEWNESS(x) AS b, KURTOSIS(y) AS c FROM facts",
    "SELECT k, SUM(r) AS a, AVG(r) AS b FROM facts WHERE r > 1 GROUP BY k",
)


@pytest.mark.parametrize("query", MOMENTS)
def test_floats_where_inexact_results_are_allowed(world: World, query: str) -> None:
    session, exact = world
    states, found = states_of(query, replace(exact, approximate_floats=True))
    merged = {row[0]: row for row in session.sql(render_merged(found, sides_of(states))).collect()}
    whole = session.sql(query).collect()
    assert whole and len(whole) == len(merged)
    for key, *numbers in whole:
        found_numbers = [math.nan if v is None else v for v in merged[key][1:]]
        wanted = [math.nan if v is None else v for v in numbers]
        assert found_numbers == pytest.approx(wanted, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("call", ["FIRST", "LAST", "ANY_VALUE"])
def test_any_row_of_either_part(world: World, call: str) -> None:
    session, options = world
    states, found = states_of(
        f"SELECT k, {call}(x) AS a, {call}(s) AS b FROM facts GROUP BY k", options
    )
    rows = {tuple(row) for row in session.sql(render_merged(found, sides_of(states))).collect()}
    there = {tuple(row) for row in session.sql("SELECT k, x, s FROM facts").collect()}
    assert rows <= there and {r[0] for r in rows} == {r[0] for r in there}


def test_no_row_is_taken_of_a_part_without_any(empty: World) -> None:
    session, options = empty
    states, found = states_of("SELECT ANY_VALUE(x) AS a, ANY_VALUE(s) AS b FROM facts", options)
    (row,) = session.sql(render_merged(found, sides_of(states))).collect()
    there = {tuple(row) for row in session.sql("SELECT x, s FROM facts").collect()}
    assert tuple(row) in (there or {(None, None)})
