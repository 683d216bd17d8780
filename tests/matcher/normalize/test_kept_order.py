"""What an ORDER BY in a definition comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from matcher.model.codec import decode_plan, encode_plan
from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import Block, Output, Relation, SortKey
from matcher.normalize.kept_order import KeptOrder, kept_order
from matcher.normalize.stored_plan import plan_definition

A, B, DAY, FLAG = (
    Col(0, name, kind)
    for name, kind in (("a", "int"), ("b", "string"), ("day", "date"), ("flag", "boolean"))
)
PRICE = Col(0, "price", "decimal(10,2)")
TOTAL = Agg("sum", (A,), "bigint")
RATIO = Call("div", (TOTAL, Agg("count", (), "bigint")), "double")
T = (Relation("db.t", "t"),)
KEYS = (A, B, DAY, FLAG, PRICE)


def kept(*order: Expr, sets: tuple[tuple[int, ...], ...] | None = None) -> KeptOrder:
    outputs = (
        *(Output(key.name, key) for key in KEYS[1:]),
        Output("next", Call("add", (A, Lit(1, "int")), "int")),
        Output("total", TOTAL),
        Output("ratio", RATIO),
    )
    block = Block(T, (), outputs, KEYS, sets, order_by=tuple(map(SortKey, order)))
    plan = plan_definition("c", block)
    found = kept_order(block, plan)
    assert plan.cluster_by == found.cluster_by
    assert decode_plan(encode_plan(plan)) == plan
    assert not plan.order_by  # which are those of a cache of the first rows
    return found


@pytest.mark.parametrize(
    ("order", "columns"),
    [
        ((B,), ("b",)),
        ((DAY, B, PRICE), ("day", "b", "price")),
        ((A,), ("__key_0",)),  # stored, though it is shown computed
        ((TOTAL, B), ("total", "b")),
        ((B, B, Lit(1, "int"), B, B, B), ("b",)),
        ((), ()),
    ],
)
def test_it_is_clustered_by_what_is_stored(order: tuple[Expr, ...], columns: tuple) -> None:
    assert kept(*order) == KeptOrder(columns)


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ((RATIO,), "ratio is computed when it is read"),
        ((B, Call("upper", (B,), "string")), "one of its keys is computed when it is read"),
        ((B, FLAG), "flag is a BOOLEAN, which no table clusters by"),
        ((A, B, DAY, PRICE, TOTAL), "it names 5 columns, and a table is clustered by 4 at most"),
    ],
)
def test_what_cannot_be_kept_is_told(order: tuple[Expr, ...], why: str) -> None:
    found = kept(*order)
    assert found.cluster_by == () and found.why_not.startswith(why)


def test_the_table_of_a_cube_is_laid_out_otherwise() -> None:
    found = kept(B, sets=((0, 1), (1,)))
    assert found == KeptOrder(why_not="the table of a cube is laid out by its grouping sets")


def test_columns_behind_those_that_delta_knows_values_of() -> None:
    many = tuple(Output(f"c{n}", Col(0, f"c{n}", "int")) for n in range(40))
    block = Block(T, (), many, order_by=(SortKey(many[31].expr),))
    assert plan_definition("c", block).cluster_by == ("c31",)
    behind = replace(block, order_by=(SortKey(many[32].expr),))
    assert plan_definition("c", behind).cluster_by == ()
    told = kept_order(behind, plan_definition("c", behind)).why_not
    assert told == "c32 is stored behind the first 32 columns"
