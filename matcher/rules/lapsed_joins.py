"""Declared record-preserving joins on which a cache may not rely, as a refusal names them."""

from __future__ import annotations

from collections.abc import Collection

from matcher.normalize.normal_form import PreparedPlan


def why_lapsed(view: PreparedPlan, rels: Collection[int]) -> tuple[str, str] | None:
    """Why the declared join of a table is not relied on, and what to do; None if none is declared
    that lapsed.

    Args:
        view: The cache.
        rels: The table, maybe none of its own.
    """
    tables = zip(view.relations, view.plan.relations, strict=True)
    places = {table.key for rel, table in tables if rel in rels}
    refresh = f"REFRESH RELATIONAL CACHE {view.name}"
    lapsed = [j for j in view.plan.lapsed if j.right in places]
    broken = next((j.name for j in lapsed if j.broken), None)
    if broken is not None:
        return (
            f"record-preserving join {broken} does not hold: some row has no partner, or several",
            f"SHOW RECORD PRESERVING JOINS names one; correct it, then VALIDATE RECORD PRESERVING "
            f"JOIN {broken} and {refresh}",
        )
    if lapsed:
        return f"record-preserving join {lapsed[0].name} is not proven for the rows in it", refresh
    return None
