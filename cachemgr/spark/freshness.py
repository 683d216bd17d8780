"""May a cache answer for the tables that a query reads, at the versions that Spark resolved?

Compares (table id, version) pairs. A version number alone is fooled by a table that was dropped and
created again with as many commits, and a clock alone by a commit that arrives late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from cachemgr.metastore.records import Freshness
from cachemgr.spark.served import ServedCache
from matcher.reasons import Reason, ReasonCode

CLOCK_SKEW_MS = 30_000

FirstCommitAfter = Callable[[str, int], "int | None"]


class TableSeen(Protocol):
    """A base table as Spark resolved it for a query."""

    @property
    def name(self) -> str: ...
    @property
    def location(self) -> str: ...
    @property
    def table_id(self) -> str | None: ...
    @property
    def version(self) -> int | None: ...
    @property
    def kind(self) -> str: ...


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Args:
        reason: Why the cache may not answer; None if it may.
        exact: Every table read stands at the snapshot's version.
    """

    reason: Reason | None
    exact: bool = False


class CommitTimes:
    """Remembers the first commit after a version: it never changes once there is one.

    Args:
        lookup: (location, version) to the commit's time in ms, None if nothing came after.
    """

    def __init__(self, lookup: FirstCommitAfter) -> None:
        self._lookup = lookup
        self._known: dict[tuple[str, str, int], int] = {}

    def first_after(self, location: str, table_id: str, version: int) -> int | None:
        """The time of the first commit after a version of a table.

        Args:
            location: Where the table lies.
            table_id: Tells a re-created table from its predecessor.
            version: The version.

        Returns:
            Milliseconds since 1970, or None if no commit came after.
        """
        key = (location, table_id, version)
        if key not in self._known:
            found = self._lookup(location, version)
            if found is None:
                return None
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[key] = found
        return self._known[key]


def by_location(tables: Iterable[TableSeen]) -> dict[str, list[TableSeen]]:
    """The tables of a query by their place; one place may be read at two versions."""
    found: dict[str, list[TableSeen]] = {}
    for table in tables:
        found.setdefault(table.location, []).append(table)
    return found


def check_freshness(
    cache: ServedCache,
    read: Iterable[str],
    seen: Mapping[str, list[TableSeen]],
    now_ms: int,
    commits: CommitTimes,
) -> Verdict:
    """Whether a cache is fresh enough for a block.

    Args:
        cache: A refreshed cache.
        read: Locations of the tables that the block reads.
        seen: All tables of the query, as Spark resolved them.
        now_ms: The moment of the query.
        commits: Where commit times come from.

    Returns:
        The verdict.
    """
    moved: list[TableSeen] = []
    for place in dict.fromkeys(read):
        then = cache.snapshot.get(place)
        for table in seen.get(place, ()):
            if table.kind != "delta" or table.table_id is None or table.version is None:
                return Verdict(_unknown(table.name, f"it is not a Delta table ({table.kind})"))
            if then is None:
                return Verdict(_unknown(table.name, "the cache's snapshot does not hold it"))
            if table.table_id != then[0]:
                return Verdict(_recreated(cache, table.name))
            if table.version != then[1]:
                moved.append(table)
        if not seen.get(place):
            return Verdict(_unknown(place, "its version was not seen in the query"))
    if not moved:
        return Verdict(None, exact=True)
    if cache.freshness is Freshness.UNLIMITED:
        return Verdict(None)
    if cache.freshness is Freshness.STRICT:
        return Verdict(_stale_strict(cache, moved[0]))
    return Verdict(_too_old(cache, moved, now_ms, commits))


def _too_old(
    cache: ServedCache, moved: list[TableSeen], now_ms: int, commits: CommitTimes
) -> Reason | None:
    bound = cache.max_staleness_seconds or 0
    for table in moved:
        table_id, version = cache.snapshot[table.location]
        if table.version is not None and table.version < version:
            return _ahead(cache, table)
        first = commits.first_after(table.location, table_id, version)
        if first is None:
            continue
        lag = max(0, now_ms - first) + CLOCK_SKEW_MS
        if lag > bound * 1000:
            return Reason(
                ReasonCode.STALE,
                f"{table.name} changed {max(0, now_ms - first) // 1000} s ago, after the snapshot "
                f"of {cache.name}; with 30 s for clock skew that is more than MAX STALENESS of "
                f"{bound} s",
                f"REFRESH RELATIONAL CACHE {cache.name}",
            )
    return None


def _stale_strict(cache: ServedCache, table: TableSeen) -> Reason:
    then = cache.snapshot[table.location][1]
    return Reason(
        ReasonCode.STALE,
        f"{table.name} is at version {table.version}, the snapshot of {cache.name} read {then}, "
        "and the cache is STRICT",
        f"REFRESH RELATIONAL CACHE {cache.name}, or ALTER it to SET MAX STALENESS",
    )


def _ahead(cache: ServedCache, table: TableSeen) -> Reason:
    """No bound on age allows rows from a query's future."""
    then = cache.snapshot[table.location][1]
    return Reason(
        ReasonCode.STALE,
        f"the query reads {table.name} at version {table.version}, and {cache.name} was made "
        f"from the later version {then}",
        "run the query again",
    )


def _recreated(cache: ServedCache, name: str) -> Reason:
    return Reason(
        ReasonCode.TABLE_RECREATED,
        f"{name} was created again since the snapshot of {cache.name}",
        f"REFRESH RELATIONAL CACHE {cache.name}",
    )


def _unknown(name: str, why: str) -> Reason:
    return Reason(
        ReasonCode.FRESHNESS_UNKNOWN,
        f"the version of {name} is not known: {why}",
        f"let {name} be a Delta table, read as it is now, and refresh the cache",
    )
