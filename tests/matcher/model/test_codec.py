"""Plans survive the metastore: what is decoded equals what was encoded, through real JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from bench.population import query
from matcher.model.codec import decode_expr, decode_plan, encode_expr, encode_plan
from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import (
    Block,
    CachePlan,
    OuterJoin,
    Output,
    RecordPreservingJoin,
    Relation,
    Side,
    SortKey,
)
from matcher.normalize.stored_plan import plan_definition

EXPRESSIONS = [
    Col(1, "ä b", "decimal(12,2)", False),
    Lit(None, "string"),
    Lit(Decimal("1.50"), "decimal(12,2)"),
    Lit(b"\x00\xff", "binary"),
    Lit(float("nan"), "double"),
    Lit(-0.0, "double"),
    Lit(True, "boolean"),
    Lit(2**62, "bigint"),
    Call("like", (Col(0, "x", "string"), Lit("a%", "string")), "boolean", True, ("!",)),
    Agg("sum", (Col(0, "x", "int"),), "bigint", True, True, Lit(True, "boolean"), ("p",)),
    Agg("count", (), "bigint", False),
]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=repr)
def test_an_expression_comes_back_as_it_was(expr: Expr) -> None:
    back = decode_expr(json.loads(json.dumps(encode_expr(expr))))
    assert back == expr
    assert (back.type, back.nullable) == (expr.type, expr.nullable)
    assert encode_expr(back) == encode_expr(expr)


def cube() -> CachePlan:
    keys = (Col(0, "a", "int"), Col(0, "b", "int"))
    outputs = (
        *(Output(k.name, k) for k in keys),
        Output("s", Agg("sum", (Col(0, "x", "int"),), "bigint")),
    )
    block = Block(
        (Relation("file:/t", "t"),), query().predicates[:1], outputs, keys, ((0,), (0, 1), (1, 0))
    )
    join = RecordPreservingJoin("j", "l", "r", (("a", "b"),), validated=False)
    return replace(
        plan_definition("c", block, (join,)),
        exact_sums=frozenset({"s"}),
        non_null=frozenset({"s"}),
        rows=7,
        bytes=9,
    )


def test_a_top_k_plan_comes_back_as_it_was() -> None:
    a, x = Col(0, "a", "int"), Agg("sum", (Col(0, "x", "int"),), "bigint")
    order = (SortKey(x, False, False), SortKey(a))
    block = Block((Relation("t", "t"),), (), (Output("a", a), Output("s", x)), (a,))
    plan = plan_definition("c", replace(block, order_by=order, limit=10))
    assert (plan.order_by, plan.limit) == (order, 10)
    assert decode_plan(json.loads(json.dumps(encode_plan(plan)))) == plan


def test_a_plan_comes_back_as_it_was() -> None:
    assert decode_plan(json.loads(json.dumps(encode_plan(cube())))) == cube()


def test_left_joins_come_back_and_inner_ones_are_stored_as_before() -> None:
    (join,) = cube().joins
    assert [len(parts) for parts in encode_plan(cube())["joins"]] == [5]
    plan = replace(cube(), joins=(replace(join, finds_each=False), join))
    assert decode_plan(json.loads(json.dumps(encode_plan(plan)))) == plan


def test_outer_joins_come_back_and_older_plans_have_none() -> None:
    hung = OuterJoin(
        "left", (1,), query().predicates[:1], (Col(1, "d_datekey", "int", nullable=False),)
    )
    plan = replace(cube(), outer=(hung,))
    data = json.loads(json.dumps(encode_plan(plan)))
    assert decode_plan(data) == plan
    del data["outer"]
    assert decode_plan(data) == cube()


def test_the_sides_of_a_full_join_come_back() -> None:
    where = query().predicates[:1]
    full = OuterJoin("full", (0, 1), (), (), (Side((0,), where), Side((1,))))
    plan = replace(cube(), outer=(full,))
    assert decode_plan(json.loads(json.dumps(encode_plan(plan)))) == plan


def test_a_plan_of_another_version_is_refused_by_name() -> None:
    data = {**encode_plan(cube()), "version": "0"}
    with pytest.raises(ValueError, match="version '0'"):
        decode_plan(data)
