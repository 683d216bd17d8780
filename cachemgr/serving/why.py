"""Why queries were, or were not, answered from a cache: the decision log, added up.

A miss concerns a cache if a part of the query that no cache answered reads one of its tables, and
if it was made since the cache was created. What is said there of another cache is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from cachemgr.metastore.logged_reasons import caches_of_reason
from cachemgr.metastore.records import CacheRecord, DecisionRecord
from cachemgr.metastore.store import Metastore
from cachemgr.serving.served_cache import matcher_name
from cachemgr.serving.shown_reasons import ShownReasons

SCANNED = 10_000
LATEST = 10
_WORD: Final = re.compile(r"[^\s,;:()]+")


@dataclass(frozen=True)
class ReasonCount:
    """One reason of misses.

    Args:
        code: The reason.
        count: In how many decisions.
        latest_at: When last.
        detail: What it said then.
    """

    code: str
    count: int
    latest_at: datetime
    detail: str


@dataclass(frozen=True)
class Why:
    """The decisions that concern one cache.

    Args:
        hits: Queries that it answered, or would have where they were explained.
        local_hits: Those of them whose rows were computed without a Spark job.
        misses: Queries with a part that reads its tables and that no cache answered.
        reasons: Of the misses, most frequent first.
        latest: The latest of all these, newest first.
    """

    hits: int
    local_hits: int
    misses: int
    reasons: tuple[ReasonCount, ...]
    latest: tuple[DecisionRecord, ...]


def why(
    metastore: Metastore,
    cache: CacheRecord,
    *,
    since: datetime | None = None,
    shown: ShownReasons | None = None,
) -> Why:
    """Add up the decisions that concern a cache.

    Args:
        metastore: Where the decision log is.
        cache: The cache.
        since: Only those made at or after this moment; the latest 10,000 at most. None is made
            before the cache was: one of that name, or of none, is spoken of there.
        shown: Shows reasons to who asks; None shows them whole.
    """
    name = matcher_name(cache)
    moments = [moment for moment in (since, cache.created_at) if moment is not None]
    caches = metastore.caches.all(include_dropped=True)
    others = {matcher_name(c).lower() for c in caches} - {name.lower()}
    tables = {str(relation[0]) for relation in (cache.plan or {}).get("relations", ())}
    hits, misses = [], []
    for logged in metastore.decisions.latest(SCANNED, since=max(moments, default=None)):
        decision = replace(logged, reasons=tuple(r for r in logged.reasons if _fits(r, others)))
        if name in decision.caches:
            hits.append(decision)
        elif _concerns(logged, tables):
            misses.append(decision)
    latest = sorted([*hits, *misses], key=lambda d: (d.at, d.id or 0), reverse=True)
    told = latest[:LATEST] if shown is None else map(shown.decision, latest[:LATEST])
    local = sum(hit.local for hit in hits)
    return Why(len(hits), local, len(misses), _reasons(misses, tables, shown), tuple(told))


def _fits(reason: Mapping[str, Any], others: set[str]) -> bool:
    """Whether a reason does not speak of another cache."""
    named = caches_of_reason(reason)
    if named is None:  # a text alone may name a cache by any of its words
        named = frozenset(_WORD.findall(str(reason.get("detail", "")).lower()))
    return named.isdisjoint(others)


def _concerns(decision: DecisionRecord, tables: set[str]) -> bool:
    return any(not tables.isdisjoint(reason.get("tables", ())) for reason in decision.reasons)


def _reasons(
    misses: Iterable[DecisionRecord], tables: set[str], shown: ShownReasons | None
) -> tuple[ReasonCount, ...]:
    found: dict[str, ReasonCount] = {}
    for decision in misses:  # newest first: what a reason said last is what is seen first
        mine = [r for r in decision.reasons if not tables.isdisjoint(r.get("tables", ()))]
        for code, reason in {r["code"]: r for r in mine}.items():
            known = found.get(code)
            if known is None and shown is not None:
                reason = shown.reason(reason)
            found[code] = ReasonCount(
                code,
                1 if known is None else known.count + 1,
                decision.at if known is None else known.latest_at,
                reason["detail"] if known is None else known.detail,
            )
    return tuple(sorted(found.values(), key=lambda r: (-r.count, r.code)))
