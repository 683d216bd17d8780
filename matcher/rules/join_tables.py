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

from matcher.model.expr import Call, Col, Expr
from matcher.model.ir import ExtraJoin, RecordPreservingJoin
from matcher.rules.attempt import ViewAttempt, stored


def fetch(attempt: ViewAttempt, column: Col, equal: Iterable[Col]) -> Col | None:
    """`column`, or one of those that are `equal` to it, from a table joined to the cache.

    Args:
        attempt: notes a table that it joins again.
        column: a column that no stored one gives.
        equal: columns with its value in all rows that are returned, itself among them.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT store, SUM(qty) AS q FROM sales GROUP BY store",
    ...     "SELECT city, SUM(qty) AS q FROM sales JOIN stores USING (store) GROUP BY city",
    ... )
    SELECT t1.`city` AS `city`, SUM(t0.`q`) AS `q` FROM c AS t0 INNER JOIN `stores` AS t1 ON
    (t0.`store` = t1.`store`) GROUP BY t1.`city`
    """
    if not attempt.shared.may_join_tables:
        return None
    candidates = list(equal)
    for member in candidates:
        if member.rel in attempt.shared.extra:
            return reference(attempt, member, column)
    for member in candidates:
        if member.rel in attempt.notes.again or _join_again(attempt, member.rel):
            return reference(attempt, member, column)
    return None


def reference(attempt: ViewAttempt, member: Col, column: Col) -> Col:
    """`member` of a table that is joined, with the type of `column`, which it stands for."""
    place = attempt.joined_tables.index(member.rel) + 1
    return Col(place, member.name, column.type, member.nullable)


def _join_again(attempt: ViewAttempt, rel: int) -> bool:
    """True if the table, one of the cache's, could be joined by a unique key, by filters that are
    added."""
    view = attempt.view
    place = view.relation(rel).key
    for join in view.plan.joins:
        if join.right == place and (join.validated or attempt.options.trust_unvalidated):
            keys = _stored_key(attempt, rel, join)
            if keys:
                attempt.notes.again[rel] = join.name
                for key, column in keys:
                    mine = reference(attempt, column, column)
                    attempt.notes.key_filters.append(Call("eq", (key, mine), "boolean"))
                attempt.notes.joins_used.append(join.name)
                return True
    return False


def _stored_key(
    attempt: ViewAttempt, rel: int, join: RecordPreservingJoin
) -> list[tuple[Expr, Col]] | None:
    """The stored columns that hold the table's unique key, with the columns of the key.

    Only what the cache itself guarantees counts: an equality of the query's might be the very
    filter that is being derived. A key that may be NULL finds no row.
    """
    guaranteed = attempt.shared.guaranteed
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


def joined_once(attempt: ViewAttempt) -> bool:
    """True if each row finds at most one row of every table that is joined to the cache.

    Such a table's unique key, of which a record-preserving join tells, is equal to columns of the
    cache's tables, or of others that are joined so; SEMI and ANTI joins repeat no row anyway.
    """
    if any(join.kind not in ("semi", "anti") for join in attempt.shared.extra_outer_joins):
        return False
    left = set(attempt.shared.extra).difference(
        *(join.right for join in attempt.shared.extra_outer_joins)
    )
    trusted = attempt.options.trust_unvalidated
    joins = [j for j in attempt.view.plan.joins if j.validated or trusted]
    joins += attempt.options.keys
    used: list[str] = []
    while left:
        found = [(rel, j) for rel in left for j in joins if _by_key(attempt, rel, j, left)]
        if not found:
            return False
        used.append(found[0][1].name)
        left.remove(found[0][0])
    attempt.notes.joins_used += used
    return True


def _by_key(attempt: ViewAttempt, rel: int, join: RecordPreservingJoin, absent: set[int]) -> bool:
    """True if each column of the table's key is equal to one of a table that is not `absent`."""
    query, context = attempt.query, attempt.context
    if query.relation(rel).key != join.right:
        return False
    return all(
        any(m.rel not in absent for m in context.members(Col(rel, name, "")))
        for _, name in join.keys
    )


def joined(attempt: ViewAttempt) -> tuple[ExtraJoin, ...]:
    """The tables that the rewrite joins, in the order of their numbers."""
    relations = attempt.query.block.relations
    places = attempt.query.relations
    return tuple(
        ExtraJoin(relations[places.index(rel)], *_how(attempt, rel))
        for rel in attempt.joined_tables
    )


def _how(attempt: ViewAttempt, rel: int) -> tuple[str, tuple[Expr, ...]]:
    """The kind of join, and its condition where that is none of the rewrite's filters."""
    for join in attempt.shared.extra_outer_joins:
        if rel in join.right:
            return join.kind, attempt.filters.conditions[rel]
    return "inner", ()
