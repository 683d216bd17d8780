"""Where a cache stands, in words: its definition, its refreshes, and what it answers with now.

Each state has a word of its own, and all have one combined word. A cache that cannot be refreshed
never looks healthy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from cachemgr.base_state import BaseState, TableAt
from cachemgr.config.cache_properties import FRESH_HITS, has_fresh_hits
from cachemgr.delta.base_columns import ColumnChange, Fate, changed_columns, changes_told
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes
from cachemgr.metastore.records import (
    CacheRecord,
    RefreshRunRecord,
    SnapshotRecord,
    SnapshotTableRecord,
)
from cachemgr.vocabulary import FreshnessKind, RunState
from matcher.model.codec import PLAN_VERSION

Versions = Mapping[str, "BaseState | None"]


@dataclass(frozen=True, slots=True)
class Moved:
    """A base table that is at another version than the one that a cache's snapshot read.

    Args:
        table: The table now, with its columns.
        changes: What happened to its rows since.
    """

    table: TableAt
    changes: Changes


class Since(Enum):
    """What became of a base table since a snapshot, as far as hits are concerned.

    `OTHER` is another table, another history of it, or one in which a column that the cache reads
    is another one: no freshness lets a cache answer for it. Of `UNREAD` the log does not tell here.
    """

    SAME = "same"
    APPENDED = "appended"
    CHANGED = "changed"
    OTHER = "other"
    UNREAD = "unread"


_ANOTHER_HISTORY: Final = (ChangeCode.HISTORY_REWRITTEN, ChangeCode.TABLE_RECREATED)


@dataclass(frozen=True)
class Status:
    """The states of a cache; each word is stable, `combined` is the one to watch."""

    definition: str
    refresh: str
    availability: str
    combined: str


@dataclass(frozen=True)
class Looked:
    """What was seen of the base tables of a cache.

    Args:
        versions: What stands at their places now, None where there is no table; as far as that was
            looked at.
        moved: Those among them that are at other versions of the same history, as far as it was
            looked at what happened since.
        newest: Those whose log does not say more here than the number of the newest version.
        unread: Those whose log cannot be read now, and why, for people.
    """

    versions: Versions = field(default_factory=dict)
    moved: Mapping[str, Moved] = field(default_factory=dict)
    newest: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    def since(self, then: SnapshotTableRecord) -> Since:
        """What became of a table that a snapshot read."""
        if then.location in self.newest:
            same = self.newest[then.location] == then.version
            return Since.UNREAD if same else Since.CHANGED
        if then.location in self.unread:
            return Since.UNREAD
        if then.location not in self.versions:
            return Since.SAME  # nobody looked
        now = self.versions[then.location]
        if now is not None and then.state.is_same(now):
            return Since.SAME
        moved = self.moved.get(then.location)
        if moved is None or then.columns is None:
            return Since.OTHER
        if changed_columns(then.columns, moved.table.columns):
            return Since.OTHER
        changes = moved.changes
        if changes.kind is ChangeKind.SAME:
            return Since.SAME
        if changes.code in _ANOTHER_HISTORY:
            return Since.OTHER
        appended = changes.kind is ChangeKind.APPENDS and changes.code is None
        return Since.APPENDED if appended else Since.CHANGED


def status_of(
    cache: CacheRecord,
    last: RefreshRunRecord | None,
    published: SnapshotRecord | None,
    looked: Looked,
    *,
    behind: bool = False,
) -> Status:
    """Where a cache stands.

    Args:
        cache: The cache.
        last: Its latest refresh run.
        published: The snapshot that it serves from.
        looked: What was seen of its base tables.
        behind: The scheduler has seen a commit that the snapshot lacks.

    Returns:
        `definition` VALID, OUTDATED (stored by another version of this program) or BROKEN (a base
        table is gone); `refresh` NEVER, RUNNING, CANCELLED, FAILED or OK; `availability` DISABLED,
        NOT_REFRESHED, DAMAGED (its files are gone), STALE (the base tables hold other rows by now),
        UNKNOWN (the log of a base table cannot be read here), APPENDED (a STRICT cache to one of
        whose tables rows were appended and nothing else: hits read these beside it) or AVAILABLE;
        `combined` the worst of them, HEALTHY if all is well.
    """
    definition = "VALID"
    if cache.plan_version != PLAN_VERSION:
        definition = "OUTDATED"
    elif any(state is None for state in looked.versions.values()):
        definition = "BROKEN"
    refresh = "NEVER" if last is None else _run_word(last)
    if not cache.spec.rewrite_enabled:
        availability = "DISABLED"
    elif published is None:
        availability = "NOT_REFRESHED"
    elif cache.damaged is not None:
        availability = "DAMAGED"
    else:
        availability = _available(cache, published, looked, behind)
    return Status(definition, refresh, availability, _combined(definition, refresh, availability))


def _available(cache: CacheRecord, published: SnapshotRecord, looked: Looked, behind: bool) -> str:
    since = [looked.since(table) for table in published.tables]
    changed = Since.OTHER in since or Since.CHANGED in since
    versions = looked.versions
    all_seen = bool(versions) and all(t.location in versions for t in published.tables)
    if changed or (behind and not all_seen):
        return "STALE"
    if Since.UNREAD in since:
        return "UNKNOWN"
    grown = since.count(Since.APPENDED)
    if not grown:
        return "AVAILABLE"
    strict = cache.spec.freshness.kind is FreshnessKind.STRICT
    reads = grown == 1 and strict and has_fresh_hits(cache.spec.properties)
    return "APPENDED" if reads else "STALE"


def _run_word(run: RefreshRunRecord) -> str:
    if run.state is RunState.RUNNING and not run.is_lost:
        return "RUNNING"
    if run.state is RunState.CANCELLED:
        return "CANCELLED"
    return "OK" if run.state in (RunState.PUBLISHED, RunState.UNCHANGED) else "FAILED"


def _combined(definition: str, refresh: str, availability: str) -> str:
    if definition != "VALID":
        return definition
    if availability == "DAMAGED":
        return availability
    if refresh == "FAILED":
        return "REFRESH_FAILED"
    return "HEALTHY" if availability == "AVAILABLE" else availability


def answers(
    cache: CacheRecord, published: SnapshotRecord | None, looked: Looked, availability: str
) -> str:
    """Whether queries over a cache's tables are answered from it now, and with which rows.

    Args:
        cache: The cache.
        published: The snapshot that it serves from.
        looked: What was seen of its base tables.
        availability: From `status_of`.
    """
    simple = {
        "DISABLED": "no: it has DISABLE REWRITE",
        "NOT_REFRESHED": "no: it was never refreshed",
        "DAMAGED": "no: its files are damaged",
        "UNKNOWN": f"unknown: {_unread(published, looked)}",
        "AVAILABLE": "yes: it holds what its base tables hold",
    }
    if availability in simple or published is None:
        return simple.get(availability, simple["NOT_REFRESHED"])
    since = {table: looked.since(table) for table in published.tables}
    what = "; ".join(
        _happened(table, looked) for table, found in since.items() if found is not Since.SAME
    )
    if availability == "APPENDED":
        return f"yes: with the appended rows, which hits read beside it ({what})"
    if Since.OTHER in since.values():
        return _not_as_it_is(published.tables, looked) or (
            f"no: not before its next refresh ({what})"
        )
    if cache.spec.freshness.kind is FreshnessKind.UNLIMITED:
        return f"yes: as of its snapshot ({what})"
    grown = [found for found in since.values() if found is not Since.SAME] == [Since.APPENDED]
    if cache.spec.freshness.kind is FreshnessKind.MAX_STALENESS:
        beyond = ", then with the appended rows" if _reads(cache, grown) else ""
        seconds = cache.spec.freshness.max_staleness_seconds
        bound = f"yes: as of its snapshot, while its lag is below {seconds} s"
        return f"{bound}{beyond} ({what})"
    changed = [found for found in since.values() if found is not Since.SAME]
    if set(changed) == {Since.APPENDED} and has_fresh_hits(cache.spec.properties):
        return (
            "where all but one of the tables that grew got new keys alone: with the appended rows; "
            f"else not before its next refresh ({what})"
        )
    switched = f"; its property {FRESH_HITS} is false" if grown else ""
    return f"no: not before its next refresh ({what}{switched})"


def _not_as_it_is(tables: Sequence[SnapshotTableRecord], looked: Looked) -> str | None:
    """Why no refresh helps before somebody has done something else; None where one does."""
    gone = [t.name for t in tables if looked.versions.get(t.location, t.state) is None]
    if gone:
        return (
            f"no: no refresh can be made before base table {', '.join(gone)} is there again, or "
            "the cache is replaced"
        )
    unreadable = [
        f"{table.name}: {changes_told(lost)}"
        for table in tables
        if (lost := _unreadable_columns(table, looked))
    ]
    if not unreadable:
        return None
    return (
        f"no: no refresh can read its base tables as they are ({'; '.join(unreadable)}): give them "
        "such columns again, or replace the cache by one that reads what there is"
    )


def _unreadable_columns(table: SnapshotTableRecord, looked: Looked) -> dict[str, ColumnChange]:
    moved = looked.moved.get(table.location)
    if moved is None or table.columns is None:
        return {}
    changed = changed_columns(table.columns, moved.table.columns)
    return {n: change for n, change in changed.items() if change.fate in (Fate.GONE, Fate.RETYPED)}


def _unread(published: SnapshotRecord | None, looked: Looked) -> str:
    tables = () if published is None else published.tables
    why = [f"{t.name}: {looked.unread[t.location]}" for t in tables if t.location in looked.unread]
    said = f" ({'; '.join(why)})" if why else ""
    return f"the log of a base table cannot be read here{said}"


def _reads(cache: CacheRecord, grown: bool) -> bool:
    return grown and has_fresh_hits(cache.spec.properties)


def _happened(table: SnapshotTableRecord, looked: Looked) -> str:
    moved = looked.moved.get(table.location)
    if moved is None:
        return f"{table.name} is another table or another history now, or gone"
    changed = {} if table.columns is None else changed_columns(table.columns, moved.table.columns)
    told = [str(moved.changes.detail)] if moved.changes.detail else []
    told += [changes_told(changed)] if changed else []
    return f"{table.name}: {'; '.join(told) or 'it has moved on'}"
