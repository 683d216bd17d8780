"""What cannot be rolled up, and what is said of it."""

from __future__ import annotations

import pytest

from matcher.index.registry import Registry
from matcher.model.ir import Block, MatchOptions
from matcher.normalize.stored_plan import plan_definition
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

SCHEMA = Schema.parse("CREATE TABLE t (k INT, few DECIMAL(20,2), many DECIMAL(28,18), s BINARY)")


def block(text: str) -> Block:
    (found,) = parse_query(text, SCHEMA).walk()
    assert found.block is not None
    return found.block


def told(definition: str, query: str) -> list[tuple[str, str]]:
    """The codes and words of the reasons; nothing of a hit."""
    registry = Registry()
    registry.put(plan_definition("c", block(definition)))
    found = registry.decide(block(query), MatchOptions(time_zone="UTC"))
    return [] if found.rewrite else [(r.code.value, r.detail) for r in found.reasons]


def test_the_minus_of_a_sum_whose_digits_no_operator_keeps() -> None:
    definition = "SELECT k, SUM({}) AS s, COUNT(*) AS n FROM t GROUP BY k"
    assert told(definition.format("few"), "SELECT SUM(-few) AS a FROM t") == []
    [(code, words)] = told(definition.format("many"), "SELECT SUM(-many) AS a FROM t")
    assert code == "MAY_OVERFLOW" and "has too many digits" in words


@pytest.mark.parametrize(("sizes", "code"), [("FALSE", []), ("TRUE", ["AGG_NOT_DERIVABLE"])])
def test_sketches_of_several_sizes_come_in_an_order(sizes: str, code: list[str]) -> None:
    union = f"HLL_UNION_AGG(s, {sizes}) AS h FROM t"
    definition = f"SELECT k, {union} GROUP BY k"
    assert told(definition, definition) == []
    assert [each for each, _ in told(definition, f"SELECT {union}")] == code


@pytest.mark.parametrize(
    ("limit", "says"),
    [("", "the query asks for all rows"), (" LIMIT 9", "asks for the first 9"), (" LIMIT 5", None)],
)
def test_the_first_rows_alone(limit: str, says: str | None) -> None:
    first = "SELECT k FROM t ORDER BY k"
    found = told(f"{first} LIMIT 5", first + limit)
    assert [code for code, _ in found] == ([] if says is None else ["LIMIT_NOT_CONTAINED"])
    assert says is None or says in found[0][1]
