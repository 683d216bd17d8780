"""What is put after the names of tables that a rewritten text still reads, as VERSION AS OF is."""

from __future__ import annotations

import pytest

from matcher.render.select import NotRenderable
from matcher.sql.reader import TextQuery, parse_query
from matcher.sql.schema import Schema, Table

SCHEMA = Schema.parse(
    "CREATE TABLE a (k INT, v BIGINT); CREATE TABLE b (k INT); "
    "CREATE VIEW over_a AS SELECT k, v FROM a"
)
GROUPS = "(SELECT k, SUM(v) AS s FROM a GROUP BY k)"


def version(table: Table) -> str:
    return f"VERSION AS OF {len(table.columns)}"


def replaced(query: TextQuery) -> str:
    """The query with its aggregating SELECTs from a cache."""
    blocks = [b for b in query.walk() if b.block is not None and b.block.is_aggregate]
    return query.replace(dict.fromkeys(blocks, "SELECT k, s FROM c"), version)


def test_each_table_that_is_left_gets_it() -> None:
    query = parse_query(
        f"SELECT x.s FROM {GROUPS} x JOIN b ON x.k = b.k JOIN a ON a.k = b.k", SCHEMA
    )
    assert replaced(query) == (
        "SELECT x.s FROM (SELECT k, s FROM c) x JOIN b VERSION AS OF 1 ON x.k = b.k "
        "JOIN a VERSION AS OF 2 ON a.k = b.k"
    )


def test_what_has_a_version_or_is_a_cte_does_not() -> None:
    query = parse_query(
        f"WITH q AS (SELECT k FROM b) SELECT x.s FROM {GROUPS} x, q, a VERSION AS OF 7", SCHEMA
    )
    assert replaced(query) == (
        "WITH q AS (SELECT k FROM b VERSION AS OF 1) SELECT x.s FROM (SELECT k, s FROM c) x, q, "
        "a VERSION AS OF 7"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"SELECT x.s FROM {GROUPS} x JOIN over_a ON over_a.k = x.k", "a view"),
        (
            "SELECT x.s FROM (FROM a SELECT k, SUM(v) AS s GROUP BY k) x JOIN b ON x.k = b.k",
            "a SELECT whose place",
        ),
        (f"SELECT x.s FROM {GROUPS} x, delta.`/some/place` d", "a clause after"),
    ],
)
def test_there_may_be_no_place_for_it(text: str, words: str) -> None:
    with pytest.raises(NotRenderable, match=words):
        replaced(parse_query(text, SCHEMA))
