"""Which ways are open after which change, by the plan alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachemgr.refresh.by_change.ways import Change, OpenWays, open_ways
from cachemgr.refresh.by_change.why_full import FullCode
from matcher.examples import plan_of
from matcher.model.ir import CachePlan, MatchOptions


def ways(plan: CachePlan) -> dict[tuple[str, Change], OpenWays]:
    return {(w.table, w.change): w for w in open_ways(plan, MatchOptions())}


def appended(sql: str, table: str = "sales") -> OpenWays:
    return ways(plan_of(sql))[table, Change.APPENDED]


def removed(sql: str, table: str = "sales") -> OpenWays:
    return ways(plan_of(sql))[table, Change.REMOVED]


def test_each_table_and_change_once() -> None:
    joined = "SELECT city, SUM(qty) AS s FROM sales JOIN stores USING (store) GROUP BY city"
    assert list(ways(plan_of(joined))) == [(t, c) for t in ("sales", "stores") for c in Change]


def test_rows_that_went_are_taken_from_sums_and_from_nothing_else() -> None:
    sums = removed("SELECT store, SUM(qty) AS s FROM sales GROUP BY store")
    assert sums.ways == ("REPLACE", "PARTIALS", "FULL") and sums.why is None
    for sql in (
        "SELECT store, MAX(qty) AS m FROM sales GROUP BY store",
        "SELECT store, qty FROM sales WHERE qty > 1",
    ):
        found = removed(sql)
        assert found.ways == ("FULL",) and found.why is not None
        assert found.why.code is FullCode.ROWS_REMOVED
        assert found.told().startswith("FULL: ROWS_REMOVED: rows of sales went, and ")


def test_groups_are_replaced_or_get_partial_rows() -> None:
    found = appended("SELECT store, SUM(qty) AS s FROM sales GROUP BY store")
    assert found.ways == ("REPLACE", "PARTIALS", "FULL") and found.why is None
    assert found.told() == (
        "REPLACE or PARTIALS (where a set has more than 100,000 groups), unless that costs more "
        "than 80% of FULL"
    )
    assert appended("SELECT SUM(qty) AS s FROM sales").ways == ("REPLACE", "FULL")


def test_rows_are_appended() -> None:
    found = appended("SELECT store, qty FROM sales WHERE qty > 1")
    assert found.ways == ("APPEND", "FULL") and found.told().startswith("APPEND, unless")


@pytest.mark.parametrize(
    ("sql", "table", "code", "said"),
    [
        (
            "SELECT qty, city FROM sales LEFT JOIN stores USING (store)",
            "stores",
            FullCode.DELTA_NOT_LINEAR,
            "right of a LEFT JOIN",
        ),
        (
            "SELECT store, COUNT(DISTINCT qty) AS n FROM sales GROUP BY store",
            "sales",
            FullCode.NOT_MERGEABLE,
            "does not add up",
        ),
        (
            "SELECT store, SUM(qty) AS q FROM sales GROUP BY store HAVING SUM(qty) > 3",
            "sales",
            FullCode.HAVING,
            "is not stored, and may pass it now",
        ),
        ("SELECT store, qty FROM sales ORDER BY qty LIMIT 3", "sales", FullCode.TOP_K, "first 3"),
    ],
)
def test_why_appended_rows_are_not_enough(sql: str, table: str, code: FullCode, said: str) -> None:
    found = appended(sql, table)
    assert found.ways == ("FULL",) and found.why is not None
    assert found.why.code is code and said in found.told()


def test_an_average_of_whole_numbers_waits_for_a_proof() -> None:
    plan = plan_of("SELECT store, AVG(qty) AS a FROM sales GROUP BY store")
    before = ways(replace(plan, exact_sums=frozenset()))["sales", Change.APPENDED]
    assert "REPLACE" in before.ways and before.why is None
    told = before.told()
    assert "once a refresh has proven its sums small; FULL until then: NOT_MERGEABLE" in told
    proven = replace(plan, exact_sums=frozenset(m.name for m in plan.measures))
    assert "proven" not in ways(proven)["sales", Change.APPENDED].told()
