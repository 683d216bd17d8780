"""A cache serves the Spark that computed it, and another minor where all is known to be alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachemgr.serving.other_spark import unlike
from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import CachePlan, Measure, Relation, StoredColumn
from matcher.model.reasons import ReasonCode
from tests.serving.test_eligibility import CACHE, QUERY, code

NAME, QTY = Col(0, "name", "string"), Col(0, "qty", "int")
UPPER = Call("upper", (NAME,), "string")


def plan(key: Expr = NAME, *, where: Expr | None = None, agg: Agg | None = None) -> CachePlan:
    agg = agg or Agg("sum", (QTY,), "bigint")
    predicates = () if where is None else (where,)
    relations = (Relation("file:/t", "t"),)
    return CachePlan("c", relations, predicates, (StoredColumn("k", key),), (Measure("m", agg),))


ALIKE = plan()
UNLIKE = {
    "upper": plan(UPPER),
    "rlike": plan(where=Call("rlike", (NAME, Lit("^a", "string")), "boolean")),
    "hll_sketch_agg": plan(agg=Agg("hll_sketch_agg", (QTY,), "binary")),
    "mode": plan(agg=Agg("spark:mode", (QTY,), "int")),
    "collate": plan(Col(0, "name", "string collate UNICODE_CI")),
    "variant": plan(Col(0, "v", "variant")),
}


@pytest.mark.parametrize("part", UNLIKE)
def test_what_a_minor_may_bring_is_named(part: str) -> None:
    assert unlike(UNLIKE[part]) == part
    cache = replace(CACHE, plan=UNLIKE[part], sparks=frozenset({"4.1"}))
    assert code(cache, replace(QUERY, spark="4.1")) is None
    for here in ("4.0", "4.2", None):
        assert code(cache, replace(QUERY, spark=here)) is ReasonCode.OTHER_SPARK
        reason = cache.other_spark(here)
        assert reason is not None and part in reason.detail and "Spark 4.1" in reason.detail


@pytest.mark.parametrize("here", ["4.0", "4.1", "4.2", None])
def test_what_is_alike_serves_all(here: str | None) -> None:
    assert unlike(ALIKE) is None
    cache = replace(CACHE, plan=ALIKE, sparks=frozenset({"4.0", "4.1"}))
    assert code(cache, replace(QUERY, spark=here)) is None


def test_rows_of_two_minors_are_of_neither_alone() -> None:
    cache = replace(CACHE, plan=UNLIKE["upper"], sparks=frozenset({"4.1", "4.2"}))
    for here in ("4.1", "4.2"):
        assert code(cache, replace(QUERY, spark=here)) is ReasonCode.OTHER_SPARK
    assert "4.1 and 4.2" in str(cache.other_spark("4.2"))


def test_nobody_has_computed_what_was_never_refreshed() -> None:
    assert replace(CACHE, plan=UNLIKE["upper"]).other_spark("4.0") is None
