"""Definitions whose joins the number of rows tells about.

Where a definition is nothing but one table joined to others by keys that are unique there, it has
each row of that table once at most. Does it have as many rows as were put in, then each of them
found its partners: nothing else could have made up for a loss.
"""

from __future__ import annotations

from collections.abc import Iterable

from matcher.model.expr import Call, Col, Expr
from matcher.model.ir import CachePlan, RecordPreservingJoin


def joins_by_unique_keys_alone(
    plan: CachePlan, held: Iterable[RecordPreservingJoin], grown: str
) -> bool:
    """Whether a definition is nothing but one table joined to others by their unique keys.

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
    >>> joins_by_unique_keys_alone(joined, held, fact), joins_by_unique_keys_alone(joined, [], fact)
    (True, False)
    """
    places = [relation.key for relation in plan.relations]
    by_right = {join.right: join for join in held if join.left in places}
    others = [place for place in places if place != grown]
    if plan.outer or len(set(places)) != len(places) or not set(others) <= by_right.keys():
        return False
    wanted = {
        frozenset({(by_right[place].left, left.lower()), (place, right.lower())})
        for place in others
        for left, right in by_right[place].keys
    }
    pairs = [equal_columns(part) for part in plan.predicates]
    found = {frozenset((places[c.rel], c.name.lower()) for c in pair) for pair in pairs if pair}
    return None not in pairs and found == wanted


def equal_columns(condition: Expr) -> tuple[Col, Col] | None:
    """The two columns that a conjunct says are equal; None if it says something else.

    Args:
        condition: The conjunct.
    """
    if not isinstance(condition, Call) or condition.op != "eq":
        return None
    left, right = condition.args
    return (left, right) if isinstance(left, Col) and isinstance(right, Col) else None
