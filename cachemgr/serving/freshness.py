"""May a cache answer for the tables that a query reads, at the versions that Spark resolved?

Compares states (`cachemgr.base_state`). A version number alone is fooled by a table that was
dropped and created again with as many commits, or put back from a copy, and a clock alone by a
commit that arrives late. Where a table has moved on, the snapshot must be a part of its history and
the columns that the cache reads must still be what they were; then it counts what the commits since
did to its rows, and where they did nothing the cache is as exact as if none had been made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Protocol

from cachemgr.base_state import BaseState, TableAt, counted
from cachemgr.delta.base_columns import (
    Fate,
    changed_columns,
    changes_told,
    columns_read,
    kept_columns,
)
from cachemgr.delta.base_commits import CommitRange, CommitsOf, unreadable
from cachemgr.delta.changes import ChangeKind, Changes
from cachemgr.delta.past import UNKNOWN_PAST, Past
from cachemgr.delta.ranges import Ranges
from cachemgr.serving.seen_tables import Seen, TableRef
from cachemgr.serving.served_cache import ServedCache
from cachemgr.vocabulary import FreshnessKind
from matcher.memory.bounded import Bounded
from matcher.model.message import CacheName, Number, TableName, Word
from matcher.model.reasons import Reason, ReasonCode

CLOCK_SKEW_MS = 30_000
# each holds a schema, which may be long
_MOST_PASTS: Final = 1_000
# A wide table's schema takes longer to read than all the rest of a look.
_changed_columns = lru_cache(maxsize=128)(changed_columns)


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Args:
        reason: Why the cache may not answer; None if it may.
        exact: The rows of every table read are those of the snapshot.
        appended: Where rows that were appended are all that keeps the cache from being exact, these
            by the location of their table, whether the cache may answer without them or not. Empty
            where anything else stands in the way, and where a table is read at two versions. With
            the code RANGE_REWRITTEN they cannot be read apart from the older ones.
        grown: What was appended to dimensions as well, under new keys alone, by their location.
    """

    reason: Reason | None
    exact: bool = False
    appended: Mapping[str, Changes] = field(default_factory=dict)
    grown: Mapping[str, Changes] = field(default_factory=dict)


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


def no_commits(table: TableAt, version: int) -> CommitRange:
    """Reads no log: every range is unknown."""
    return unreadable("nobody looks here")


class Histories:
    """Remembers what came before a state of a table: that never changes.

    Args:
        lookup: Asks the table's log.
        commits: Reads the commits of a range from it.
    """

    def __init__(self, lookup: PastOf, commits: CommitsOf = no_commits) -> None:
        self._lookup = lookup
        self._known: Bounded[Past] = Bounded(_MOST_PASTS)
        self._ranges = Ranges(commits)

    def changes(self, table: TableAt, since: BaseState) -> Changes:
        """What happened to a table's rows since a state; see `Ranges`.

        Args:
            table: The table as it is seen.
            since: A state of it.
        """
        return self._ranges.changes(table, since)

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
    found = _behind(cache, moved, now_ms, histories)
    several = any(len({table.state for table in seen[place]}) > 1 for place in found.appended)
    return replace(found, appended={}) if several else found


@dataclass(frozen=True, slots=True)
class _Moved:
    """What is found of a table that has moved since the snapshot: why the cache may not answer,
    None if it may; what was appended where that is all; else whether its rows are the same."""

    reason: Reason | None
    appended: Changes | None = None
    exact: bool = False


def _behind(
    cache: ServedCache, moved: Iterable[TableAt], now_ms: int, histories: Histories
) -> Verdict:
    """The verdict where tables have moved since the snapshot."""
    reason: Reason | None = None
    appended: dict[str, Changes] = {}
    only_appended = exact = True
    for table in moved:
        found = _look(cache, table, now_ms, histories)
        if found.appended is not None:
            appended[table.location] = found.appended
        elif found.reason is not None:  # appended rows could be read beside; this is in the way
            return Verdict(found.reason)
        else:
            only_appended &= found.exact
        reason = reason or found.reason
        exact &= found.exact
    return Verdict(reason, exact, appended if only_appended else {})


