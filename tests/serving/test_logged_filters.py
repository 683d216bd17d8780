"""What the log keeps of a hit's filters: columns and how many values or how wide, never a value."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest

from cachemgr.serving.logged_filters import MOST_COLUMNS, MOST_FILTERS, columns_of, logged_filters
from matcher.model.expr import Call, Col, Expr, Lit
from matcher.model.ir import Rewrite

DAY, KEY, NAME = Col(0, "day", "date"), Col(0, "k", "bigint"), Col(0, "name", "string")
EVENT = Col(0, "ts", "timestamp")


def call(op: str, *args: Expr) -> Call:
    return Call(op, args, "boolean")


def number(value: int) -> Lit:
    return Lit(value, "bigint")


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        (call("eq", KEY, number(7)), {"kind": "points", "points": 1}),
        (call("eq", number(7), KEY), {"kind": "points", "points": 1}),
        (call("nseq", KEY, number(7)), {"kind": "points", "points": 1}),
        (call("in", KEY, number(7), number(8)), {"kind": "points", "points": 2}),
        (call("gt", KEY, number(7)), {"kind": "range", "width": None}),
        (call("lt", number(7), KEY), {"kind": "range", "width": None}),
        (
            call("and", call("ge", KEY, number(7)), call("le", KEY, number(19_000))),
            {"kind": "range", "width": 20_000.0},
        ),
        (
            call("and", call("gt", number(90), KEY), call("lt", number(80), KEY)),
            {"kind": "range", "width": 10.0},
        ),
    ],
)
def test_a_comparison_with_constants_is_told_without_them(condition, told):
    assert columns_of([condition]) == [{"column": "k", **told}]


@pytest.mark.parametrize(
    "condition",
    [
        call("ne", KEY, number(7)),
        call("eq", KEY, Col(0, "other", "bigint")),
        call("eq", Col(1, "k", "bigint"), number(7)),
        call("or", call("eq", KEY, number(7)), call("eq", DAY, Lit(1, "date"))),
        call("in", KEY, number(7), Col(0, "other", "bigint")),
        call("eq", Call("abs", (KEY,), "bigint"), number(7)),
        Call("isnotnull", (KEY,), "boolean"),
        KEY,
    ],
)
def test_what_rules_out_no_file_is_left_out(condition):
    assert columns_of([condition]) == []


def test_ranges_of_times_are_in_days_and_of_text_of_no_width():
    day = 86_400_000_000
    times = [call("ge", EVENT, Lit(0, "timestamp")), call("lt", EVENT, Lit(7 * day, "timestamp"))]
    texts = [call("startswith", NAME, Lit("secret", "string"))]
    tens = Col(0, "d", "decimal(9,2)")
    decimals = [
        call("ge", tens, Lit(Decimal("1.00"), "decimal(9,2)")),
        call("le", tens, Lit(Decimal("2.00"), "decimal(9,2)")),
    ]
    assert columns_of([*times, *texts, *decimals]) == [
        {"column": "ts", "kind": "range", "width": 7.0},
        {"column": "name", "kind": "range", "width": None},
        {"column": "d", "kind": "range", "width": None},
    ]


def test_a_column_with_points_and_a_range_is_one_of_points():
    found = columns_of([call("ge", KEY, number(1)), call("in", KEY, number(1), number(2))])
    assert found == [{"column": "k", "kind": "points", "points": 2}]


def test_no_constant_is_kept():
    filters = [
        call("eq", NAME, Lit("Miller", "string")),
        call("ge", KEY, number(0)),
        call("le", KEY, number(123_456)),
    ]
    text = json.dumps(columns_of(filters))
    assert "Miller" not in text and "123" not in text and "100000" in text


@dataclass
class Hit:
    rewrite: Rewrite


def test_each_branch_is_a_read_and_guards_are_no_filter():
    one = Rewrite("c", None, (call("eq", KEY, number(7)),), None, ())
    guarded = replace(one, guards=frozenset(one.filters))
    both = replace(one, filters=(), branches=(one, guarded))
    points = {"column": "k", "kind": "points", "points": 1}
    assert logged_filters([Hit(both)]) == (  # type: ignore[list-item]
        {"cache": "c", "columns": [points]},
        {"cache": "c", "columns": []},
    )


def test_it_is_bounded():
    wide = [call("eq", Col(0, f"c{i}", "int"), Lit(1, "int")) for i in range(2 * MOST_COLUMNS)]
    assert len(columns_of(wide)) == MOST_COLUMNS
    many = [Hit(Rewrite("c", None, (), None, ()))] * (2 * MOST_FILTERS)
    assert len(logged_filters(many)) == MOST_FILTERS  # type: ignore[arg-type]
