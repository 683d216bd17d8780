"""Declared record-preserving joins on which a cache may not rely, as a refusal names them."""

from __future__ import annotations

from matcher.normalize.normal_form import PreparedPlan


def why_lapsed(view: PreparedPlan, rel: int) -> tuple[str, str] | None:
    """Why the declared join of a table is not relied on, and what to do; None if none is declared
    that lapsed.

    Args:
        view: The cache.
        rel: A table, maybe one of its own.
    """
    if rel not in view.relations:
        return None
    place = view.plan.relations[view.relations.index(rel)].key
    refresh = f"REFRESH RELATIONAL CACHE {view.name}"
    lapsed = [j for j in view.plan.lapsed if j.right == place]
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
