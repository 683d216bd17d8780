"""Implication and domains, held against brute force over small worlds."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.model.expr import Call, Col, Expr, Lit
from matcher.model.expr import columns as columns_of
from matcher.predicates.constant_folding import fold
from matcher.predicates.context import PredicateContext
from matcher.predicates.implication import implies
from matcher.predicates.truth import domain_of
from tests.matcher.evaluate import evaluate

COLUMNS = [Col(0, name, "int") for name in "abc"]
VALUES = [None, 0, 1, 2, 3]
ROWS = [dict(zip("abc", values, strict=True)) for values in product(VALUES, repeat=3)]


def call(op: str, *args: Expr) -> Call:
    return Call(op, args, "boolean")


def num(value: int | None) -> Lit:
    return Lit(value, "int")


columns = st.sampled_from(COLUMNS)
literals = st.integers(-1, 4).map(num)
comparisons = st.builds(
    call, st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "nseq"]), columns, literals | columns
)
flipped = st.builds(call, st.sampled_from(["eq", "lt", "ge"]), literals, columns)
lists = st.builds(
    lambda c, items: call("in", c, *items),
    columns,
    st.lists(literals | st.just(num(None)), min_size=1, max_size=3),
)
nulls = st.builds(call, st.sampled_from(["isnull", "isnotnull"]), columns)
predicates = st.recursive(
    comparisons | flipped | lists | nulls,
    lambda inner: (
        st.builds(call, st.sampled_from(["and", "or"]), inner, inner)
        | st.builds(lambda a: call("not", a), inner)
    ),
    max_leaves=5,
)


@settings(max_examples=600)
@given(st.lists(predicates, max_size=4), predicates)
def test_whatever_is_implied_holds_in_every_row_that_passes(known: list[Expr], asked: Expr) -> None:
    if implies(PredicateContext(known), asked):
        for row in ROWS:
            if all(evaluate(p, row) is True for p in known):
                assert evaluate(asked, row) is True, row


@settings(max_examples=600)
@given(predicates)
def test_a_predicate_implies_itself_and_keeps_its_meaning(predicate: Expr) -> None:
    context = PredicateContext(())
    canonical = context.canonical(predicate)
    for row in ROWS:
        assert (evaluate(canonical, row) is True) == (evaluate(predicate, row) is True), canonical
    assert implies(PredicateContext([predicate]), predicate)


@settings(max_examples=600)
@given(predicates)
def test_a_domain_is_exactly_what_passes(predicate: Expr) -> None:
    found = domain_of(PredicateContext(()).canonical(predicate))
    if found is None or not isinstance(found[0], Col):
        return
    operand, domain = found
    for value in [*range(-3, 7), None]:
        row = dict.fromkeys("abc", value)
        only = domain_of(
            call("nseq", operand, num(value)) if value is not None else call("isnull", operand)
        )
        assert only is not None
        assert domain.contains(only[1]) == (evaluate(predicate, row) is True), value


@settings(max_examples=400)
@given(st.lists(predicates, min_size=1, max_size=4))
def test_constants_and_never_null_are_true_of_every_row(known: list[Expr]) -> None:
    context = PredicateContext(known)
    passing = [r for r in ROWS if all(evaluate(p, r) is True for p in known)]
    for column in COLUMNS:
        canonical = context.canonical(column)
        pinned = context.constant(canonical)
        for row in passing:
            if pinned is not None:
                assert row[column.name] == pinned.value
            if context.never_null(canonical):
                assert row[column.name] is not None


@settings(max_examples=400)
@given(st.lists(predicates, min_size=1, max_size=3))
def test_columns_of_one_class_are_equal_in_every_row(known: list[Expr]) -> None:
    context = PredicateContext(known)
    for row in ROWS:
        if all(evaluate(p, row) is True for p in known):
            for left, right in product(COLUMNS, repeat=2):
                if left != right and context.find(left) == context.find(right):
                    assert row[left.name] == row[right.name]


@pytest.mark.parametrize(
    ("known", "asked", "implied"),
    [
        ([("gt", 1992), ("le", 1997)], ("in", 1993, 1994, 1995, 1996, 1997), True),
        ([("gt", 1992), ("le", 1997)], ("in", 1993, 1994, 1996, 1997), False),
        ([("eq", 3)], ("isnotnull",), True),
        ([("ne", 3)], ("isnotnull",), True),
        ([("isnull",)], ("ne", 3), False),
        ([("lt", 5)], ("le", 4), True),
    ],
)
def test_whole_numbers_have_no_gaps(known: list[tuple], asked: tuple, implied: bool) -> None:
    def build(spec: tuple) -> Call:
        return call(spec[0], COLUMNS[0], *map(num, spec[1:]))

    assert implies(PredicateContext(map(build, known)), build(asked)) is implied


@pytest.mark.parametrize(
    ("text", "prefix"), [("ab", "a"), ("a\U0010ffffz", "a\U0010ffff"), ("\ud7ff\u00e9", "\ud7ff")]
)
def test_a_prefix_is_a_range_of_strings(text: str, prefix: str) -> None:
    name = Col(0, "a", "string")
    starts = call("startswith", name, Lit(prefix, "string"))
    assert implies(PredicateContext([call("eq", name, Lit(text, "string"))]), starts)
    assert not implies(PredicateContext([call("ge", name, Lit(prefix, "string"))]), starts)


@pytest.mark.parametrize(
    "expr",
    [
        Call("add", (num((1 << 31) - 1), num(1)), "int"),
        Call("neg", (num(-(1 << 31)),), "int"),
        Call("mod", (num(1), num(0)), "int"),
        Call("div", (Lit(1.0, "double"), Lit(0.0, "double")), "double"),
        Call("mul", (Lit(1e200, "double"), Lit(1e200, "double")), "double"),
        Call("lower", (Lit("\u0130", "string"),), "string"),
        Call("add_months", (Lit(2_932_896, "date"), num(1)), "date"),
        Call("like", (Lit("a", "string"), Lit("a\\", "string")), "boolean"),
        Call("cast", (Lit(1.5, "double"),), "int"),
    ],
)
def test_what_could_fail_or_differ_is_left_to_spark(expr: Call) -> None:
    assert fold(expr) is None


def test_float_equality_joins_no_classes() -> None:
    """0.0 = -0.0 is true, and yet one must not be shown for the other."""
    left, right = Col(0, "a", "double"), Col(0, "b", "double")
    context = PredicateContext([call("eq", left, right)])
    assert context.find(left) != context.find(right)
    assert context.constant(left) is None
    assert implies(context, call("eq", right, left))


def test_nan_is_above_every_number_and_equal_to_itself() -> None:
    x = Col(0, "a", "double")
    nan, one = Lit(float("nan"), "double"), Lit(1.0, "double")
    assert implies(PredicateContext([call("eq", x, nan)]), call("gt", x, one))
    assert implies(PredicateContext([call("eq", x, nan)]), call("isnan", x))
    assert implies(PredicateContext([call("lt", x, nan)]), call("not", call("isnan", x)))
    assert not implies(PredicateContext([call("gt", x, one)]), call("not", call("isnan", x)))
    assert not implies(PredicateContext([call("le", x, nan)]), call("le", x, one))
    assert not implies(PredicateContext([call("not", call("isnan", x))]), call("isnotnull", x))


def test_text_of_another_collation_has_no_order_here() -> None:
    kind = "string collate UTF8_LCASE"
    test = Call("eq", (Col(0, "name", kind), Lit("a", kind)), "boolean")
    found = domain_of(test)
    assert found is not None and found[0] == test


def test_a_context_remembers_so_many_expressions_and_all_that_it_settled_on() -> None:
    context = PredicateContext([call("eq", COLUMNS[0], COLUMNS[1])], memo=8)
    own = [call("gt", COLUMNS[1], num(n)) for n in range(20)]
    context.settle_on(own)
    before = [context.canonical(expr) for expr in own]
    for n in range(100, 400):
        assert COLUMNS[1] not in columns_of(context.canonical(call("lt", COLUMNS[1], num(n))))
        assert len(context._canonical) <= len(context._settled) + 8
    assert all(context.canonical(e) is found for e, found in zip(own, before, strict=True))


def test_an_or_is_taken_apart_for_what_it_has_to_do_with() -> None:
    """By name, by an equality of columns, or by a condition that names both; no other branch can
    say anything of the rest."""
    a, b, c, d, e, f = (Col(0, name, "int") for name in "abcdef")
    first = call("or", call("gt", a, num(1)), call("gt", b, num(2)))
    second = call("or", call("gt", e, num(1)), call("gt", f, num(2)))
    known = PredicateContext([first, second, call("gt", b, c), call("eq", d, a)])
    mine, other = known.residuals
    for column in (a, b, c, d):
        assert known.alternatives(known.canonical(call("gt", column, num(9)))) == [mine]
    for column in (e, f):
        assert known.alternatives(known.canonical(call("gt", column, num(9)))) == [other]
    assert known.alternatives(call("gt", Col(0, "g", "int"), num(9))) == []
    assert known.alternatives(call("gt", a, e)) == [mine, other]
    assert implies(known, call("or", call("gt", d, num(0)), call("ge", b, num(3))))
    assert not implies(known, call("or", call("gt", e, num(0)), call("ge", b, num(3))))