def _look(cache: ServedCache, table: TableAt, now_ms: int, histories: Histories) -> _Moved:
    then = cache.snapshot[table.location]
    assert then.version is not None
    if table.version < then.version:
        return _Moved(_ahead(cache, table))
    changes = histories.changes(table, then)
    strict = cache.freshness is FreshnessKind.STRICT
    kept = cache.columns.get(table.location)
    if strict and changes.kind in (ChangeKind.SIGNED, ChangeKind.UNKNOWN):
        # no refresh may help where its columns are other ones
        past = UNKNOWN_PAST if kept is None else histories.past(table, then.version)
        others = None if past is UNKNOWN_PAST else _other_columns(cache, table, kept, past)
        return _Moved(others or _stale_strict(cache, table, changes))
    past = histories.past(table, then.version, columns_then=kept is None)
    if past is UNKNOWN_PAST:
        return _Moved(_unknown(table.name, "its log cannot be read now"))
    before = BaseState(then.table_id, then.version, past.commit, past.committed_ms)
    if not then.is_same(before):
        return _Moved(_put_back(cache, table))
    others = _other_columns(cache, table, kept, past)
    if others is not None:
        return _Moved(others)
    if changes.kind is ChangeKind.SAME:
        return _Moved(None, exact=True)
    appended = changes if changes.kind is ChangeKind.APPENDS else None
    if strict:
        return _Moved(_stale_strict(cache, table, changes), appended)
    if cache.freshness is FreshnessKind.UNLIMITED:
        return _Moved(None, appended)
    first = changes.first_change_ms or past.next_ms
    return _Moved(_too_old(cache, table, first, now_ms), appended)


def _other_columns(
    cache: ServedCache, table: TableAt, kept: str | None, past: Past
) -> Reason | None:
    if kept is None and past.columns_then == past.columns:
        return None
    if kept is None and past.columns_then is not None:  # stored before columns were
        kept = kept_columns(past.columns_then, columns_read(cache.plan)[table.location])
    remedy = "REFRESH RELATIONAL CACHE {cache}"
    if kept is None:
        what = "the log does not say any more what its columns were then"
    else:
        changed = _changed_columns(kept, past.columns)
        if not changed:
            return None
        what = changes_told(changed)
        fates = {change.fate for change in changed.values()}
        if Fate.GONE in fates:
            remedy = "add the column again, or drop or replace cache {cache}"
        elif Fate.RETYPED in fates:
            remedy = (
                "give the column a type that holds all that it held, or create cache {cache} again "
                "with OR REPLACE"
            )
    return Reason(
        ReasonCode.COLUMNS_CHANGED,
        "{table} has other columns than when cache {cache} was refreshed: {what}",
        remedy,
        table=TableName(table.name),
        cache=CacheName(cache.name),
        what=Word(what),
    )


def _too_old(cache: ServedCache, table: TableAt, first_ms: int, now_ms: int) -> Reason | None:
    bound = cache.max_staleness_seconds or 0
    lag = now_ms - counted(first_ms, cache.read_ms, now_ms)
    if lag + CLOCK_SKEW_MS <= bound * 1000:
        return None
    return Reason(
        ReasonCode.STALE,
        "{table} changed {lag} s ago, after the snapshot of {cache}; with 30 s for clock skew "
        "that is more than MAX STALENESS of {bound} s",
        "REFRESH RELATIONAL CACHE {cache}",
        table=TableName(table.name),
        lag=Number(lag // 1000),
        cache=CacheName(cache.name),
        bound=Number(bound),
    )


def _stale_strict(cache: ServedCache, table: TableAt, changes: Changes) -> Reason:
    return Reason(
        ReasonCode.STALE,
        "{table} is at version {version}, the snapshot of {cache} read {then}, and the cache is "
        "STRICT" + (": {what}" if changes.detail else ""),
        "REFRESH RELATIONAL CACHE {cache}, or ALTER it to SET MAX STALENESS",
        table=TableName(table.name),
        version=Number(table.version),
        cache=CacheName(cache.name),
        then=Number(cache.snapshot[table.location].version),
        what=changes.detail,
    )


def _ahead(cache: ServedCache, table: TableAt) -> Reason:
    """No bound on age allows rows from a query's future."""
    then = cache.snapshot[table.location].version
    return Reason(
        ReasonCode.STALE,
        "the query reads {table} at version {version}, and cache {cache} was made from the "
        "later version {then}",
        "run the query again; if the table was put back, REFRESH RELATIONAL CACHE {cache}",
        table=TableName(table.name),
        version=Number(table.version),
        cache=CacheName(cache.name),
        then=Number(then),
    )


def _recreated(cache: ServedCache, name: str) -> Reason:
    return Reason(
        ReasonCode.TABLE_RECREATED,
        "{table} was created again since the snapshot of {cache}",
        "REFRESH RELATIONAL CACHE {cache}",
        table=TableName(name),
        cache=CacheName(cache.name),
    )


def _put_back(cache: ServedCache, table: TableAt) -> Reason:
    version = cache.snapshot[table.location].version
    return Reason(
        ReasonCode.TABLE_RECREATED,
        "version {version} of {table} is another commit than the one that {cache} was made "
        "from: the table was put back from a copy since",
        "REFRESH RELATIONAL CACHE {cache}",
        version=Number(version),
        table=TableName(table.name),
        cache=CacheName(cache.name),
    )


def _unknown(name: str, why: str) -> Reason:
    return Reason(
        ReasonCode.FRESHNESS_UNKNOWN,
        "the version of {table} is not known: {why}",
        "let {table} be a Delta table, read as it is now, and refresh the cache",
        table=TableName(name),
        why=Word(why),
    )
