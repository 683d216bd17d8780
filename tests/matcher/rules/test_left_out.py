"""A table that a query joins by a record-preserving join and needs nothing of is left out, and only
then."""

from __future__ import annotations

import pytest

from matcher.examples import SCHEMA, block_of, plan_of
from matcher.index.registry import Registry
from matcher.model.ir import MatchOptions
from matcher.sql.schema import Schema

DEFINITION = "SELECT store, item, day, qty, id FROM sales"
JOINED = "SELECT SUM(qty) AS s FROM sales JOIN items ON sales.item = items.item"


def is_left_out(query: str, definition: str = DEFINITION) -> bool:
    """Whether a cache answers that has not the table, and is joined with nothing."""
    registry = Registry()
    registry.put(plan_of(definition))
    options = MatchOptions(time_zone="UTC", keys=Schema.parse(SCHEMA).joins())
    found = registry.decide(block_of(query), options).rewrite
    return found is not None and not found.extra


@pytest.mark.parametrize(
    "more",
    [
        "",
        " WHERE sales.store = 3",
        # what the join says itself, and what is about its key
        " WHERE items.item IS NOT NULL AND sales.item = items.item",
        " WHERE items.item IN (1, 2, 3)",
        " WHERE sales.item IN (items.item, 3)",
        " WHERE items.item = 3 OR sales.store = 1",
    ],
)
def test_what_needs_nothing_of_the_table(more: str) -> None:
    assert is_left_out(JOINED + more)


@pytest.mark.parametrize(
    "query",
    [
        f"{JOINED} WHERE items.name = 'a'",
        f"{JOINED} FULL JOIN stores ON sales.store = stores.store",
        f"{JOINED} LEFT JOIN stores ON stores.city = items.name",
        JOINED.replace("sales.item = items.item", "sales.store = items.item"),
    ],
)
def test_what_needs_something_of_it(query: str) -> None:
    assert not is_left_out(query)


def test_a_full_join_makes_rows_that_find_none() -> None:
    full = "FROM sales FULL JOIN stores ON sales.store = stores.store"
    definition = f"SELECT qty, city, sales.item {full}"
    assert is_left_out(f"SELECT SUM(qty) AS s {full}", definition)
    joined = full.replace("sales FULL", "sales JOIN items ON sales.item = items.item FULL")
    assert not is_left_out(f"SELECT SUM(qty) AS s {joined}", definition)


def test_a_left_join_by_a_column_of_the_table_keeps_it() -> None:
    left = "LEFT JOIN stores ON sales.store = stores.store"
    definition = f"SELECT qty, city, sales.item FROM sales {left}"
    joined = "SELECT SUM(qty) AS s FROM sales JOIN items ON sales.item = items.item"
    assert is_left_out(f"{joined} {left}", definition)
    assert not is_left_out(f"{joined} {left} AND stores.store = items.item", definition)


def test_the_second_of_two_facts_finds_it() -> None:
    both = "FROM sales AS a JOIN sales AS b ON a.id = b.store"
    definition = f"SELECT a.qty, b.item {both}"
    query = f"SELECT SUM(a.qty) AS s {both} JOIN items ON b.item = items.item"
    assert is_left_out(query, definition)
