"""IN of tuples as Catalyst has it: structs put together, constants among them."""

from __future__ import annotations

from typing import Any

import pytest

from cachemgr.text import offline
from matcher.catalyst.document import Settings
from matcher.catalyst.expr import decode
from matcher.model.expr import Col, Expr
from matcher.model.reasons import ReasonCode

A, B = ["a", 1, "a", "int", 1], ["a", 2, "b", "string", 1]
KIND = "struct<a:int,b:string>"
ENV = {1: Col(0, "a", "int"), 2: Col(0, "b", "string")}


def struct(*fields: Any) -> list[Any]:
    named = [part for i, f in enumerate(fields) for part in (["l", f"col{i}", "string"], f)]
    return ["f", "CreateNamedStruct", "named_struct", named, KIND, 0, []]


def read(*rows: Any) -> Expr:
    data = ["f", "In", "in", [struct(A, B), *rows], "boolean", 0, []]
    return decode(data, ENV, Settings(True, True, "UTC"))


def test_each_tuple_is_a_conjunction() -> None:
    one, two = struct(["l", 1, "int"], ["l", "x", "string"]), struct(["l", None, "int"], B)
    assert repr(read(one)) == "and(nseq($0.a, 1:int), nseq($0.b, 'x':string))"
    either = read(one, two)
    assert repr(either) == (
        "or(and(nseq($0.a, 1:int), nseq($0.b, 'x':string)), "
        "and(nseq($0.a, None:int), nseq($0.b, $0.b)))"
    )
    assert not either.nullable


def test_a_struct_that_may_be_null_is_no_tuple() -> None:
    found = read(["l", None, KIND])
    assert repr(found).startswith("in(spark:CreateNamedStruct(")


@pytest.mark.parametrize("row", ["(1L, 'x')", "(1, 'x', 2)", "NULL", "(1, NULL)", "concat(1, 'x')"])
def test_what_spark_does_not_take_beside_a_tuple_is_no_block_in_text(row: str) -> None:
    cache = "CREATE RELATIONAL CACHE c AS SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b;"
    workspace = offline.prepare("CREATE TABLE t (a INT, b STRING);", cache)
    query = f"SELECT COUNT(*) AS n FROM t WHERE (a, b) IN ((1, 'x'), {row})"
    found = offline.answer(workspace, query)
    assert not found.rewrites
    codes = {r.code for c in found.candidates for r in c.reasons}
    assert codes == {ReasonCode.UNSUPPORTED_EXPRESSION}
