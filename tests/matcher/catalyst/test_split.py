"""Which parts of outputs a block stands for where the matcher cannot read them whole, by hand and
without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from matcher.catalyst.document import Settings
from matcher.catalyst.reader import LocatedBlock, walk_blocks
from matcher.catalyst.split import Split, ways
from matcher.catalyst.templates import PlanShapes
from matcher.model.reasons import ReasonCode
from tests.matcher.catalyst.test_plan_refusals import SUM, K, V, aggregate, document, relation

SETTINGS = Settings(True, True, "UTC")
TOTAL = SUM[3]
COUNT = ["g", "Count", "count", [["l", 1, "int"]], "bigint", 0, 0, None, []]


def named(expr: Any, number: int = 30) -> Any:
    return ["as", number, "x", expr]


def call(cls: str, *args: Any, type: str = "string", params: Any = ()) -> Any:
    return ["f", cls, cls.lower(), list(args), type, 1, list(params)]


def shown(expr: Any) -> Any:
    return named(call("ToPrettyString", expr, params=["Some(UTC)"]))


def udf(*args: Any) -> Any:
    return ["x", "UDF", "f(x)", list(args)]


def grouped(*outputs: Any, keys: Any = (K,)) -> dict[str, Any]:
    return aggregate(relation(), *outputs, keys=keys)


def places(node: dict[str, Any]) -> list[Any]:
    return [None if way.split is None else way.split.parts for way in ways(node, SETTINGS)]


SHARE = call("Divide", TOTAL, COUNT, type="double", params=["NumericEvalContext(ANSI,true)"])
JSON = call("Unknown", call("CreateNamedStruct", ["l", "s", "string"], SHARE))
CASES = [
    ("plain outputs are not looked into", [K, SUM, named(["l", 1, "int"])], [None]),
    ("what is read whole is looked for whole", [K, named(SHARE)], [None]),
    ("shown columns", [shown(K), shown(TOTAL)], [((0, 0, 0), (1, 0, 0))]),
    ("a shown expression that is read stays whole", [shown(SHARE)], [((0, 0, 0),)]),
    ("whole first, for a cache may hold it", [K, named(JSON)], [None, ((0,), (1, 0, 0, 1))]),
    ("so with show()", [shown(JSON)], [((0, 0, 0),), ((0, 0, 0, 0, 1),)]),
    ("a function of a user's, one in another", [named(udf(udf(TOTAL)))], [((0, 0, 0, 0),)]),
    ("constants stay above", [named(udf(["l", 1, "int"], K))], [((0, 0, 1),)]),
    ("nothing to replace", [named(udf(["l", 1, "int"]))], [None]),
    ("the same call twice", [shown(TOTAL), shown(TOTAL)], [((0, 0, 0), (1, 0, 0))]),
    ("a subquery of its own", [named(call("Divide", TOTAL, ["x", "SUBQUERY", "q", []]))],
     [((0, 0, 0),)]),
    ("a correlated one", [named(call("Divide", TOTAL, ["x", "SUBQUERY", "q"]))], [None]),
    ("a user's aggregate", [named(udf(["x", "UDF", "sum of mine"]))], [None]),
    ("a column that is no key", [shown(V), shown(TOTAL)], [None]),
]  # fmt: skip


@pytest.mark.parametrize(("outputs", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_parts(outputs: list[Any], wanted: list[Any]) -> None:
    assert places(grouped(*outputs)) == wanted


def test_a_key_that_is_an_expression_is_one_part() -> None:
    key = call("Unknown", K)
    assert places(grouped(shown(key), shown(TOTAL), keys=(key,))) == [((0, 0, 0), (1, 0, 0))]


def test_limits_above_the_outputs() -> None:
    node: dict[str, Any] = grouped(shown(K), SUM)
    for kind in ("LocalLimit", "GlobalLimit"):
        node = {"n": kind, "l": 21, "c": [node]}
    assert [way.split for way in ways(node, SETTINGS)] == [Split((0, 0), ((0, 0, 0), (1, 0)))]
    sort = {"n": "Sort", "s": [], "c": [grouped(shown(K))]}
    assert places({"n": "GlobalLimit", "l": 1, "c": [sort]}) == [None]


def seen(plan: dict[str, Any]) -> list[LocatedBlock]:
    found: list[LocatedBlock] = []
    walk_blocks(document(plan), lambda located: bool(found.append(located)))
    return found


def test_the_blocks_of_each_way_are_visited() -> None:
    found = [b for b in seen(grouped(K, named(JSON))) if b.path == ()]
    assert [b.block and [repr(o.expr)[:3] for o in b.block.outputs] for b in found] == [
        ["$0.", "spa"],
        ["$0.", "div"],
    ]
    assert [b.split is None for b in found] == [True, False]
    rows = {"n": "Project", "p": [shown(V)], "c": [relation()]}
    assert [repr(b.block.outputs[0].expr) for b in seen(rows) if b.block and b.split] == ["$0.v"]


def test_what_is_remembered_of_a_shape_has_its_parts() -> None:
    import json

    shapes = PlanShapes()
    for number in (1, 2, 3, 4, 2):
        test = ["f", "EqualTo", "=", [K, ["l", number, "int"]], "boolean", 1, []]
        rows = {"n": "Filter", "p": [test], "c": [relation()]}
        plan = document(aggregate(rows, shown(K), shown(TOTAL)))
        found: list[LocatedBlock] = []
        shapes.read(json.dumps(plan)).walk(lambda b, found=found: bool(found.append(b)))
        split = next(b for b in found if b.split is not None)
        assert split.split == Split((), ((0, 0, 0), (1, 0, 0)))
        assert split.block is not None and repr(split.block.predicates[-1]).endswith(
            f"{number}:int)"
        )


def test_below_what_depends_on_the_place_of_rows_nothing_is_visited() -> None:
    above = {"n": "Window", "r": "rand(0)", "c": [grouped(K, SUM)]}
    (found,) = seen({"n": "Sort", "s": [], "c": [above]})
    assert (found.path, found.block) == ((0,), None)
    assert found.reasons[0].code is ReasonCode.NON_DETERMINISTIC
    assert "rand(0)" in found.reasons[0].detail


@pytest.mark.parametrize("kind", ["Repartition", "RepartitionByExpression", "RebalancePartitions"])
def test_rows_that_are_only_moved_before_they_are_grouped(kind: str) -> None:
    moved = {"n": kind, "c": [relation()]}
    assert seen(aggregate(moved, K, SUM))[0].block == seen(grouped(K, SUM))[0].block
    (refused, _) = seen({"n": "Project", "p": [K], "c": [{"n": "Join", "j": "INNER", "p": [], "c": [
        moved, relation()]}]})[:2]  # fmt: skip
    assert refused.reasons[0].code is ReasonCode.UNSUPPORTED_OPERATOR


def test_a_sort_below_groups_counts_where_their_order_shows() -> None:
    rows = {"n": "Sort", "c": [relation()]}
    assert seen(aggregate(rows, K, SUM))[0].block is not None
    first = named(["g", "First", "first", [V], "bigint", 1, 0, None, ["false"]])
    floats = named(["g", "Sum", "sum", [V], "double", 1, 0, None, []])
    for output in (first, floats):
        assert seen(aggregate(rows, K, output))[0].block is None
