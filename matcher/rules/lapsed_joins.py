"""Declared record-preserving joins on which a cache may not rely, as a refusal names them, and what
a query lacks besides."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from matcher.normalize.normal_form import PreparedPlan


def why_lapsed(
    view: PreparedPlan, rels: Collection[int], *, finding_each: bool
) -> tuple[str, str] | None:
    """Why the declared join of a table is not relied on, and what to do; None if none is declared
    that lapsed.

    Args:
        view: The cache.
        rels: The table, maybe none of its own.
        finding_each: Whether a LEFT JOIN, by which a row may find nothing, would not help.
    """
    tables = zip(view.relations, view.plan.relations, strict=True)
    places = {table.key for rel, table in tables if rel in rels}
    refresh = f"REFRESH RELATIONAL CACHE {view.name}"
    of_use = [j for j in view.plan.lapsed if j.join.finds_each or not finding_each]
    lapsed = [j for j in of_use if j.join.right in places]
    broken = next((j.join for j in lapsed if j.broken), None)
    if broken is not None:
        partners = "no partner, or several" if broken.finds_each else "several partners"
        return (
            f"record-preserving join {broken.name} does not hold: some row has {partners}",
            f"SHOW RECORD PRESERVING JOINS names one; correct it, then VALIDATE RECORD PRESERVING "
            f"JOIN {broken.name} and {refresh}",
        )
    if lapsed:
        name = lapsed[0].join.name
        return f"record-preserving join {name} is not proven for the rows in it", refresh
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
