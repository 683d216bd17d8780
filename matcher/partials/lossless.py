"""Definitions whose joins the number of rows tells about.

Where a definition is nothing but one table joined to others by keys that are unique there, it has
each row of that table once at most. Does it have as many rows as were put in, then each of them
found its partners: nothing else could have made up for a loss. Of joins by other keys that says
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from matcher.model.expr import Call, Col, Expr
from matcher.model.ir import CachePlan, RecordPreservingJoin


def joins_told_by_counts(
    plan: CachePlan, held: Iterable[RecordPreservingJoin], grown: str
) -> tuple[RecordPreservingJoin, ...]:
    """The joins that a definition consists of, if it is nothing but one table joined to others by
    their unique keys; none if it is anything else.

    Args:
        plan: The cache.
        held: The record-preserving joins that hold; their joined sides have unique keys.
        grown: Where the one table lies.

    >>> from matcher.examples import plan_of
    >>> joined = plan_of(
    ...     "SELECT city, COUNT(*) AS n FROM sales JOIN stores USING (store) GROUP BY city"
    ... )
    >>> fact, stores = [relation.key for relation in joined.relations]
    >>> held = [RecordPreservingJoin("j", fact, stores, (("store", "store"),))]
    >>> other = RecordPreservingJoin("k", fact, stores, (("item", "store"),))
    >>> [j.name for j in joins_told_by_counts(joined, [*held, other], fact)]
    ['j']
    >>> joins_told_by_counts(joined, [other], fact)
    ()
    """
    places = [relation.key for relation in plan.relations]
    pairs = [equal_columns(part) for part in plan.predicates]
    if plan.outer or len(set(places)) != len(places) or None in pairs:
        return ()
    found = {frozenset((places[c.rel], c.name.lower()) for c in pair) for pair in pairs if pair}
    its_own = tuple(join for join in held if _equalities(join) <= found)
    joined = {join.right for join in its_own}
    others = {place for place in places if place != grown}
    if joined != others or frozenset().union(*map(_equalities, its_own)) != found:
        return ()
    return its_own


def _equalities(join: RecordPreservingJoin) -> frozenset[frozenset[tuple[str, str]]]:
    return frozenset(
        frozenset({(join.left, left.lower()), (join.right, right.lower())})
        for left, right in join.keys
    )


def equal_columns(condition: Expr) -> tuple[Col, Col] | None:
    """The two columns that a conjunct says are equal; None if it says something else.

    Args:
        condition: The conjunct.
    """
    if not isinstance(condition, Call) or condition.op != "eq":
        return None
    left, right = condition.args
    return (left, right) if isinstance(left, Col) and isinstance(right, Col) else None
