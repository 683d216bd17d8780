"""TPC-H and TPC-DS: all queries parse, enough are served by few caches, the page says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.tpc import report, suite
from tests.harness.tpc.order import differences
from tests.harness.tpc.spark_suite import SparkSuite

# A cross-section for every test run; make tpc runs them all.
SAMPLE = ("h01", "h02", "h06", "h11", "h22")


@pytest.mark.parametrize("name", suite.SUITES)
def test_every_query_parses_to_blocks(name: str) -> None:
    assert len(suite.queries(name)) == suite.COUNTS[name]
    assert list(suite.unreadable(name)) == []


@pytest.mark.parametrize("name", suite.SUITES)
def test_few_caches_are_declared(name: str) -> None:
    assert len(suite.workspace(name).plans) <= suite.MOST_CACHES


def test_the_page_says_what_is_served() -> None:
    assert report.PAGE.read_text() == report.page(), "run python -m tests.harness.tpc, or make tpc"


@pytest.mark.parametrize("name", suite.SUITES)
def test_enough_is_served_with_equal_rows(name: str) -> None:
    assert report.proven(name) >= suite.WANTED[name], "run make tpc"


@pytest.mark.parametrize(
    ("got", "wrong"),
    [
        ([(1, 1), (1, 2), (2, 3)], False),
        ([(1, 2), (1, 1), (2, 3)], False),
        ([(2, 3), (1, 1), (1, 2)], True),
        ([(1, 1), (1, 2)], True),
        ([(1, 1), (1, 2), (2, 4)], True),
    ],
)
def test_rows_may_change_places_only_where_the_order_does_not_tell(got, wrong: bool) -> None:
    columns = [("a", "int"), ("b", "int")]
    text = "SELECT a, b FROM t ORDER BY a"
    assert bool(differences(text, columns, [(1, 1), (1, 2), (2, 3)], columns, got)) is wrong
    assert differences(text, columns, [], [("a", "int"), ("b", "bigint")], [])


@pytest.fixture(scope="module")
def tpc_h(spark, tmp_path_factory) -> Iterator[SparkSuite]:
    made = SparkSuite(spark, "h", tmp_path_factory.mktemp("caches"))
    try:
        yield made
    finally:
        made.drop()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("query", SAMPLE)
def test_rows_with_and_without_the_caches(query: str, tpc_h: SparkSuite) -> None:
    found = tpc_h.run(query)
    assert found.caches and found.rows and found.right, found
