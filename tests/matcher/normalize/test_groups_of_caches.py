"""Definitions over caches whose groups take the caches' places."""

from __future__ import annotations

import pytest

from matcher.examples import SCHEMA
from matcher.model.errors import NotSupported
from matcher.model.ir import Block
from matcher.normalize.groups_of_caches import over_groups
from matcher.normalize.stored_plan import plan_definition
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

TABLES = Schema.parse(SCHEMA + "CREATE TABLE c (item INT, s BIGINT);")
JOINED = "SELECT s.item, s.qty AS s FROM sales s JOIN stores t ON s.store = t.store"


def block(query: str) -> Block:
    (found, *_) = parse_query(query, TABLES).roots
    assert found.block is not None, found.reasons
    return found.block


def put_in(definition: str, query: str) -> Block:
    return over_groups(block(query), {"default.c": plan_definition("c", block(definition))})


@pytest.mark.parametrize("kind", ["LEFT", "LEFT SEMI", "LEFT ANTI"])
def test_a_cache_that_is_outer_joined(kind: str) -> None:
    query = f"SELECT i.name FROM items i {kind} JOIN c ON i.item = c.item"
    rows = put_in("SELECT item, qty AS s FROM sales", query)
    assert [r.key for r in rows.relations] == ["default.items", "default.sales"]
    groups = put_in("SELECT item, SUM(qty) AS s FROM sales WHERE qty > 2 GROUP BY item", query)
    # where rows are only looked for, those of the groups do
    assert (groups.relations[1].groups is not None) is (kind == "LEFT")
    assert len(groups.outer) == 1
    # its filter would be one on the rows of the join, and so would its own join
    for definition, words in (
        ("SELECT item, qty AS s FROM sales WHERE qty > 2", "a cache with a filter that is outer"),
        (JOINED, "a cache of joined tables that is outer"),
    ):
        with pytest.raises(NotSupported, match=words):
            put_in(definition, query)


def test_a_cache_that_is_inner_joined() -> None:
    found = put_in(
        f"{JOINED} WHERE s.qty > 2", "SELECT i.name FROM items i JOIN c ON i.item = c.item"
    )
    assert sorted(r.key for r in found.relations) == [
        "default.items", "default.sales", "default.stores"
    ]  # fmt: skip
    assert len(found.predicates) == 3 and not found.outer
