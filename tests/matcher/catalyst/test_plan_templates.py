"""A plan document of a shape that came before is read as if it were decoded, and what does not
stand in a comparison stays part of the shape."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bench.population import plan_document
from matcher.catalyst import templates
from matcher.catalyst.reader import raw_block_by
from matcher.catalyst.templates import PlanDocument, PlanShapes
from matcher.model.ir import Block
from tests.matcher.catalyst.test_plan_refusals import (
    GID,
    KEY,
    NULL,
    ONE,
    SUM,
    ZERO,
    K,
    V,
    aggregate,
    document,
    exists,
    relation,
)
from tests.matcher.plan_shapes import differing, visited, written

S = ["a", 4, "s", "string", 1]
D = ["a", 5, "d", "date", 1]
FAR = [["a", 21, "k", "int", 1], ["a", 22, "v", "bigint", 0]]


def call(name: str, *args: Any, type: str = "boolean") -> list[Any]:
    return ["f", name, name.lower(), list(args), type, 1, []]


def lit(value: Any, type: str = "int") -> list[Any]:
    return ["l", value, type]


def grouped(*conditions: Any) -> dict[str, Any]:
    rows: dict[str, Any] = relation(o=[K, V, S, D])
    for condition in conditions:
        rows = {"n": "Filter", "p": [condition], "c": [rows]}
    return document(aggregate(rows, K, SUM))


def union(*branches: dict[str, Any]) -> dict[str, Any]:
    return document({"n": "Union", "c": [b["plan"] for b in branches]})


def decoded(shapes: PlanShapes, plans: list[dict[str, Any]], monkeypatch: Any) -> list[int]:
    """How many times each document, one after the other, had its outermost blocks decoded for what
    is remembered."""
    calls: list[None] = []

    def counted(*args: Any) -> Any:
        calls.append(None)
        return raw_block_by(*args)

    monkeypatch.setattr(templates, "raw_block_by", counted)
    found = []
    for plan in plans:
        calls.clear()
        visited(shapes.read(written(plan)), 1.0, 0.0)
        found.append(len(calls))
    return found


def eq(value: int) -> list[Any]:
    return call("EqualTo", K, lit(value))


@pytest.mark.parametrize(
    "condition",
    [
        eq,
        lambda n: call("In", K, lit(7), lit(n)),
        lambda n: call("Not", call("EqualTo", lit(n), K)),
        lambda n: call("Or", call("LessThan", K, lit(n)), call("IsNull", S)),
        lambda n: call("And", call("LessThan", K, lit(n)), call("GreaterThan", K, lit(-n))),
        lambda n: call("EqualTo", S, lit(f'"{n}\\', "string")),
        lambda n: call("GreaterThan", D, lit(n, "date")),
    ],
)
def test_other_constants_are_filled_in(condition: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [grouped(condition(n)) for n in (1, 2, 3, 900_000_001, 1)]
    shapes = PlanShapes()
    # as it is, and with marks
    assert decoded(shapes, plans, monkeypatch) == [0, 2, 0, 0, 0]
    for plan in plans:
        assert visited(shapes.read(written(plan)), 0, 0) == visited(
            PlanShapes().read(written(plan)), 0, 0
        )


@pytest.mark.parametrize(
    "condition",
    [
        lambda n: call("EqualTo", call("Add", K, lit(n), type="int"), lit(5)),
        lambda n: call("EqualTo", call("Cast", K, type="bigint"), lit(n, "bigint")),
        lambda n: call("EqualTo", K, lit(n, "bigint")),
        lambda n: call("EqualNullSafe", K, lit(n)),
        lambda n: call("Or", eq(n), call("LessThan", call("Add", K, lit(n), type="int"), lit(5))),
        lambda n: call("EqualTo", call("substring", S, lit(n), type="string"), lit("x", "string")),
        lambda n: call("Or", call("Coalesce", call("EqualTo", K, lit(n)), lit(True, "boolean"))),
    ],
)
def test_what_is_no_side_of_a_comparison_belongs_to_the_shape(
    condition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [grouped(condition(n)) for n in (1, 2, 3, 2, 3)]
    shapes = PlanShapes()
    # with all marks, without them, and once more for each constant that is not known yet
    assert decoded(shapes, plans, monkeypatch) == [0, 3, 2, 0, 0]
    for plan in plans:
        assert visited(shapes.read(written(plan)), 0, 0) == visited(
            PlanShapes().read(written(plan)), 0, 0
        )


def test_each_block_has_its_own_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    stays = call("EqualNullSafe", K, lit(4))
    plans = [union(grouped(eq(n), stays), grouped(call("EqualNullSafe", K, lit(n % 2))))
             for n in (1, 2, 3, 4)]  # fmt: skip
    assert decoded(PlanShapes(), plans, monkeypatch) == [0, 3 + 3, 2, 0]


def sets(condition: list[Any]) -> dict[str, Any]:
    rows = {"n": "Filter", "p": [condition], "c": [relation(o=[K, V, S, D])]}
    expanded = {"n": "Expand", "o": [KEY, GID], "e": [[K, ZERO], [NULL, ONE]], "c": [rows]}
    return document(aggregate(expanded, KEY, keys=(KEY, GID)))


def test_the_numbers_of_grouping_sets_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [sets(eq(n)) for n in (1, 2, 3, 4)]
    assert decoded(PlanShapes(), plans, monkeypatch) == [0, 2, 0, 0]
    assert differing(plans[0]) == []


def test_only_so_many_blocks_are_kept_of_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_MOST_PINNED", 2)
    plans = [grouped(call("EqualNullSafe", K, lit(n))) for n in (1, 1, 2, 3, 3, 1, 2)]
    assert decoded(PlanShapes(), plans, monkeypatch) == [0, 3, 2, 1, 1, 0, 0]


@pytest.mark.parametrize(
    "plan",
    [
        grouped(eq(1), call("EqualTo", S, lit("x", "string"))),
        grouped(call("Or", eq(1), call("EqualTo", K, lit(2))), eq(1)),
        grouped(call("LessThan", K, lit(1)), call("GreaterThan", K, lit(5))),
        grouped(call("In", call("CreateNamedStruct", lit("a", "string"), K, lit("b", "string"), S),
                     *(call("CreateNamedStruct", lit("a", "string"), lit(n), lit("b", "string"),
                            lit("x", "string")) for n in (1, 2)))),
        document(exists(relation(o=FAR), call("EqualTo", FAR[0], K), call("LessThan", V, lit(3)))),
        document({"n": "GlobalLimit", "l": 3, "c": [
            {"n": "LocalLimit", "l": 3, "c": [
                {"n": "Sort", "s": [[K, 1, 1]], "c": [grouped(eq(1))["plan"]]}]}]}),
        document({"n": "Project", "c": [grouped(eq(5))["plan"]["c"][0]],
                  "p": [K, ["as", 9, "one", lit(1)], ["as", 10, "x", ["x", "UDF", "f"]]]}),
        json.loads(plan_document()),
    ],
)  # fmt: skip
def test_what_is_remembered_is_what_is_decoded(plan: dict[str, Any]) -> None:
    assert differing(plan, variants=40) == []


def test_a_constant_that_looks_like_one_of_a_document() -> None:
    for text in ('["l",5,"int"]', "mark0_0", "900000001", '\\"', '"],"int"]'):
        plan = grouped(call("EqualTo", S, lit(text, "string")), eq(5))
        assert differing(plan) == []


def test_long_documents_and_those_that_came_once_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(templates, "_MOST_SHAPES", 1)
    monkeypatch.setattr(templates, "_LONG_TEXT", 2_000)
    # of eight others it is noted that they came, and no more of the first one
    shapes, others = PlanShapes(), [grouped(*[eq(5)] * n) for n in range(2, 10)]
    plans = [grouped(eq(1)), *others, grouped(eq(2)), grouped(eq(3))]
    assert decoded(shapes, plans, monkeypatch) == [0] * 10 + [2]
    long = grouped(eq(1), call("EqualTo", S, lit("x" * 2_000, "string")))
    assert decoded(shapes, [long] * 3, monkeypatch) == [0, 0, 0]


def outermost(document: PlanDocument) -> Block | None:
    found: list[Block | None] = []
    document.walk(lambda located: not found.append(located.block))
    return found[0]


def test_what_is_too_deep_to_be_remembered_is_decoded() -> None:
    deep: list[Any] = K
    for number in range(300):
        deep = call("Add", deep, lit(number), type="int")
    plans = [grouped(call("EqualTo", deep, lit(n))) for n in (1, 2, 3)]
    shapes = PlanShapes()
    for plan in plans:
        remembered, plain = outermost(shapes.read(written(plan))), outermost(PlanDocument(plan))
        assert plain is not None and remembered == plain


def test_threads_that_read_one_shape_see_their_own_constants() -> None:
    shapes, plans = PlanShapes(), [union(grouped(eq(n)), grouped(eq(-n))) for n in range(400)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda p: visited(shapes.read(written(p)), 0, 0), plans))
    finally:
        sys.setswitchinterval(before)
    assert found == [visited(PlanDocument(plan), 0, 0) for plan in plans]


def test_what_is_no_json_is_an_error() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        PlanShapes().read("nothing")


def test_marks_stand_for_the_constants_that_may_be_others() -> None:
    """Each is of its constant's kind, in no other place of the document, and can be written in
    SQL: the first day that a mark may be is one of the calendar."""
    shapes = PlanShapes()

    def asked(day: int, word: str, number: int) -> dict[str, Any]:
        return grouped(
            call("GreaterThan", D, lit(day, "date")),
            call("EqualTo", S, lit(word, "string")),
            call("LessThan", call("Add", K, lit(number), type="int"), lit(7)),
        )

    for n in range(3):
        visited(shapes.read(written(asked(n, f"s{n}", 5))), 0.0, 0)
    read = shapes.read(written(asked(11, 'x"', 5)))
    blocks: list[Any] = []
    read.walk(lambda located: bool(blocks.append(located)))
    (path, block) = next((b.path, b.block) for b in blocks if b.block is not None)
    marked = read.marked(path, block)
    assert marked is not None
    kinds = {marked.types[place]: mark for place, mark in marked.marks.items()}
    assert set(kinds) == {"date", "string"}  # what is compared with a sum belongs to the shape
    assert 0 < kinds["date"] <= 2_932_896
    other = asked(7, "y", 5)
    constants = templates._lift(written(other)).constants
    assert marked.block_of(constants) in grouped_blocks(other)
    assert read.marked((9, 9), block) is None
    assert PlanDocument(asked(1, "a", 5)).marked(path, block) is None


def grouped_blocks(plan: dict[str, Any]) -> list[Block | None]:
    """The blocks of a document as decoded."""
    found: list[Block | None] = []
    PlanDocument(plan).walk(lambda located: bool(found.append(located.block)))
    return found
