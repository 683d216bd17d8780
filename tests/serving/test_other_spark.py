"""A cache serves the Spark that computed it, and another minor where all is known to be alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachemgr.serving.other_spark import unlike
from cachemgr.sparks import on_any_java
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


PRINTED = {
    "a key": plan(Call("cast", (Col(0, "d", "double"),), "string")),
    "a field": plan(Call("cast", (Col(0, "s", "struct<a:int,f:float>"),), "string")),
    "a condition": plan(
        where=Call("eq", (Call("cast", (Col(0, "f", "float"),), "string"), NAME), "boolean")
    ),
    "within an aggregate": plan(
        agg=Agg("max", (Call("cast", (Col(0, "f", "float"),), "string"),), "string")
    ),
}
LATER = "4.2 on Java 19 or later"


@pytest.mark.parametrize("which", PRINTED)
def test_a_double_as_text_serves_the_javas_that_write_it_so(which: str) -> None:
    """`CAST(2e23D AS STRING)` is 1.9999999999999998E23 up to Java 18, and 2.0E23 since."""
    assert unlike(PRINTED[which]) is None
    for written in ("4.2", LATER):
        cache = replace(CACHE, plan=PRINTED[which], sparks=frozenset({written}))
        for here in ("4.2", LATER, on_any_java("4.2"), None):
            expected = None if here == written else ReasonCode.OTHER_SPARK
            assert code(cache, replace(QUERY, spark=here)) is expected
    assert code(replace(cache, sparks=frozenset({"4.2", LATER})), QUERY) is ReasonCode.OTHER_SPARK
    assert "knows its Java" in cache.other_spark(on_any_java("4.2")).suggestion


def test_another_java_brings_what_another_minor_may() -> None:
    cache = replace(CACHE, plan=UNLIKE["upper"], sparks=frozenset({"4.2"}))
    assert code(cache, replace(QUERY, spark=LATER)) is ReasonCode.OTHER_SPARK
    # of a text nobody knows the Java, and few of those functions hang on it
    assert code(cache, replace(QUERY, spark=on_any_java("4.2"))) is None
    whole = plan(Call("cast", (QTY,), "string"))
    assert code(replace(cache, plan=whole), replace(QUERY, spark=LATER)) is None
