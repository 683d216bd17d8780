"""May a cache answer for the tables that a query reads, at the versions that Spark resolved?

Compares states (`cachemgr.base_state`). A version number alone is fooled by a table that was
dropped and created again with as many commits, or put back from a copy, and a clock alone by a
commit that arrives late. Where a cache may lag behind, its snapshot must be a part of the table's
history, and the columns that it reads must still be what they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from cachemgr.base_state import BaseState, TableAt, counted
from cachemgr.delta.base_columns import changed_columns, columns_read, kept_columns
from cachemgr.delta.past import UNKNOWN_PAST, Past
from cachemgr.serving.seen_tables import Seen, TableRef
from cachemgr.serving.served_cache import ServedCache
from cachemgr.vocabulary import FreshnessKind
from matcher.memory.bounded import Bounded
from matcher.model.reasons import Reason, ReasonCode

CLOCK_SKEW_MS = 30_000
# each holds a schema, which may be long
_MOST_PASTS: Final = 1_000


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Args:
        reason: Why the cache may not answer; None if it may.
        exact: Every table read stands at the snapshot's version.
    """

    reason: Reason | None
    exact: bool = False


class PastOf(Protocol):
    """Looks a table's past up in its log."""

    def __call__(self, table: TableAt, version: int, *, columns_then: bool) -> Past:
        """The past of a table, as the state in which the query sees it has it.

        Args:
            table: The table as it is now.
            version: A version before that.
            columns_then: Whether the schema at that version is asked for.
        """
        ...


class Histories:
    """Remembers what came before a state of a table: that never changes.

    Args:
        lookup: Asks the table's log.
    """

    def __init__(self, lookup: PastOf) -> None:
        self._lookup = lookup
        self._known: Bounded[Past] = Bounded(_MOST_PASTS)

    def past(self, table: TableAt, version: int, *, columns_then: bool = False) -> Past:
        """A version that a table is past; see `PastOf`."""
        key = (table.location, table.state, version, columns_then)
        found = self._known.get(key)
        if found is None:
            found = self._lookup(table, version, columns_then=columns_then)
            if found is not UNKNOWN_PAST:
                self._known.put(key, found)
        return found


def check_freshness(
    cache: ServedCache,
    read: Iterable[str],
    seen: Seen,
    now_ms: int,
    histories: Histories,
) -> Verdict:
    """Whether a cache is fresh enough for a block.

    Args:
        cache: A refreshed cache.
        read: Locations of the tables that the block reads.
        seen: All tables of the query, as Spark resolved them.
        now_ms: The moment of the query.
        histories: Where the tables' pasts come from.

    Returns:
        The verdict.
    """
    moved: list[TableAt] = []
    for place in dict.fromkeys(read):
        then = cache.snapshot.get(place)
        for table in seen.get(place, ()):
            if isinstance(table, TableRef):
                return Verdict(_unknown(table.name, f"it is not a Delta table ({table.kind})"))
            if then is None:
                return Verdict(_unknown(table.name, "the cache's snapshot does not hold it"))
            if table.table_id != then.table_id:
                return Verdict(_recreated(cache, table.name))
            if table.version != then.version:
                moved.append(table)
            elif not then.is_same(table.state):
                return Verdict(_put_back(cache, table))
        if not seen.get(place):
            return Verdict(_unknown(place, "its version was not seen in the query"))
    if not moved:
        return Verdict(None, exact=True)
    if cache.freshness is FreshnessKind.STRICT:
        return Verdict(_stale_strict(cache, moved[0]))
    reasons = (_why_not_behind(cache, table, now_ms, histories) for table in moved)
    return Verdict(next((reason for reason in reasons if reason is not None), None))


