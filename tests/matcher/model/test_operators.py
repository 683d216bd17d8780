"""Each column of the table of operators, held to an evaluator of its own or to Spark."""

from __future__ import annotations

from itertools import product
from math import nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matcher.model.expr import Call, Col
from matcher.model.functions import FUNCTIONS
from matcher.model.operators import (
    COMMUTES,
    COMPARES,
    COMPARISONS,
    FLIPPED,
    NEGATION,
    NULL_FOR_NULL_ONLY,
    NULL_REJECTING,
    OPERATORS,
    ORDER_COMPARISONS,
    SKIPS_NULLS,
    STRICT,
    compared,
)
from tests.matcher.evaluate import evaluate

NUMBERS = st.none() | st.integers(-3, 3) | st.sampled_from([nan, 0.0, -0.0, 1.5, float("inf")])
TRUTHS = st.sampled_from([None, True, False])
_CONNECTIVES = {"and", "or"}
# what the evaluator knows
TESTS = [*FLIPPED, "isnull", "isnotnull"]


def value(op: str, *args: Any) -> Any:
    row = {f"a{i}": arg for i, arg in enumerate(args)}
    return evaluate(Call(op, tuple(Col(0, name, "double") for name in row), "boolean"), row)


@given(NUMBERS, NUMBERS)
def test_negations(a: Any, b: Any) -> None:
    assert NEGATION.keys() == {*COMPARISONS, "isnull", "isnotnull"}
    for op, negation in NEGATION.items():
        args = (a, b) if op in COMPARISONS else (a,)
        found = value(op, *args)
        assert value(negation, *args) == (None if found is None else not found), op
        assert NEGATION[negation] == op


@given(NUMBERS, NUMBERS)
def test_flipped_comparisons(a: Any, b: Any) -> None:
    assert FLIPPED.keys() == COMPARISONS | {"nseq"}
    for op, flipped in FLIPPED.items():
        assert value(op, a, b) == value(flipped, b, a), op


@given(TRUTHS, TRUTHS, st.integers(), st.integers())
def test_what_commutes(p: Any, q: Any, a: int, b: int) -> None:
    assert COMMUTES == {"eq", "ne", "nseq", "and", "or", "add", "mul"}  # `mul` is Python's own
    for op in _CONNECTIVES:
        assert value(op, p, q) == value(op, q, p)
    assert value("add", a, b) == value("add", b, a)


@given(NUMBERS, NUMBERS)
def test_signs_say_where_a_comparison_is_true(a: Any, b: Any) -> None:
    if a is None or b is None:
        return
    sign = 1 if value("gt", a, b) else 0 if value("eq", a, b) else -1
    for op in FLIPPED:
        assert value(op, a, b) == (sign in OPERATORS[op].signs), op
        if a == a and b == b:
            assert value(op, a, b) == compared(op, a, b), op


@given(NUMBERS, NUMBERS)
def test_what_compares_looks_at_values_alone(a: Any, b: Any) -> None:
    """Of -0.0 and 0.0 it says the same."""
    assert COMPARES == FLIPPED.keys() | {"in"} and COMPARES - NULL_REJECTING == {"nseq"}
    for op in COMPARES:
        assert (value(op, None, b) is None) is (op in NULL_REJECTING), op
        plain = [0.0 if arg == 0 else arg for arg in (a, b)]
        assert value(op, a, b) == value(op, *plain), op


def test_what_needs_order_tells_less_from_more() -> None:
    assert {op for op in FLIPPED if value(op, 1, 2) != value(op, 2, 1)} == ORDER_COMPARISONS


def test_strict_operators_and_those_that_are_not() -> None:
    for op in TESTS:
        number = 1 if op in ("isnull", "isnotnull") else 2
        with_null = [args for args in product((None, 1), repeat=number) if None in args]
        always = all(value(op, *args) is None for args in with_null)
        assert always == OPERATORS[op].strict, op
        assert OPERATORS[op].null_for_null_only and value(op, *[1] * number) is not None
    for op in _CONNECTIVES:
        assert value(op, None, op == "or") is not None and op not in STRICT


