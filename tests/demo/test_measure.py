"""The comparison must be able to say that two answers differ, and the demo to fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cachemgr.demo.measure import (
    QueryResult,
    Run,
    _Answer,
    _row_differences,
    differences,
    failures,
    geometric_mean,
    is_empty,
)

GOOD = Run(0, 2.0, 0.1, 3, 3, hit=True, empty=False)
RESULT = QueryResult("Q1.1", "select 1", (GOOD, replace(GOOD, number=1)))


def answer(spark: Any, sql: str) -> _Answer:
    frame = spark.sql(sql)
    types = tuple((f.name, f.dataType.simpleString()) for f in frame.schema.fields)
    return _Answer(1.0, frame.collect(), types, reads_fact=False)


def test_geometric_mean() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([]) == geometric_mean([1.0, 0.0]) == 0.0


def test_a_good_result_fails_nothing() -> None:
    assert failures([RESULT], 1.0) == ()
    assert (RESULT.hit, RESULT.equal, RESULT.rows) == (True, True, 6)
    assert RESULT.ratio == pytest.approx(20)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (replace(RESULT, error="boom"), "Q1.1 failed: boom"),
        (replace(RESULT, runs=(replace(GOOD, hit=False),), reasons=("STALE: x",)),
         "Q1.1 missed with set 1: STALE: x"),
        (replace(RESULT, runs=(replace(GOOD, differences=("row count: 3 against 4",)),)),
         "Q1.1 set 1 differs in row count"),
        (replace(RESULT, differences=("only with the hook: set 1, (1,)",)), "Q1.1 differs: only"),
        (replace(RESULT, runs=(replace(GOOD, empty=True),)),
         "Q1.1 returned no row with the paper's parameters"),
    ],
)  # fmt: skip
def test_each_way_to_fail(result: QueryResult, text: str) -> None:
    assert failures([result], 1.0)[0].startswith(text)


def test_an_empty_result_is_allowed_below_scale_1() -> None:
    empty = replace(RESULT, runs=(replace(GOOD, empty=True),))
    assert failures([empty], 0.99) == ()
    assert empty.empty_sets == (0,)


def test_differences(spark: Any) -> None:
    two = answer(spark, "SELECT * FROM VALUES (1, 5L), (2, 4L) AS t(k, v) ORDER BY k")
    assert differences(("k",), two, two) == ()
    assert _row_differences([(two, two)]) == ()
    swapped = answer(spark, "SELECT * FROM VALUES (1, 5L), (2, 4L) AS t(k, v) ORDER BY k DESC")
    assert differences(("k",), two, swapped) == ("order by k",)
    assert _row_differences([(two, swapped)]) == ()
    narrow = answer(spark, "SELECT * FROM VALUES (1, 5), (2, 4) AS t(k, v) ORDER BY k")
    assert differences(("k",), two, narrow)[0].startswith("names and types")
    other = answer(spark, "SELECT * FROM VALUES (1, 5L), (2, 3L) AS t(k, v) ORDER BY k")
    assert _row_differences([(two, two), (two, other)]) == (
        "only without the hook: set 2, (2, 4)",
        "only with the hook: set 2, (2, 3)",
    )
    # The same rows, one of them twice: a set comparison would not see it.
    twice = answer(spark, "SELECT * FROM VALUES (1, 5L), (2, 4L), (2, 4L) AS t(k, v)")
    assert _row_differences([(two, twice)]) == ("only with the hook: set 1, (2, 4)",)


def test_is_empty(spark: Any) -> None:
    assert is_empty(spark.sql("SELECT sum(id) FROM range(0)").collect())
    assert is_empty([])
    assert not is_empty(spark.sql("SELECT sum(id) FROM range(3)").collect())


def test_what_the_session_has_seen_is_not_timed() -> None:
    runs = (GOOD, *(replace(GOOD, number=n, seconds_with=n / 10) for n in range(1, 6)))
    result = replace(RESULT, runs=(replace(GOOD, seconds_with=9.0), *runs[1:]))
    assert (result.with_hook, result.without) == (0.3, 2.0)
    drawn_empty = replace(result, runs=(GOOD, replace(GOOD, number=1, empty=True)))
    assert failures([drawn_empty], 1.0) == () and drawn_empty.empty_sets == (1,)
