"""Considered, refused (with reason), chosen: a decision as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from matcher.model.ir import CachePlan, Candidate, Decision, GroupingSet, Miss, Rewrite
from matcher.rules.choose import preference


def set_names(plan: CachePlan, grouping_set: GroupingSet | None) -> tuple[str, ...] | None:
    """The key columns of a grouping set; None for a cache without sets."""
    if grouping_set is None or plan.keys is None:
        return None
    return tuple(plan.keys[i].name for i in grouping_set.keys)


def candidates_of(
    chosen: Rewrite | None,
    valid: Iterable[Rewrite],
    misses: Iterable[Miss],
    plans: Mapping[str, CachePlan],
) -> tuple[Candidate, ...]:
    """One line a considered view: the chosen one, the valid ones by cost, the refused ones."""
    rows: list[Candidate] = []
    ranked = ([("chosen", chosen)] if chosen is not None else []) + [
        ("valid", r) for r in sorted(valid, key=preference)
    ]
    for outcome, rewrite in ranked:
        keys = set_names(plans[rewrite.cache], rewrite.grouping_set)
        rows.append(Candidate(rewrite.cache, keys, outcome, (), rewrite.cost))
    for miss in sorted(misses, key=lambda m: (m.cache, m.lacking)):
        keys = set_names(plans[miss.cache], miss.grouping_set)
        rows.append(Candidate(miss.cache, keys, "refused", miss.reasons))
    # one that is also tried with tables joined to it may be refused twice for the same reasons
    return tuple(dict.fromkeys(rows))


def as_data(decision: Decision) -> list[dict[str, Any]]:
    """The candidates of a decision as JSON data."""
    return [
        {
            "cache": c.cache,
            "grouping_set": None if c.grouping_set is None else list(c.grouping_set),
            "outcome": c.outcome,
            "cost": c.cost,
            "reasons": [
                {"code": r.code.value, "detail": r.detail, "suggestion": r.suggestion}
                for r in c.reasons
            ],
        }
        for c in decision.candidates
    ]
