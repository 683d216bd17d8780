"""[NOT] EXISTS and [NOT] IN with a query, as a filter's part of a plan document spells them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matcher.catalyst import document as doc
from matcher.catalyst.document import Entry, Node


@dataclass(frozen=True, slots=True)
class SubqueryTest:
    """One test: the query's plan, Spark's conditions that bind it to the query around it, the
    values of IN (None for EXISTS), all as written; `text` shows it."""

    query: Node
    conditions: Sequence[Entry]
    values: Sequence[Entry] | None
    negated: bool
    text: str


def written_conjuncts(condition: Entry) -> Iterator[Entry]:
    """The parts of a condition joined by AND, in order, as written."""
    if doc.is_call(condition, "And"):
        for part in doc.args_of(condition):
            yield from written_conjuncts(part)
    else:
        yield condition


def subquery_test(part: Entry) -> SubqueryTest | None:
    """The test that a conjunct is, None where it is none or only holds one."""
    negated = doc.is_call(part, "Not")
    inner = doc.args_of(part)[0] if negated else part
    if doc.tag(inner) != doc.SUBQUERY:
        return None
    found = doc.subquery(inner)
    shown = f"NOT {found.text}" if negated else found.text
    return SubqueryTest(found.plan, found.conditions, found.values, negated, shown)


def without_distinct(query: Node) -> Node:
    """The query of a test without a GROUP BY that only makes its rows distinct: which values there
    are, and whether there are any, stays the same. A single row of a global aggregate is another
    matter."""
    if doc.operator(query) != "Aggregate" or not doc.keys_of(query) or doc.is_answered(query):
        return query
    if doc.has_aggregates(doc.expressions(query)):
        return query
    return doc.projection(doc.expressions(query), doc.child(query))
