"""What constants, order-keeping functions, patterns and predicates are not read as: each was a
guard whose absence no other test noticed. What is not known stays as it is written."""

from __future__ import annotations

from decimal import Decimal

import pytest

from matcher.model.expr import TRUE, Agg, Call, Col, Expr, Lit
from matcher.predicates.aggregate_filters import as_filter
from matcher.predicates.constant_folding import fold
from matcher.predicates.domains import Interval
from matcher.predicates.like_patterns import matches, split_prefix
from matcher.predicates.monotone import monotone
from matcher.predicates.truth import domain_of, truth_of

A, P, S, D = (Col(0, n, t) for n, t in (("a", "int"), ("p", "boolean"), ("s", "string"),
                                        ("d", "date")))  # fmt: skip
BIG = Col(0, "b", "bigint")
FAR = 10_000_000  # days: beyond the year 9999
LAST = 2_932_896  # 9999-12-31


def lit(value: object) -> Lit:
    kinds = {int: "int", str: "string", Decimal: "decimal(3,2)", bytes: "binary"}
    return Lit(value, kinds[type(value)])  # type: ignore[arg-type]


def cast(value: Lit, kind: str) -> Call:
    return Call("cast", (value,), kind)


@pytest.mark.parametrize(
    "call",
    [
        Call("md5", (lit("x"),), "string"),
        Call("case", (TRUE, A), "int"),
        Call("case", (Lit(False, "boolean"), lit(1), A), "int"),
        Call("eq", (lit(1), Lit(1, "bigint")), "boolean"),
        Call("in", (lit(1), Lit(1, "bigint")), "boolean"),
        cast(lit(300), "tinyint"),
        cast(Lit((1 << 53) + 1, "bigint"), "double"),
        cast(lit(Decimal("1.25")), "int"),
        cast(lit(Decimal("0.1")), "float"),
        cast(Lit(1.5, "double"), "float"),
        cast(Lit(0, "date"), "timestamp"),
        cast(Lit(0, "timestamp"), "date"),
        cast(lit(b"1"), "int"),
        cast(lit(1000), "decimal(3,0)"),
        cast(Lit(True, "boolean"), "int"),
        cast(Lit(1, "float"), "double"),
        Call("div", (lit(Decimal("1.25")), lit(Decimal("1.25"))), "decimal(9,6)"),
        Call("last_day", (Lit(FAR, "date"),), "date"),
        Call("substring", (lit("abc"), lit(0), lit(2)), "string"),
        Call("substring", (lit("abc"), lit(1), lit(-1)), "string"),
        Call("year", (Lit(0, "timestamp"),), "int"),
        Call("length", (lit(b"a"),), "int"),
    ],
)
def test_a_call_that_is_left_to_spark(call: Call) -> None:
    assert fold(call) is None


def part(of: Expr, start: object, length: object) -> Call:
    ends = (Lit(start, "int"), Lit(length, "int"))  # type: ignore[arg-type]
    return Call("substring", (of, *ends), "string")


@pytest.mark.parametrize(
    "call",
    [
        part(S, 2, 3),
        part(S, 1, None),
        part(S, 1, 0),
        Call("trunc", (D, lit("DAY")), "date"),
        Call("cast", (BIG,), "int"),
        Call("cast", (BIG,), "float"),
        Call("cast", (S,), "int"),
        Call("cast", (Col(0, "x", "double"),), "float"),
    ],
)
def test_a_function_that_need_not_keep_the_order(call: Call) -> None:
    assert monotone(call) is None


def test_values_at_which_an_order_keeping_function_is_not_known() -> None:
    year = monotone(Call("year", (D,), "int"))
    first = monotone(Call("trunc", (D, lit("YEAR")), "date"))
    start = monotone(part(S, 1, 2))
    assert year is not None and first is not None and start is not None
    assert year.up(FAR) is None and year.up(LAST) == 9999
    assert first.at_least(FAR) is None and first.above(LAST) is None
    assert start.at_least("abc") is None and start.above("abc") is None


def test_patterns_that_spark_refuses() -> None:
    assert matches("a", ("ab",), "a") is None
    assert split_prefix("a\\b%", ()) is None


def test_predicates_that_are_no_set_of_one_operand() -> None:
    for item in (Lit(5, "bigint"), Col(0, "b", "int")):
        found = domain_of(Call("in", (A, item), "boolean"))
        assert found is None or found[0] != A
    for strange in (lit(1), A, Call("not", (lit(1),), "boolean")):
        assert truth_of(strange) is None


@pytest.mark.parametrize(
    "args", [(P, Lit(None, "int"), A), (Call("eq", (A, lit(1)), "boolean"), Lit(None, "int"), P)]
)
def test_a_case_that_is_no_filter(args: tuple[Expr, ...]) -> None:
    agg = Agg("count", (Call("case", args, "int"),), "bigint", False)
    assert as_filter(agg) is agg


def test_a_set_that_holds_nulls_keeps_its_case() -> None:
    args = (Call("case", (P, A), "int"),)
    agg = Agg("collect_set", args, "array<int>", False, params=("0", "0", "false"))
    assert as_filter(agg) is agg


def test_what_double_rounds_is_not_known_of_a_bigint() -> None:
    found = monotone(Call("cast", (BIG,), "double"))
    assert found is not None
    for value in (2.0**53, -(2.0**53), 1e300):
        assert found.at_least(value) is None
        assert found.above(value) is None
    assert found.at_least(2.0**53 - 1) == Interval((1 << 53) - 1, True)
    assert found.above(2.0**53 - 1) == Interval(1 << 53, True)