_D, _T, _S = "DATE'2024-02-03'", "TIMESTAMP'2024-02-03 04:05:06'", "'abc'"
SAMPLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        "year quarter month day dayofweek weekday dayofyear weekofyear last_day unix_date".split(),
        (_D,),
    ),
    **dict.fromkeys(["hour", "minute", "second"], (_T,)),
    **dict.fromkeys(
        "upper lower trim ltrim rtrim length reverse initcap md5 crc32 ascii".split(), (_S,)
    ),
    **dict.fromkeys("abs sign sqrt exp ceil floor ln log10 log2".split(), ("2.5D",)),
    "round": ("2.5D", "1"), "bround": ("2.5D", "1"), "power": ("2.5D", "2D"), "pmod": ("7", "3"),
    "substring": (_S, "1", "2"), "concat": (_S, _S), "replace": (_S, "'a'", "'b'"),
    "left": (_S, "1"), "right": (_S, "1"), "lpad": (_S, "5", "'x'"), "rpad": (_S, "5", "'x'"),
    "instr": (_S, "'b'"), "translate": (_S, "'a'", "'b'"), "repeat": (_S, "2"),
    "substring_index": (_S, "'b'", "1"), "next_day": (_D, "'MON'"), "date_add": (_D, "1"),
    "date_sub": (_D, "1"), "add_months": (_D, "1"), "datediff": (_D, _D),
    "months_between": (_D, _D), "trunc": (_D, "'MM'"), "date_trunc": ("'HOUR'", _T),
    "date_format": (_T, "'yyyy'"), "to_timestamp_ltz": (_S, "'yyyy'"),
    "to_timestamp_ntz": (_S, "'yyyy'"), "from_unixtime": ("5L", "'yyyy'"),
    "unix_timestamp": (_T, "'yyyy'"), "to_unix_timestamp": (_T, "'yyyy'"), "like": (_S, "'a%'"),
    "startswith": (_S, "'a'"), "endswith": (_S, "'a'"), "contains": (_S, "'a'"),
}  # fmt: skip


def test_each_has_a_sample() -> None:
    assert STRICT & FUNCTIONS.keys() <= SAMPLES.keys()


@pytest.mark.spark
def test_strict_functions_are_null_for_any_argument_that_is(spark) -> None:
    places = [
        (name, args, place)
        for name, args in SAMPLES.items()
        if name in STRICT and name in FUNCTIONS
        for place in range(len(args))
    ]
    found = {}
    for name, args, place in places:
        call = f"{name}({', '.join((*args[:place], 'v', *args[place + 1 :]))})"
        null = f"(SELECT IF(id > 9, {args[place]}, NULL) AS v FROM range(1))"
        try:
            (row,) = spark.sql(f"SELECT {call} AS r FROM {null}").collect()
        except Exception as error:  # an argument that must be a constant cannot be NULL
            assert "NON_FOLDABLE" in str(error), f"{call}: {error}"
            continue
        found[call] = row.r
    assert {call for call, value in found.items() if value is not None} == set()
    assert len(found) > 60


# values at which a function might give up: empty, negative, extreme, far away
ODD = {
    "'abc'": ("''", "' '", "'\\u0000'", "'ÄÖ'"),
    "2.5D": ("0D", "-1D", "double('NaN')", "double('-Infinity')", "1e308D"),
    "DATE'2024-02-03'": ("DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1582-10-10'"),
    "TIMESTAMP'2024-02-03 04:05:06'": ("TIMESTAMP'0001-01-01 00:00:00'", "TIMESTAMP'9999-12-31'"),
}


@pytest.mark.spark
def test_functions_that_are_null_for_null_only(spark) -> None:
    names = sorted(NULL_FOR_NULL_ONLY & FUNCTIONS.keys())
    calls = []
    for name in names:
        for args in product(*((sample, *ODD.get(sample, ())) for sample in SAMPLES[name])):
            calls.append(f"{name}({', '.join(args)})")
    tests = [f"({call}) IS NULL" for call in calls]
    (row,) = spark.sql(f"SELECT {', '.join(tests)}").collect()
    assert [call for call, null in zip(calls, row, strict=True) if null] == []
    assert len(calls) > 100


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(SKIPS_NULLS))
def test_aggregates_that_skip_nulls(spark, name: str) -> None:
    rows = "VALUES (1), (NULL), (5), (NULL), (2) AS t(v)"
    call = f"{name}(v)" if name != "collect_set" else f"sort_array({name}(v))"
    (with_nulls,) = spark.sql(f"SELECT {call} FROM {rows}").collect()
    (without,) = spark.sql(f"SELECT {call} FROM {rows} WHERE v IS NOT NULL").collect()
    assert with_nulls == without
