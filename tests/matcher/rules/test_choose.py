"""The choice: what rewrites cost, when the base is cheaper, and what a hint may force."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachemgr.ddl.names import meant_cache
from cachemgr.text import offline
from matcher.examples import block_of, plan_of
from matcher.index.registry import Registry
from matcher.model.expr import Agg, Call, Col, Lit
from matcher.model.ir import (
    Block,
    CachePlan,
    GroupingSet,
    MatchOptions,
    Output,
    Relation,
    StoredColumn,
)
from matcher.model.reasons import ReasonCode
from matcher.rules.choose import unheeded
from matcher.rules.cost import base_cost, base_is_cheaper, rewrite_cost, rows_left

SCHEMA = "CREATE TABLE t (k INT NOT NULL, d INT NOT NULL, v BIGINT NOT NULL);"
K, D, V = Col(0, "k", "int", False), Col(0, "d", "int", False), Col(0, "v", "bigint", False)
ROWS = CachePlan(
    "wide",
    (Relation("t", "t"),),
    (),
    None,
    columns=tuple(StoredColumn(c.name, c) for c in (K, D, V)),
    rows=1_000_000,
    bytes=900_000_000,
    base_rows=1_000_000,
    base_bytes=(("t", 30_000_000),),
)
SUM = Block((Relation("t", "t"),), (), (Output("s", Agg("sum", (V,), "bigint")),), group_keys=(K,))


def test_rows_width_aggregation_and_joins_cost() -> None:
    plain = rewrite_cost(ROWS, None, (), passes=0)
    assert plain == 1_000_000 + 9_000_000
    assert rewrite_cost(ROWS, None, (), passes=1) == pytest.approx(1.2 * plain)
    assert rewrite_cost(ROWS, None, (), passes=3) == pytest.approx(1.6 * plain)
    assert rewrite_cost(ROWS, None, (), passes=0, joins=2) == plain + 1_000_000


def test_a_grouping_set_costs_its_own_rows() -> None:
    small = GroupingSet(1, (0,), rows=10, bytes=1000)
    assert rewrite_cost(ROWS, small, (), passes=0) == 20


@pytest.mark.parametrize(
    ("op", "share"), [("eq", 0.1), ("in", 0.1), ("lt", 0.3), ("like", 0.3), ("isnotnull", 1)]
)
def test_partitions_that_are_passed_over_cost_nothing(op: str, share: float) -> None:
    column = Col(0, "d", "int", False)
    args = (column,) if op == "isnotnull" else (column, Lit(3, "int"))
    kept = (Call(op, args, "boolean"),)
    whole = rewrite_cost(ROWS, None, (), passes=0)
    assert rewrite_cost(ROWS, None, kept, passes=0) == whole
    parts = replace(ROWS, partition_by=("d",))
    assert rewrite_cost(parts, None, kept, passes=0) == pytest.approx(share * whole)
    computed = (Call(op, (Call("neg", (column,), "int"), *args[1:]), "boolean"),)
    assert rewrite_cost(parts, None, computed, passes=0) == whole


def _points(column: Col, *values: int) -> Call:
    equal = tuple(Call("eq", (column, Lit(v, "int")), "boolean") for v in values)
    return equal[0] if len(equal) == 1 else Call("or", equal, "boolean")


def test_rows_left_are_guessed_by_each_filtered_column() -> None:
    above = Call("gt", (K, Lit(3, "int")), "boolean")
    assert rows_left(ROWS, None, ()) == 1_000_000
    assert rows_left(ROWS, None, (_points(D, 1),)) == pytest.approx(100_000)
    assert rows_left(ROWS, None, (_points(D, 1, 2), above)) == pytest.approx(30_000)
    either = Call("or", (_points(D, 1), above), "boolean")
    assert rows_left(ROWS, None, (either,)) == 1_000_000, "an OR of two columns"
    ranges = Call("or", (_points(K, 1), above), "boolean")
    assert rows_left(ROWS, None, (ranges,)) == pytest.approx(300_000)
    small = GroupingSet(1, (0,), rows=10, bytes=1000)
    assert rows_left(ROWS, small, (_points(D, 1),)) == pytest.approx(1)


def test_what_is_not_counted_is_not_cheaper() -> None:
    assert base_cost(replace(ROWS, base_rows=None), ["t"], passes=1) is None
    assert base_cost(replace(ROWS, base_bytes=()), ["t"], passes=1) is None
    assert base_cost(replace(ROWS, limit=5), ["t"], passes=1) is None
    assert not base_is_cheaper(1e12, None, 0, 1)


def test_on_small_tables_a_cache_goes_first() -> None:
    assert not base_is_cheaper(3000, 10, 0, 1)
    assert base_is_cheaper(300_000, 10, 0, 1)
    assert not base_is_cheaper(300_000, 10, 0, 40), "forty tables to open"


def decide(plan: CachePlan, **options: object):
    registry = Registry()
    registry.put(plan)
    return registry.decide(SUM, MatchOptions(**options), explain=True)


def test_a_query_is_left_alone_where_the_base_is_cheaper() -> None:
    found = decide(ROWS)
    assert found.rewrite is None
    assert [r.code for r in found.reasons] == [ReasonCode.BASE_IS_CHEAPER]
    assert "12000000" in found.reasons[0].detail and "1560000" in found.reasons[0].detail


def test_the_hint_forces_what_is_valid_at_any_cost() -> None:
    assert decide(ROWS, forced=frozenset({"wide"})).rewrite is not None


def test_a_cheap_cache_serves() -> None:
    assert decide(replace(ROWS, bytes=30_000_000)).rewrite is not None
    assert decide(replace(ROWS, base_rows=None)).rewrite is not None


def test_every_valid_candidate_shows_its_cost_the_cheapest_first() -> None:
    caches = (
        "CREATE RELATIONAL CACHE a AS SELECT k, d, SUM(v) AS s FROM t GROUP BY k, d;"
        "CREATE RELATIONAL CACHE b AS SELECT k, SUM(v) AS s FROM t GROUP BY k;"
        "CREATE RELATIONAL CACHE c AS SELECT k, v FROM t;"
    )
    found = offline.explain(SCHEMA, caches, "SELECT k, SUM(v) AS s FROM t GROUP BY k")
    assert [(c["cache"], c["outcome"]) for c in found["candidates"]] == [
        ("b", "chosen"),
        ("a", "valid"),
        ("c", "valid"),
    ]
    costs = [c["cost"] for c in found["candidates"]]
    assert costs == sorted(costs) and all(costs)


@pytest.mark.parametrize(
    "sizes", [((10, 5_000), (11, 100)), ((11, 100), (10, 5_000)), ((7, 0), (7, 0))]
)
def test_of_a_cube_an_explanation_names_the_set_that_is_read(
    sizes: tuple[tuple[int, int], ...],
) -> None:
    """The cheapest to read, which need not be the one of the fewest rows."""
    plan = plan_of(
        "SELECT item, store, day, COUNT(*) AS n FROM sales "
        "GROUP BY GROUPING SETS ((item, store), (item, day))"
    )
    sets = zip(plan.grouping_sets, sizes, strict=True)
    plan = replace(plan, grouping_sets=tuple(replace(s, rows=r, bytes=b) for s, (r, b) in sets))
    registry, query = Registry(), block_of("SELECT item, COUNT(*) AS n FROM sales GROUP BY item")
    registry.put(plan)
    found = registry.decide(query).rewrite
    explained = registry.decide(query, explain=True)
    assert found is not None and found == explained.rewrite
    assert [c.outcome for c in explained.candidates] == ["chosen", "valid"]
    assert found.cost == min(c.cost for c in explained.candidates)


def test_a_filter_on_partitions_decides() -> None:
    caches = (
        "CREATE RELATIONAL CACHE a AS SELECT k, d, SUM(v) AS s FROM t GROUP BY k, d;"
        "CREATE RELATIONAL CACHE b PARTITIONED BY (d) AS "
        "SELECT k, d, SUM(v) AS s FROM t GROUP BY k, d;"
    )
    for query, cache in (
        ("SELECT k, SUM(v) AS s FROM t GROUP BY k", "a"),
        ("SELECT k, SUM(v) AS s FROM t WHERE d = 3 GROUP BY k", "b"),
    ):
        assert offline.explain(SCHEMA, caches, query)["caches"] == [cache]


HINTED = "SELECT /*+ RELATIONAL_CACHE({}) */ k, SUM(v) AS s FROM t GROUP BY k"
TWO = (
    "CREATE RELATIONAL CACHE a AS SELECT k, d, SUM(v) AS s FROM t GROUP BY k, d;"
    "CREATE RELATIONAL CACHE b AS SELECT k, SUM(v) AS s FROM t GROUP BY k;"
    "CREATE RELATIONAL CACHE narrow AS SELECT d, SUM(v) AS s FROM t GROUP BY d;"
)


@pytest.mark.parametrize("name", ["a", "A", "`a`", "narrow, a"])
def test_the_text_door_heeds_the_hint(name: str) -> None:
    assert offline.explain(SCHEMA, TWO, HINTED.format(name))["caches"] == ["a"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("narrow", "asks for narrow, which cannot answer: COLUMN_NOT_IN_CACHE"),
        ("nothing", "asks for nothing, and there is no such cache"),
    ],
)
def test_a_hint_that_cannot_be_heeded_says_so(name: str, said: str) -> None:
    found = offline.explain(SCHEMA, TWO, HINTED.format(name))
    assert not found["hit"]
    details = [r["detail"] for c in found["candidates"] for r in c["reasons"]]
    assert any(said in detail for detail in details), details


def test_a_misspelt_name_is_told_once_with_the_one_that_was_meant() -> None:
    found = offline.explain(SCHEMA, TWO, HINTED.format("narow"))
    (said,) = {(r["detail"], r["suggestion"]) for r in found["reasons"] if r["code"] == "HINT"}
    assert said == (
        "the hint RELATIONAL_CACHE asks for narow, and there is no such cache",
        "did you mean narrow? SHOW RELATIONAL CACHES lists those that exist",
    )
    told = [r["detail"] for c in found["candidates"] for r in c["reasons"]]
    assert not any("does not name" in detail for detail in told), told
    one_right = offline.explain(SCHEMA, TWO, HINTED.format("narow, narrow"))
    assert "does not name a" in str(one_right["candidates"])


def test_a_cache_that_answers_heeds_its_hint() -> None:
    assert unheeded({"a"}, ["A"], {"a": "A"}, (), meant_cache) == ()
