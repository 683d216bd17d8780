"""HAVING above a block in Catalyst: of a definition it is part of it, of a query it is looked at
for caches that have one, before what is below."""

from __future__ import annotations

import json
from typing import Any

from test_plan_refusals import (
    GID,
    KEY,
    NULL,
    ONE,
    SUM,
    ZERO,
    K,
    aggregate,
    document,
    expand,
    relation,
)

from matcher.catalyst.reader import LocatedBlock, definition_block, walk_blocks
from matcher.catalyst.templates import PlanDocument, PlanShapes
from matcher.model.expr import Agg, Call, Col, Lit

TOTAL = Agg("sum", (Col(0, "v", "bigint", False),), "bigint")
S = ["a", 3, "s", "bigint", 1]


def above(least: int, below: dict[str, Any] | None = None) -> dict[str, Any]:
    """The groups whose sum is large enough."""
    test = ["f", "GreaterThan", "gt", [S, ["l", least, "bigint"]], "boolean", 1, []]
    return {"n": "Filter", "p": [test], "c": [below or aggregate(relation(), K, SUM)]}


def sorted_by(key: list[Any], below: dict[str, Any]) -> dict[str, Any]:
    return {"n": "Sort", "s": [[key, 1, 1]], "c": [below]}


def limited(below: dict[str, Any]) -> dict[str, Any]:
    return {"n": "GlobalLimit", "l": 3, "c": [{"n": "LocalLimit", "l": 3, "c": [below]}]}


def more_than(least: int) -> Call:
    return Call("gt", (TOTAL, Lit(least, "bigint")), "boolean")


def visited(plan: dict[str, Any] | PlanDocument, **kwargs: Any) -> list[LocatedBlock]:
    found: list[LocatedBlock] = []

    def visit(located: LocatedBlock) -> bool:
        found.append(located)
        return False

    if isinstance(plan, PlanDocument):
        plan.walk(visit, **kwargs)
    else:
        walk_blocks(document(plan), visit, **kwargs)
    return found


def test_a_definition_has_it_with_its_columns_and_its_order() -> None:
    plain = definition_block(document(above(5)))
    assert plain.having == (more_than(5),)
    assert [o.name for o in plain.outputs] == ["k", "s"]
    named = ["as", 7, "key", K]
    renamed = definition_block(document({"n": "Project", "p": [named], "c": [above(5)]}))
    assert renamed.having == (more_than(5),) and [o.name for o in renamed.outputs] == ["key"]
    ordered = definition_block(document(sorted_by(S, above(5))))
    assert ordered.having == (more_than(5),) and [k.expr for k in ordered.order_by] == [TOTAL]


def test_a_query_is_looked_at_with_it_and_below_it() -> None:
    whole, groups, *_ = visited(above(5))
    assert whole.path == () and whole.is_tail and whole.block is not None
    assert whole.block.having == (more_than(5),)
    assert groups.path == (0,) and not groups.is_tail and groups.block is not None
    assert groups.block.having == ()
    alone, *_ = visited(above(5), tails=False)
    assert alone.path == (0,)


def test_a_limit_above_it_is_looked_at_first() -> None:
    found = visited(limited(sorted_by(S, above(5))))
    assert [located.is_tail for located in found[:3]] == [True, True, False]
    first = found[0].block
    assert first is not None and first.limit == 3 and first.having == (more_than(5),)


def test_a_condition_that_is_not_read_leaves_the_groups() -> None:
    test = ["x", "SUBQUERY", "scalarsubquery"]
    strange = {"n": "Filter", "p": [test], "c": [aggregate(relation(), K, SUM)]}
    groups, *_ = visited(strange)
    assert groups.path == (0,) and groups.block is not None


def test_conditions_on_several_sets_are_no_having_of_one() -> None:
    sets = aggregate(expand([KEY, GID], [[K, ZERO], [NULL, ONE]]), KEY, SUM, keys=(KEY, GID))
    found = visited(above(5, sets))
    assert found and not any(located.is_tail for located in found)


def test_other_constants_of_a_shape_are_read_anew() -> None:
    shapes = PlanShapes()
    for least in (5, 6, 7, 8, 9):
        text = json.dumps(document(above(least)), separators=(",", ":"))
        first, *_ = visited(shapes.read(text))
        assert first.block is not None and first.block.having == (more_than(least),)
