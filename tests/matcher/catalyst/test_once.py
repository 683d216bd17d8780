"""Where a plan's rows are wanted once each, the DISTINCT of them is looked for as well: by hand and
without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from matcher.catalyst.once import Once, distinct_of
from matcher.catalyst.reader import LocatedBlock, walk_blocks
from tests.matcher.catalyst.test_plan_refusals import SUM, K, V, aggregate, document, relation
from tests.matcher.plan_shapes import differing

Found = list[tuple[tuple[int, ...], bool, Once]]
ONE = ["l", 1, "int"]


def seen(plan: dict[str, Any]) -> Found:
    """The path of each block, whether it groups, and how often its rows are wanted."""
    found: list[LocatedBlock] = []
    walk_blocks(document(plan), lambda located: bool(found.append(located)))
    return [(f.path, f.block is not None and f.block.is_aggregate, f.once) for f in found]


def project(*items: Any, **more: Any) -> dict[str, Any]:
    return {"n": "Project", "p": list(items), "c": [relation()], **more}


def test_the_distinct_rows_are_looked_for_after_the_rows() -> None:
    for number in (Once.YES, Once.PERHAPS):
        plan = {"n": "Subquery", "c": [project(K, u=int(number))]}
        assert seen(plan) == [((0,), False, Once.NO), ((0,), True, number)]
        assert differing(document(plan)) == []


def test_the_right_side_of_an_anti_join() -> None:
    far = [["a", 21, "k", "int", 1], ["a", 22, "v", "bigint", 0]]
    plan = {"n": "Join", "j": "LEFT ANTI", "p": [], "c": [relation(), project(far[0], u=1)]}
    plan["c"][1]["c"] = [relation(o=far)]
    assert ((1,), True, Once.YES) in seen(plan)
    assert not any(once for path, _, once in seen(plan) if path != (1,))


def test_what_is_said_of_other_rows_stays() -> None:
    assert seen({"n": "Subquery", "c": [project(K)]}) == [((0,), False, Once.NO)]
    grouped = {**aggregate(relation(), K, SUM), "u": 1}
    assert seen({"n": "Subquery", "c": [grouped]})[0] == ((0,), True, Once.NO)


@pytest.mark.parametrize(
    "node",
    [
        project(K),
        project(u=1),
        project(["a", 5, "x", "double", 1], u=1),
        project(["a", 5, "x", "float", 1], u=1),
        project(["a", 5, "x", "string collate UTF8_LCASE", 1], u=1),
        project(["a", 5, "x", "array<double>", 1], u=1),
        project(["a", 5, "x", "struct<a:double>", 1], u=1),
        project(["a", 5, "x", "map<int,int>", 1], u=1),
        project(K, ["x", "METADATA_COLUMN", "path"], u=1),
        project(["as", 5, "x", ["x", "UDF", "f"]], u=1),
        project(K, u=1, cache=1),
        {"n": "Window", "c": [project(K)], "u": 1},
        {"n": "Filter", "p": [K], "c": [{"n": "Window", "c": [project(K)]}], "u": 1},
    ],
    ids=str,
)
def test_rows_that_are_not_taken_for_one(node: dict[str, Any]) -> None:
    assert distinct_of(node) is None


def test_columns_that_are() -> None:
    double = ["f", "Add", "add", [["l", 1, "int"], K], "int", 1, []]
    node = project(K, V, ["as", 9, "x", double], ["as", 8, "one", ONE], u=1)
    found = distinct_of(node)
    assert found is not None and [key[1] for key in found["g"]] == [1, 2, 9, 8]
    semi = {"n": "Join", "j": "LEFT SEMI", "p": [], "c": [relation(), project(SUM)], "u": 1}
    found = distinct_of(semi)
    assert found is not None and [key[1] for key in found["g"]] == [1, 2]
