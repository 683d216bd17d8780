"""Which of the decisions that a session sends can be true: anybody with a token may send any."""

from __future__ import annotations

from collections.abc import Sequence

from cachemgr.access.redaction import Discretion
from cachemgr.metastore.records import CacheRecord, DecisionRecord
from cachemgr.metastore.store import Metastore
from cachemgr.serving.served_cache import matcher_name
from cachemgr.telemetry import logger


def believed(
    metastore: Metastore, principal: str, sent: Sequence[DecisionRecord]
) -> list[DecisionRecord]:
    """The decisions without those that name a cache which the principal could not be answered from
    when they were made. Access that was taken from him since is no reason to doubt; nor is a cache
    that nobody knows any more.

    Args:
        metastore: Where grants are, and were.
        principal: Whose token sent them.
        sent: His decisions.
    """
    if not any(decision.caches for decision in sent):
        return list(sent)
    discretion = Discretion(metastore, principal)
    named: dict[str, list[CacheRecord]] = {}
    for cache in metastore.caches.all(include_dropped=True):
        named.setdefault(matcher_name(cache).lower(), []).append(cache)

    def can_be_true(decision: DecisionRecord) -> bool:
        found = [named.get(name.lower(), []) for name in decision.caches]
        return all(
            not caches or any(discretion.could_use(c, decision.at) for c in caches)
            for caches in found
        )

    kept = [decision for decision in sent if can_be_true(decision)]
    if len(kept) < len(sent):
        logger.warning(
            "%d decisions sent by %r name caches that it could not be answered from: left out",
            len(sent) - len(kept),
            principal,
        )
    return kept
