"""Joins that a rewrite does itself: tables of the query that the cache does not have, and a table
that it has once more, to fetch a column that is not stored.

A table that the cache does not have is joined by the query's own conditions. They are about stored
columns and its own, so every row of a stored group finds the same rows there: the group counts as
often as it finds one, and sums of sums stay right (Goldstein and Larson call this the query's
further tables; Calcite the query delta). It may count more than once, so the groups are always
aggregated again, and what relies on each row counting once is refused by the aggregates' own rules.

A table that the cache has is joined again only by a unique key that the cache stores: each stored
row was made from exactly the one row with that key, so this neither loses nor repeats any.
"""

from __future__ import annotations

from collections.abc import Iterable

from matcher.expr import Call, Col, Expr
from matcher.ir import ExtraJoin, RecordPreservingJoin
from matcher.rules.attempt import Attempt, stored


def fetch(attempt: Attempt, column: Col, equal: Iterable[Col]) -> Col | None:
    """`column`, or one of those that are `equal` to it, from a table joined to the cache.

    Args:
        attempt: notes a table that it joins again.
        column: a column that no stored one gives.
        equal: columns with its value in all rows that are returned, itself among them.
    """
    if not attempt.delta:
        return None
    candidates = list(equal)
    for member in candidates:
        if member.rel in attempt.extra:
            return _reference(attempt, member, column)
    for member in candidates:
        if member.rel in attempt.again or _join_again(attempt, member.rel):
            return _reference(attempt, member, column)
    return None


def _reference(attempt: Attempt, member: Col, column: Col) -> Col:
    place = (*attempt.extra, *attempt.again).index(member.rel) + 1
    return Col(place, member.name, column.type, member.nullable)


def _join_again(attempt: Attempt, rel: int) -> bool:
    """True if the table, one of the cache's, could be joined by a unique key, by filters that are
    added."""
    view = attempt.view
    place = view.plan.relations[view.relations.index(rel)].key
    for join in view.plan.joins:
        if join.right == place and (join.validated or attempt.options.trust_unvalidated):
            keys = _stored_key(attempt, rel, join)
            if keys:
                attempt.again[rel] = join.name
                for key, column in keys:
                    mine = _reference(attempt, column, column)
                    attempt.filters.append(Call("eq", (key, mine), "boolean"))
                attempt.joins_used = tuple(dict.fromkeys((*attempt.joins_used, join.name)))
                return True
    return False


def _stored_key(
    attempt: Attempt, rel: int, join: RecordPreservingJoin
) -> list[tuple[Expr, Col]] | None:
    """The stored columns that hold the table's unique key, with the columns of the key.

    Only what the cache itself guarantees counts: an equality of the query's might be the very
    filter that is being derived. A key that may be NULL finds no row.
    """
    guaranteed = attempt.guaranteed
    found: list[tuple[Expr, Col]] = []
    names = {right for _, right in join.keys}
    for expr, column in attempt.view.stored(attempt.grouping_set):
        for member in guaranteed.members(expr) if isinstance(expr, Col) else ():
            if (
                member.rel == rel
                and member.name in names
                and guaranteed.never_null(guaranteed.find(member))
            ):
                names.discard(member.name)
                found.append((stored(column, member), member))
    return None if names else found


def joined(attempt: Attempt) -> tuple[ExtraJoin, ...]:
    """The tables that the rewrite joins, in the order of their numbers."""
    relations = attempt.query.block.relations
    places = attempt.query.relations
    return tuple(
        ExtraJoin(relations[places.index(rel)], *_how(attempt, rel))
        for rel in (*attempt.extra, *attempt.again)
    )


def _how(attempt: Attempt, rel: int) -> tuple[str, tuple[Expr, ...]]:
    """The kind of join, and its condition where that is none of the rewrite's filters."""
    for join in attempt.hung_extra:
        if rel in join.right:
            return join.kind, attempt.conditions[rel]
    return "inner", ()
