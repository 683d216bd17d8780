"""Aggregations over aggregations, by hand and without Spark: those that are one aggregation of the
base rows, and those that only look like it."""

from __future__ import annotations

from typing import Any

import pytest

from matcher.catalyst.document import VERSION
from matcher.catalyst.reader import definition_block
from matcher.model.errors import NotSupported
from matcher.model.ir import Block, reads_groups

DAY, REGION, X = (
    ["a", 1, "day", "date", 1],
    ["a", 2, "region", "string", 1],
    ["a", 3, "x", "int", 1],
)
DIM = ["a", 30, "id", "string", 0]


def agg(cls: str, arg: Any, *, name: str = "", distinct: int = 0, where: Any = None) -> list[Any]:
    args = [] if arg is None else [arg]
    return ["g", cls, name or cls.lower(), args, "bigint", 1, distinct, where, []]


def named(number: int, name: str, expr: Any) -> list[Any]:
    return ["as", number, name, expr]


def attr(number: int, name: str, type_: str = "bigint") -> list[Any]:
    return ["a", number, name, type_, 1]


def eq(left: Any, right: Any) -> list[Any]:
    return ["f", "EqualTo", "=", [left, right], "boolean", 1, []]


TABLE = {"n": "LogicalRelation", "t": 0, "o": [DAY, REGION, X]}
OTHER = {"n": "LogicalRelation", "t": 1, "o": [DIM]}
# SELECT day, region, SUM(x) s, COUNT(*) n, MIN(x) low, AVG(x) mean, COUNT(DISTINCT x) d GROUP BY …
BELOW = {
    "n": "Aggregate", "g": [DAY, REGION], "c": [TABLE],
    "p": [
        DAY, REGION, named(11, "s", agg("Sum", X)), named(12, "n", agg("Count", ["l", 1, "int"])),
        named(13, "low", agg("Min", X)), named(14, "mean", agg("Average", X)),
        named(15, "d", agg("Count", X, distinct=1)),
    ],
}  # fmt: skip
S, N, LOW, MEAN, D = (attr(11 + i, c) for i, c in enumerate(("s", "n", "low", "mean", "d")))


def above(*items: Any, keys: Any = (REGION,), child: Any = BELOW) -> dict[str, Any]:
    return {"n": "Aggregate", "g": list(keys), "p": list(items), "c": [child]}


def joined(kind: str, left: Any, right: Any, *on: Any) -> dict[str, Any]:
    return {"n": "Join", "j": kind, "p": list(on), "c": [left, right]}


def block(plan: dict[str, Any], *, nested: bool = True) -> Block:
    tables = [
        {"name": name, "location": f"file:/{name}", "table_id": name, "version": 0, "kind": "delta",
         "pinned": False, "elsewhere": False}
        for name in ("t", "dim")
    ]  # fmt: skip
    document = {"v": VERSION, "ansi": True, "precision_loss": True, "time_zone": "UTC"}
    return definition_block({**document, "tables": tables, "plan": plan}, nested=nested)


def shown(found: Block) -> list[str]:
    return [repr(o.expr) for o in found.outputs]


def test_sums_counts_and_extremes_of_parts_are_those_of_the_rows() -> None:
    found = block(
        above(
            REGION,
            named(21, "s", agg("Sum", S)),
            named(22, "n", agg("Sum", N)),
            named(23, "low", agg("Min", LOW)),
            named(24, "last_day", agg("Max", DAY)),
            named(25, "days", agg("Count", DAY, distinct=1)),
        )
    )
    assert shown(found) == [
        "$0.region", "sum($0.x)", "count(*)", "min($0.x)", "max($0.day)", "count(distinct $0.day)",
    ]  # fmt: skip
    assert [repr(k) for k in found.group_keys or ()] == ["$0.region"]
    assert not found.outputs[2].expr.nullable


def test_a_third_level_comes_down_to_the_rows_as_well() -> None:
    middle = above(DAY, named(21, "s2", agg("Sum", S)), keys=(DAY,))
    found = block(above(named(31, "s3", agg("Sum", attr(21, "s2"))), keys=(), child=middle))
    assert shown(found) == ["sum($0.x)"]
    assert found.group_keys == ()


