"""Guards that only end-to-end tests reached, asked of a cache and a query made by hand."""

from __future__ import annotations

import pytest

from matcher.index.registry import Registry
from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import Block, Choice, MatchOptions, Output, Relation, Rewrite
from matcher.model.reasons import ReasonCode
from matcher.normalize.stored_plan import plan_definition
from matcher.predicates.captured_settings import WRAPPING_SUM
from tests.matcher.predicates.test_time_windows import FIVE, TS, window

TABLE = (Relation("t", "t"),)
K, V, X, S = (
    Col(0, "k", "int", False), Col(0, "v", "int"), Col(0, "x", "double"),
    Col(0, "s", "string collate utf8_lcase"),
)  # fmt: skip
FAR = Lit(10_000_000, "date")  # of no year that SQL has a literal for


def decided(cache: Block, query: Block, **options: object) -> Choice[Rewrite]:
    registry = Registry()
    registry.put(plan_definition("c", cache))
    options = {"time_zone": "UTC", "ansi": True, **options}
    return registry.decide(query, MatchOptions(**options), explain=True)  # type: ignore[arg-type]


def rows(*exprs: Expr, where: tuple[Expr, ...] = ()) -> Block:
    return Block(TABLE, where, tuple(Output(f"c{i}", e) for i, e in enumerate(exprs)))


def grouped(keys: tuple[Expr, ...], *shown: Expr, where: tuple[Expr, ...] = ()) -> Block:
    outputs = tuple(Output(f"c{i}", e) for i, e in enumerate((*keys, *shown)))
    return Block(TABLE, where, outputs, keys)


def total(expr: Expr, func: str = "sum") -> Agg:
    return Agg(func, (expr,), "bigint")


def codes(found: Choice[Rewrite]) -> set[ReasonCode]:
    assert found.rewrite is None
    return {reason.code for reason in found.reasons}


def less(left: Expr, right: Expr) -> Call:
    return Call("lt", (left, right), "boolean")


def test_a_constant_without_a_literal_is_not_put_out() -> None:
    assert decided(rows(K), rows(K, Lit(1, "date"))).rewrite is not None
    assert codes(decided(rows(K), rows(K, FAR))) == {ReasonCode.COLUMN_NOT_IN_CACHE}


@pytest.mark.parametrize(("width", "hit"), [(FIVE, True), (4 * FIVE, True), (3 * FIVE, False)])
def test_windows_from_narrower_ones(width: int, hit: bool) -> None:
    cache = grouped((window(2 * FIVE if width > FIVE else FIVE),), Agg("count", (), "bigint"))
    query = grouped((window(width),), Agg("count", (), "bigint"))
    assert (decided(cache, query).rewrite is not None) is hit


def test_what_is_no_window_is_not_taken_from_one() -> None:
    cache = grouped((window(FIVE),), Agg("count", (), "bigint"))
    query = grouped((Call("hour", (TS,), "int"),), Agg("count", (), "bigint"))
    assert codes(decided(cache, query)) == {ReasonCode.COLUMN_NOT_IN_CACHE}


def test_what_a_views_setting_keeps_back_is_named() -> None:
    there = Call("spark:Add", (V, Lit(1, "int")), "int", True, ("NumericEvalContext(LEGACY,true)",))
    assert codes(decided(rows(K), rows(there))) == {ReasonCode.SETTINGS_DIFFER}
    assert codes(decided(rows(K), rows(there), ansi=False)) == {ReasonCode.COLUMN_NOT_IN_CACHE}


def test_an_aggregate_by_what_may_be_an_error() -> None:
    inverse = Call("idiv", (Lit(10, "int"), K), "bigint")
    cache = grouped((K, V), Agg("count", (), "bigint"))
    plain, raising = (grouped((), Agg("max_by", (V, by), "int")) for by in (K, inverse))
    assert decided(cache, plain).rewrite is not None
    assert codes(decided(cache, raising)) == {ReasonCode.AGG_NOT_DERIVABLE}


def test_sums_that_start_again_from_the_other_end() -> None:
    cache = grouped((K,), total(V))
    same, whole = (
        grouped((K,), total(V, WRAPPING_SUM)),
        Block(TABLE, (), (Output("c", total(V, WRAPPING_SUM)),), ()),
    )
    assert decided(cache, same).rewrite is not None
    assert decided(cache, same, ansi=False).rewrite is None  # that SUM is another one
    # their own sum may raise where the query's would not
    assert codes(decided(cache, whole)) == {ReasonCode.SETTINGS_DIFFER}


def test_any_of_the_strings_that_a_collation_takes_for_one() -> None:
    cache = grouped((K,), Agg("max", (S,), S.type), Agg("count", (), "bigint"))
    assert decided(cache, grouped((K,), Agg("count", (), "bigint"))).rewrite is not None
    shown = decided(cache, grouped((K,), Agg("max", (S,), S.type)))
    assert codes(shown) == {ReasonCode.AGG_NOT_DERIVABLE}


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        (less(V, Lit(5, "int")), "(lt($0.c0, 5:int),)"),
        # what cannot be said over the columns is left out: every row of the cache satisfies it
        (Call("lt", (Col(0, "d", "date"), FAR), "boolean"), "()"),
        (less(Call("unwritten", (V,), "int"), Lit(5, "int")), "()"),
    ],
)
def test_guards_that_can_be_said(guard: Expr, said: str) -> None:
    cache = rows(V, K, Col(0, "d", "date"), where=(guard,))
    found = decided(cache, rows(K, where=(guard,)))
    assert found.rewrite is not None
    assert repr(found.rewrite.filters) == said


def test_a_guard_on_a_key_that_may_be_either_zero() -> None:
    text = Call("cast", (X,), "string")
    guard = Call("ne", (text, Lit("-0.0", "string")), "boolean")
    cache = grouped((X,), Agg("count", (), "bigint"), where=(guard,))
    query = grouped((X,), Agg("count", (), "bigint"), where=(guard,))
    found = decided(cache, query)
    assert found.rewrite is not None and found.rewrite.filters == ()


def test_a_guard_with_a_column_that_is_one_constant_without_a_literal() -> None:
    d, e = Col(0, "d", "date"), Col(0, "e", "date")
    near = less(Call("datediff", (d, e), "int"), Lit(5, "int"))
    for day, said in ((Lit(1, "date"), "(lt(datediff(1:date, $0.c1), 5:int),)"), (FAR, "()")):
        where = (Call("eq", (d, day), "boolean"), near)
        found = decided(rows(K, e, where=where), rows(K, where=where))
        assert found.rewrite is not None and repr(found.rewrite.filters) == said
