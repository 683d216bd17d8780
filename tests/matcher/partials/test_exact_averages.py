"""Averages of whole numbers over several parts: which are proven exact, and which are not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matcher.examples import block_of
from matcher.model.expr import Call, Col, Lit
from matcher.model.ir import MatchOptions, OuterJoin, RecordPreservingJoin
from matcher.partials.exact_averages import PartRows, exact_averages, is_one_row_each
from matcher.partials.split import States, split

X, N = Col(0, "x", "bigint"), Col(0, "i", "int")
EDGE = 1 << 53
STORES = RecordPreservingJoin("s", "default.sales", "default.stores", (("store", "STORE"),))
ITEMS = RecordPreservingJoin("i", "default.sales", "default.items", (("item", "item"),))
BOTH = (STORES, ITEMS)


def exact(expr: Call | Col, *parts: PartRows) -> bool:
    return bool(exact_averages({"c": expr}, parts))


@pytest.mark.parametrize(
    ("stored", "fresh", "is_exact"),
    [
        ((2, EDGE // 4), (2, EDGE // 4), True),
        ((2, EDGE // 4), (2, EDGE // 4 + 1), False),
        ((2, EDGE // 4 + 1), (2, EDGE // 4), False),
        ((1, EDGE), (0, 1 << 62), True),
        ((1, EDGE), (1, 0), True),
        ((1, EDGE), (1, 1), False),
    ],
)
def test_all_parts_together_stay_within_what_double_holds(
    stored: tuple[int, int], fresh: tuple[int, int], is_exact: bool
) -> None:
    for sign in (1, -1):
        parts = [
            PartRows(rows, {X: (min(0, sign * bound), max(0, sign * bound))})
            for rows, bound in (stored, fresh)
        ]
        assert exact(X, *parts) is is_exact
        assert exact(X, *reversed(parts)) is is_exact


def test_a_column_of_which_nothing_is_known_has_the_bounds_of_its_type() -> None:
    few, many = PartRows(1 << 22, {}), PartRows((1 << 22) + 1, {})
    assert exact(N, few) and not exact(N, many)
    assert not exact(N, few, PartRows(1, {})), "the new row may hold anything"
    assert exact(N, replace(few, rows=few.rows - 1), PartRows(1, {}))
    assert not exact(X, PartRows(1, {})) and exact(X, PartRows(0, {}))


def test_expressions_are_bounded_by_those_of_their_columns() -> None:
    small = PartRows(10, {X: (-5, 5)})
    for op, exactly in (("add", True), ("mul", True), ("div", False)):
        assert exact(Call(op, (X, X), "bigint"), small) is exactly
    assert not exact(Call("add", (X, Lit(1, "bigint")), "bigint"), small, PartRows(1, {}))


@given(st.lists(st.lists(st.integers(-(1 << 52), 1 << 52), max_size=4), min_size=1, max_size=3))
def test_what_is_proven_adds_up_the_same_in_any_order(parts: list[list[int]]) -> None:
    """The oracle: DOUBLE sums of the values, forwards and backwards, are the sum."""
    known = [PartRows(len(p), {X: (min(p, default=0), max(p, default=0))}) for p in parts]
    values = [v for p in parts for v in p]
    if exact(X, *known):
        for order in (values, values[::-1], sorted(values)):
            total = 0.0
            for value in order:
                total += float(value)
            assert Fraction(total) == sum(values)


def test_states_of_a_block_by_name() -> None:
    block = block_of("SELECT store, AVG(qty) AS a, AVG(item + 1) AS b FROM sales GROUP BY store")
    states = split(block, MatchOptions())
    assert isinstance(states, States)
    parts = [PartRows(1000, {}), PartRows(1 << 21, {Col(0, "qty", "int"): (0, 9)})]
    names = {str(expr): name for name, expr in states.averaged.items()}
    proven = exact_averages(states.averaged, parts)
    assert names["$0.qty"] in proven
    assert names["$0.store"] in proven  # 2^31 times 2^21, and a thousand
    assert not any(name in proven for text, name in names.items() if "add" in text), (
        "item + 1 may overflow"
    )


@pytest.mark.parametrize(
    ("joined", "joins", "once"),
    [
        ("", (), True),
        ("JOIN stores USING (store)", (STORES,), True),
        ("JOIN stores USING (store)", (), False),
        ("JOIN stores USING (store)", (ITEMS,), False),
        ("JOIN stores USING (store)", (replace(STORES, validated=False),), False),
        ("JOIN stores ON qty = stores.store", (STORES,), True),
        ("JOIN stores ON sales.store > stores.store", (STORES,), False),
        ("JOIN stores ON city = note", (STORES,), False),
        ("JOIN stores ON sales.store + 1 = stores.store", (STORES,), False),
        ("CROSS JOIN stores", (STORES,), False),
        ("LEFT JOIN stores USING (store)", (STORES,), True),
        ("LEFT JOIN stores USING (store)", (), False),
        ("LEFT SEMI JOIN stores USING (store)", (), True),
        ("LEFT ANTI JOIN stores USING (store)", (), True),
        ("JOIN stores USING (store) JOIN items USING (item)", BOTH, True),
        ("JOIN stores USING (store) JOIN items USING (item)", (ITEMS,), False),
        ("JOIN stores a USING (store) JOIN stores b ON a.store = b.store", (STORES,), True),
        # of a table that is joined to the second one by its key, but to nothing of the first
        ("JOIN stores a ON a.city = note JOIN stores b ON a.store = b.store", (STORES,), False),
        ("LEFT JOIN (items JOIN stores ON items.item = stores.store) USING (item)", BOTH, True),
        ("LEFT JOIN (items JOIN stores ON name = city) USING (item)", BOTH, False),
    ],
)  # fmt: skip
def test_rows_that_a_join_does_not_repeat(
    joined: str, joins: tuple[RecordPreservingJoin, ...], once: bool
) -> None:
    block = block_of(f"SELECT qty FROM sales {joined}")
    assert block.relations[0].name == "sales"
    assert is_one_row_each(block, 0, joins) is once


def test_half_of_a_key_is_none() -> None:
    block = block_of("SELECT qty FROM sales JOIN stores USING (store)")
    two = replace(STORES, keys=(("store", "store"), ("note", "city")))
    assert not is_one_row_each(block, 0, [two])
    assert is_one_row_each(
        block_of("SELECT qty FROM sales JOIN stores ON sales.store = stores.store AND note = city"),
        0,
        [two],
    )


def test_a_full_join_keeps_rows_of_other_tables() -> None:
    block = block_of("SELECT qty FROM sales LEFT JOIN stores USING (store)")
    (join,) = block.outer
    full = replace(block, outer=(OuterJoin("full", (1,), join.on),))
    assert not is_one_row_each(full, 0, [STORES])


def test_the_rows_of_a_dimension_are_repeated_by_those_of_its_fact() -> None:
    block = block_of("SELECT qty FROM sales JOIN stores USING (store)")
    assert not is_one_row_each(block, 1, [STORES])
