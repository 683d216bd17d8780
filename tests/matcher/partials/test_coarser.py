"""By which keys partial rows are put together for a rewrite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from matcher.examples import block_of, plan_of
from matcher.index.registry import Registry
from matcher.model.ir import CachePlan, MatchOptions, RecordPreservingJoin, Rewrite
from matcher.partials.coarser import of_keys_read
from matcher.partials.collapse import render_collapsed

MEASURES = (
    "SUM(price) AS p, SUM(qty) AS q, MAX(qty) AS most, COUNT(qty) AS k, COUNT(*) AS n, "
    "MAX(note) AS m"
)
DEEP = f"SELECT item, store, day, {MEASURES} FROM sales GROUP BY item, store, day"


def cached(definition: str = DEEP, rows: int | None = 1000) -> CachePlan:
    return replace(plan_of(definition), base_rows=rows, name="c")


def rewrite_of(plan: CachePlan, query: str) -> Rewrite:
    registry = Registry()
    registry.put(replace(plan, base_rows=None))
    found = registry.decide(block_of(query), MatchOptions()).rewrite
    assert found is not None
    return found


def keys_of(query: str, plan: CachePlan) -> list[str]:
    found = of_keys_read(plan, rewrite_of(plan, query))
    assert "GROUP BY" in render_collapsed(found, "c", MatchOptions())
    return [key.name for key in found.keys or ()]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT store, SUM(price) AS p FROM sales GROUP BY store", ["store"]),
        ("SELECT store, COUNT(*) AS n FROM sales WHERE item > 3 GROUP BY store", ["item", "store"]),
        ("SELECT year(day) AS y, MAX(qty) AS m FROM sales GROUP BY year(day)", ["day"]),
        ("SELECT SUM(qty) AS q FROM sales", ["item"]),
        ("SELECT store, COUNT(DISTINCT item) AS n FROM sales GROUP BY store", ["item", "store"]),
        ("SELECT store, MAX(day) AS d FROM sales GROUP BY store", ["store", "day"]),
        ("SELECT SUM(qty) FILTER (WHERE store = 1) AS q FROM sales", ["store"]),
        ("SELECT store FROM sales GROUP BY store HAVING SUM(price) > 5", ["store"]),
        (
            "SELECT item, store, SUM(price) AS p FROM sales GROUP BY CUBE (item, store)",
            ["item", "store"],
        ),
        (
            "SELECT city, SUM(price) AS p FROM sales JOIN stores ON sales.store = stores.store "
            "GROUP BY city",
            ["store"],
        ),
    ],
)
def test_only_the_keys_that_are_read(query: str, keys: list[str]) -> None:
    assert keys_of(query, cached()) == keys


def test_only_the_measures_that_are_read_and_the_counts() -> None:
    plan = cached()
    found = of_keys_read(plan, rewrite_of(plan, "SELECT SUM(price) AS p FROM sales"))
    assert [m.name for m in found.measures if m.agg.func != "count"] == ["p"]


@pytest.mark.parametrize(
    ("plan", "query"),
    [
        # its rows are the groups, whether their keys are shown or not
        (cached(), "SELECT SUM(price) AS p FROM sales GROUP BY item, store, day"),
        (cached(), "SELECT item, store, day, SUM(price) AS p FROM sales GROUP BY item, store, day"),
        # sums over more rows than those of a group may not fit
        (cached(rows=None), "SELECT SUM(price) AS p FROM sales"),
        (cached(rows=10**12), "SELECT SUM(qty) AS q FROM sales"),
        (
            cached("SELECT item, store, SUM(CAST(id AS BIGINT)) AS i FROM sales GROUP BY 1, 2"),
            "SELECT SUM(CAST(id AS BIGINT)) AS i FROM sales",
        ),
        (
            cached(
                "SELECT item, store, SUM(CAST(qty AS DECIMAL(30,0))) AS i FROM sales GROUP BY 1, 2"
            ),
            "SELECT SUM(CAST(qty AS DECIMAL(30,0))) AS i FROM sales",
        ),
    ],
)
def test_noop_all_keys_are_needed(plan: CachePlan, query: str) -> None:
    assert of_keys_read(plan, rewrite_of(plan, query)) is plan


def test_a_sum_of_bigint_that_is_proven_to_be_small() -> None:
    large = (
        "SELECT item, store, SUM(CAST(id AS BIGINT)) AS i, COUNT(*) AS n FROM sales GROUP BY 1, 2"
    )
    plan = replace(cached(large), exact_sums=frozenset({"i"}))
    assert keys_of("SELECT store, SUM(CAST(id AS BIGINT)) AS i FROM sales GROUP BY 1", plan) == [
        "store"
    ]
    averages = cached("SELECT item, store, AVG(qty) AS a, COUNT(*) AS n FROM sales GROUP BY 1, 2")
    plan = replace(averages, exact_sums=frozenset(m.name for m in averages.measures))
    assert keys_of("SELECT store, AVG(qty) AS a FROM sales GROUP BY store", plan) == ["store"]


def test_noop_a_value_that_the_keys_determine_is_no_state() -> None:
    """MAX(name) of an item is its name: groups of several items have none."""
    plan = cached(
        "SELECT sales.item, store, MAX(name) AS name, COUNT(*) AS n FROM sales "
        "JOIN items ON sales.item = items.item GROUP BY sales.item, store"
    )
    by_key = RecordPreservingJoin("j", "default.sales", "default.items", (("item", "item"),))
    plan = replace(plan, joins=(by_key,))
    joined = "FROM sales JOIN items ON sales.item = items.item"
    for query in (
        f"SELECT name, COUNT(*) AS n {joined} GROUP BY name",
        f"SELECT store, COUNT(*) AS n {joined} WHERE name > 'b' GROUP BY store",
        f"SELECT store, COUNT(DISTINCT name) AS n {joined} GROUP BY store",
    ):
        assert of_keys_read(plan, rewrite_of(plan, query)) is plan
    largest = rewrite_of(plan, f"SELECT store, MAX(name) AS m {joined} GROUP BY store")
    assert [key.name for key in of_keys_read(plan, largest).keys or ()] == ["store"]
