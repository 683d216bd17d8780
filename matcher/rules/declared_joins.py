"""Record-preserving joins as a refusal names them: those to declare or to validate, those on which
a cache may not rely any more, and what a query lacks besides."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from matcher.model.expr import Expr
from matcher.model.message import CacheName, JoinName, Message, Word
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.predicates.context import column_equality


def why_lapsed(
    view: PreparedPlan, rels: Collection[int], *, finding_each: bool
) -> tuple[Message, Message] | None:
    """Why the declared join of a table is not relied on, and what to do; None if none is declared
    that lapsed.

    Args:
        view: The cache.
        rels: The table, maybe none of its own.
        finding_each: Whether a LEFT JOIN, by which a row may find nothing, would not help.
    """
    tables = zip(view.relations, view.plan.relations, strict=True)
    places = {table.key for rel, table in tables if rel in rels}
    cache = CacheName(view.name)
    of_use = [j for j in view.plan.lapsed if j.join.finds_each or not finding_each]
    lapsed = [j for j in of_use if j.join.right in places]
    broken = next((j.join for j in lapsed if j.broken), None)
    if broken is not None:
        partners = "no partner, or several" if broken.finds_each else "several partners"
        return (
            Message(
                "record-preserving join {join} does not hold: some row has {partners}",
                join=JoinName(broken.name),
                partners=Word(partners),
            ),
            Message(
                "SHOW RECORD PRESERVING JOINS names one; correct it, then VALIDATE RECORD "
                "PRESERVING JOIN {join} and REFRESH RELATIONAL CACHE {cache}",
                join=JoinName(broken.name),
                cache=cache,
            ),
        )
    if lapsed:
        name = JoinName(lapsed[0].join.name)
        return (
            Message("record-preserving join {join} is not proven for the rows in it", join=name),
            Message("REFRESH RELATIONAL CACHE {cache}", cache=cache),
        )
    return None


def if_they_held(view: PreparedPlan, read: Collection[int]) -> PreparedPlan | None:
    """A cache as it would be if its lapsed joins to tables that a query does not read held, to tell
    what else the query lacks; nothing may be answered from it. None if there are no such joins.

    Args:
        view: The cache.
        read: The query's tables.
    """
    plan = view.plan
    tables = zip(view.relations, plan.relations, strict=True)
    extra = {table.key for rel, table in tables if rel not in read}
    held = tuple(lapsed.join for lapsed in plan.lapsed if lapsed.join.right in extra)
    if not held:
        return None
    return view.variant(replace(plan, joins=(*plan.joins, *held), lapsed=()), held)


def unvalidated(view: PreparedPlan, rel: int) -> str | None:
    """The name of a record-preserving join to a table that nobody validated; None if there is none.

    Args:
        view: The cache.
        rel: The table.
    """
    place = view.relation(rel).key
    return next((j.name for j in view.plan.joins if not j.validated and j.right == place), None)


def spell_join(view: PreparedPlan, extra: int, predicates: Iterable[Expr], kind: str) -> str | None:
    """The join of a table with one other, as its declaration would say it; None if it is joined by
    the columns of several, or of none.

    Args:
        view: The cache that joins them.
        extra: The joined table.
        predicates: What it is joined by.
        kind: INNER or LEFT.
    """
    by_anchor: dict[int, list[str]] = {}
    table, name = _declared(view, extra, "b")
    for pair in map(column_equality, predicates):
        if pair is None or sum(c.rel == extra for c in pair) != 1:
            continue
        inner, outer = pair if pair[0].rel == extra else (pair[1], pair[0])
        equal = f"{_declared(view, outer.rel, 'a')[1]}.{outer.name} = {name}.{inner.name}"
        by_anchor.setdefault(outer.rel, []).append(equal)
    if len(by_anchor) != 1:
        return None
    ((anchor, equals),) = by_anchor.items()
    outer_table, left = _declared(view, anchor, "a")
    return f"{outer_table} {kind} JOIN {table} ON {' AND '.join(equals)} PRESERVES {left}"


def _declared(view: PreparedPlan, rel: int, alias: str) -> tuple[str, str]:
    """A table as it can be written in a declaration, and what its columns are qualified by: one
    that is known by its folder alone needs an alias."""
    name = view.relation(rel).name
    if "/" not in name:
        return name, name
    return f"delta.`{name.removeprefix('file:')}` {alias}", alias
