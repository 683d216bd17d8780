"""Has what a cache stores changed? Hashes of its plan, settings and layout. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from matcher.model.codec import encode_plan
from matcher.model.ir import CachePlan


def plan_fingerprint(plan: CachePlan) -> str:
    """Hash of what a plan means: sizes, facts and join states are left out, since every refresh
    measures them anew.
    """
    bare = replace(
        plan,
        name="",
        rows=None,
        bytes=None,
        exact_sums=frozenset(),
        non_null=frozenset(),
        joins=(),
        grouping_sets=tuple(replace(s, rows=None, bytes=None) for s in plan.grouping_sets),
    )
    return _digest(encode_plan(bare))


def spec_hash(
    plan: CachePlan,
    settings: Mapping[str, str],
    partition_by: Sequence[str],
    cluster_by: Sequence[str],
) -> str:
    """Hash of everything besides the base tables that decides the stored rows and their layout."""
    return _digest(
        [plan_fingerprint(plan), dict(settings), list(partition_by), list(cluster_by)],
    )


def _digest(data: object) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