def test_filters_are_put_together() -> None:
    below = {**BELOW, "p": [DAY, named(11, "s", agg("Sum", X, where=eq(REGION, REGION)))]}
    found = block(above(named(21, "s", agg("Sum", S, where=eq(DAY, DAY))), keys=(), child=below))
    assert shown(found) == ["sum($0.x) filter and(eq($0.region, $0.region), eq($0.day, $0.day))"]


def test_a_table_joined_to_the_groups_is_one_joined_to_their_rows() -> None:
    for kind in ("INNER", "LEFT OUTER", "LEFT SEMI"):
        plan = joined(kind, BELOW, OTHER, eq(REGION, DIM))
        found = block(above(REGION, named(21, "s", agg("Sum", S)), child=plan))
        assert [r.name for r in found.relations] == ["t", "dim"]
        assert shown(found) == ["$0.region", "sum($0.x)"]


def test_filters_and_projections_keep_the_groups() -> None:
    found = block({"n": "Project", "p": [named(21, "total", S), REGION], "c": [
        {"n": "Project", "p": [S, REGION], "c": [BELOW]}]})  # fmt: skip
    assert shown(found) == ["sum($0.x)", "$0.region"]
    assert [repr(k) for k in found.group_keys or ()] == ["$0.day", "$0.region"]


@pytest.mark.parametrize(
    "plan",
    [
        above(REGION, named(21, "n", agg("Count", ["l", 1, "int"]))),
        above(REGION, named(21, "n", agg("Count", DAY))),
        above(REGION, named(21, "n", agg("Sum", N, distinct=1))),
        above(REGION, named(21, "m", agg("Average", MEAN))),
        above(REGION, named(21, "m", agg("Max", S))),
        above(REGION, named(21, "m", agg("Sum", LOW))),
        above(REGION, named(21, "m", agg("Sum", D))),
        above(REGION, named(21, "m", agg("Sum", S, distinct=1))),
        above(REGION, named(21, "m", agg("Sum", S, where=eq(N, N)))),
        above(S, keys=(S,)),
        above(named(21, "s", agg("Sum", S)), child={"n": "Filter", "p": [eq(N, N)], "c": [BELOW]}),
        above(named(21, "s", agg("Sum", S)), child=joined("LEFT OUTER", BELOW, OTHER, eq(S, DIM))),
        above(named(21, "s", agg("Sum", S)),
              child=joined("LEFT OUTER", OTHER, BELOW, eq(REGION, DIM))),
        above(named(21, "s", agg("Sum", S)),
              child=joined("FULL OUTER", BELOW, OTHER, eq(REGION, DIM))),
        above(named(21, "r", agg("Count", DIM)), keys=(DIM,),
              child=joined("LEFT SEMI", OTHER, BELOW, eq(S, DIM))),
        above(named(21, "s", agg("Sum", S)), child=joined("INNER", BELOW, BELOW)),
        joined("INNER", BELOW, OTHER, eq(REGION, DIM)),
        above(named(21, "s", agg("Sum", S)), keys=(),
              child={"n": "Aggregate", "g": [], "p": BELOW["p"][2:], "c": [TABLE]}),
    ],
)  # fmt: skip
def test_what_only_looks_like_an_aggregation_of_the_rows_is_one_of_groups(
    plan: dict[str, Any],
) -> None:
    found = block(plan)
    assert reads_groups(found)
    assert {table.name for table in found.tables} <= {"t", "dim"}


def test_an_aggregate_of_a_column_that_the_groups_do_not_have_is_refused() -> None:
    with pytest.raises(NotSupported, match="count the groups"):
        block(above(REGION, named(21, "n", agg("Sum", X)), child={**BELOW, "p": [REGION, X]}))


def test_a_definition_that_names_no_cache_is_one_of_groups() -> None:
    assert reads_groups(block(above(REGION, named(21, "s", agg("Sum", S))), nested=False))
