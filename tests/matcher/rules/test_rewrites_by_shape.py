"""Which rewrites are right for any constants of their query's shape: these are filled in, and the
hook keeps them."""

from __future__ import annotations

import pytest

from matcher.examples import block_of, plan_of
from matcher.index.registry import Registry

CACHE = "SELECT item, store, SUM(qty) AS q, COUNT(*) AS n FROM sales GROUP BY item, store"


def by_shape(first: str, second: str, cache: str = CACHE) -> bool:
    """Whether the second query is answered by the rewrite of the first one, which then is the one
    that it has by itself."""
    registry, fresh = Registry(), Registry()
    for each in (registry, fresh):
        each.put(plan_of(cache))
    assert registry.decide(block_of(first)).rewrite is not None
    found, own = registry.decide(block_of(second)), fresh.decide(block_of(second))
    assert found.rewrite == own.rewrite
    return found.by_shape


@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        ("SELECT store, SUM(qty) AS q FROM sales WHERE item <> {} GROUP BY store", (1,), (2,)),
        ("SELECT item, store, SUM(qty) AS q FROM sales WHERE item > {} GROUP BY 1, 2", (1,), (2,)),
        # groups of the cache, since what is left out of the keys is one value, whichever that is
        ("SELECT item, SUM(qty) AS q FROM sales WHERE store = {} GROUP BY item", (1,), (2,)),
        ("SELECT SUM(qty) AS q FROM sales WHERE store = {} AND item = {}", (1, 2), (2, 1)),
    ],
)
def test_any_other_constants(query: str, first: tuple, second: tuple) -> None:
    assert by_shape(query.format(*first), query.format(*second))


@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        # one store is left by these two, and not by others
        ("SELECT item, SUM(qty) AS q FROM sales WHERE store > {} AND store < {} GROUP BY item",
         (1, 3), (1, 9)),
        ("SELECT item, SUM(qty) AS q FROM sales WHERE store >= {} AND store <= {} GROUP BY item",
         (1, 1), (1, 2)),
    ],
)  # fmt: skip
def test_not_where_their_values_decided_the_groups(query: str, first: tuple, second: tuple) -> None:
    assert not by_shape(query.format(*first), query.format(*second))


def test_not_where_the_cache_has_constants() -> None:
    query = "SELECT item, SUM(qty) AS q FROM sales WHERE store > {} GROUP BY item"
    cache = CACHE.replace("FROM sales", "FROM sales WHERE store > 0")
    assert not by_shape(query.format(1), query.format(2), cache)


def test_not_where_the_cache_has_a_having() -> None:
    query = (
        "SELECT item, SUM(qty) AS q FROM sales WHERE store = {} GROUP BY item HAVING COUNT(*) > 1"
    )
    cache = f"{CACHE} HAVING COUNT(*) > 1"
    assert not by_shape(query.format(1), query.format(2), cache)
    assert by_shape(query.format(1), query.format(2))  # a cache without one answers them alike
