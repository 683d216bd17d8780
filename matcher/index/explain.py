"""Considered, refused (with reason), chosen: a decision as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from matcher.model.ir import CachePlan, Candidate, GroupingSet, Miss, Rewrite
from matcher.model.reasons import Reason
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


def candidate_data(candidate: Candidate) -> dict[str, Any]:
    """A candidate as JSON data."""
    keys = candidate.grouping_set
    return {
        "cache": candidate.cache,
        "groupingSet": None if keys is None else list(keys),
        "outcome": candidate.outcome,
        "cost": candidate.cost,
        "reasons": [reason_data(reason) for reason in candidate.reasons],
    }


def reason_data(reason: Reason) -> dict[str, str]:
    """A reason as JSON data."""
    return {
        "code": reason.code.value,
        "detail": reason.detail,
        "suggestion": reason.suggestion,
    }
