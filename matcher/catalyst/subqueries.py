"""[NOT] EXISTS and [NOT] IN with a query, as a filter's part of a plan document spells them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SubqueryTest:
    """One test: the query's plan, Spark's conditions that bind it to the query around it, the
    values of IN (None for EXISTS), all as written; `text` shows it."""

    query: dict[str, Any]
    conditions: Sequence[Any]
    values: Sequence[Any] | None
    negated: bool
    text: str


def written_conjuncts(condition: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The parts of a condition joined by AND, in order, as written."""
    if condition[:2] == ["f", "And"]:
        for part in condition[3]:
            yield from written_conjuncts(part)
    else:
        yield condition


def subquery_test(part: Sequence[Any]) -> SubqueryTest | None:
    """The test that a conjunct is, None where it is none or only holds one."""
    negated = part[:2] == ["f", "Not"]
    inner = part[3][0] if negated else part
    if inner[0] != "q":
        return None
    _, _, text, values, query, conditions = inner
    shown = f"NOT {text}" if negated else text
    return SubqueryTest(query, conditions, values, negated, shown)


def without_distinct(query: dict[str, Any]) -> dict[str, Any]:
    """The query of a test without a GROUP BY that only makes its rows distinct: which values there
    are, and whether there are any, stays the same. A single row of a global aggregate is another
    matter."""
    if query["n"] != "Aggregate" or not query["g"] or query.get("cache"):
        return query
    if any(_aggregates(item) for item in query["p"]):
        return query
    return {"n": "Project", "p": query["p"], "c": query["c"]}


def _aggregates(entry: Any) -> bool:
    if not isinstance(entry, list):
        return False
    # a list of one is a parameter, such as the escape character of LIKE
    return (entry[:1] == ["g"] and len(entry) > 1) or any(map(_aggregates, entry))


def written_queries(entry: Any) -> Iterator[dict[str, Any]]:
    """The plans of all queries that an entry of a plan document holds."""
    if not isinstance(entry, list):
        return
    if entry[:2] == ["q", "SUBQUERY"]:  # and not the escape character of LIKE
        yield entry[4]
    for part in entry:
        yield from written_queries(part)