def _why_not_behind(
    cache: ServedCache, table: TableAt, now_ms: int, histories: Histories
) -> Reason | None:
    """Why a cache may not answer for a table that has moved since; None if it lags behind no more
    than it may."""
    then = cache.snapshot[table.location]
    assert then.version is not None
    if table.version < then.version:
        return _ahead(cache, table)
    kept = cache.columns.get(table.location)
    past = histories.past(table, then.version, columns_then=kept is None)
    if past is UNKNOWN_PAST:
        return _unknown(table.name, "its log cannot be read now")
    before = BaseState(then.table_id, then.version, past.commit, past.committed_ms)
    if not then.is_same(before):
        return _put_back(cache, table)
    reason = _other_columns(cache, table, kept, past)
    if reason is None and cache.freshness is not FreshnessKind.UNLIMITED:
        reason = _too_old(cache, table, past.next_ms, now_ms)
    return reason


def _other_columns(
    cache: ServedCache, table: TableAt, kept: str | None, past: Past
) -> Reason | None:
    if kept is None and past.columns_then == past.columns:
        return None
    if kept is None and past.columns_then is not None:  # stored before columns were
        kept = kept_columns(past.columns_then, columns_read(cache.plan)[table.location])
    if kept is None:
        what = "the log does not say any more what its columns were then"
    else:
        changed = changed_columns(kept, past.columns)
        if not changed:
            return None
        what = "; ".join(f"column {name} {how}" for name, how in changed.items())
    return Reason(
        ReasonCode.COLUMNS_CHANGED,
        f"{table.name} has other columns than when cache {cache.name} was refreshed: {what}",
        f"REFRESH RELATIONAL CACHE {cache.name}",
    )


def _too_old(cache: ServedCache, table: TableAt, first_ms: int, now_ms: int) -> Reason | None:
    bound = cache.max_staleness_seconds or 0
    lag = now_ms - counted(first_ms, cache.read_ms, now_ms)
    if lag + CLOCK_SKEW_MS <= bound * 1000:
        return None
    return Reason(
        ReasonCode.STALE,
        f"{table.name} changed {lag // 1000} s ago, after the snapshot "
        f"of {cache.name}; with 30 s for clock skew that is more than MAX STALENESS of "
        f"{bound} s",
        f"REFRESH RELATIONAL CACHE {cache.name}",
    )


def _stale_strict(cache: ServedCache, table: TableAt) -> Reason:
    then = cache.snapshot[table.location].version
    return Reason(
        ReasonCode.STALE,
        f"{table.name} is at version {table.version}, the snapshot of {cache.name} read {then}, "
        "and the cache is STRICT",
        f"REFRESH RELATIONAL CACHE {cache.name}, or ALTER it to SET MAX STALENESS",
    )


def _ahead(cache: ServedCache, table: TableAt) -> Reason:
    """No bound on age allows rows from a query's future."""
    then = cache.snapshot[table.location].version
    return Reason(
        ReasonCode.STALE,
        f"the query reads {table.name} at version {table.version}, and {cache.name} was made "
        f"from the later version {then}",
        f"run the query again; if the table was put back, REFRESH RELATIONAL CACHE {cache.name}",
    )


def _recreated(cache: ServedCache, name: str) -> Reason:
    return Reason(
        ReasonCode.TABLE_RECREATED,
        f"{name} was created again since the snapshot of {cache.name}",
        f"REFRESH RELATIONAL CACHE {cache.name}",
    )


def _put_back(cache: ServedCache, table: TableAt) -> Reason:
    version = cache.snapshot[table.location].version
    return Reason(
        ReasonCode.TABLE_RECREATED,
        f"version {version} of {table.name} is another commit than the one that {cache.name} was "
        "made from: the table was put back from a copy since",
        f"REFRESH RELATIONAL CACHE {cache.name}",
    )


def _unknown(name: str, why: str) -> Reason:
    return Reason(
        ReasonCode.FRESHNESS_UNKNOWN,
        f"the version of {name} is not known: {why}",
        f"let {name} be a Delta table, read as it is now, and refresh the cache",
    )
