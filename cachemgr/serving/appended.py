"""Rows that were appended to one table since a cache's snapshot: may a hit read them beside the
cache, and which files are they?

The query's block is split into states that merge (`matcher.partials`). The cache gives the states
of the rows that it has read, with the facts that hold for these; the block itself, over the
appended files alone, gives those of the others. No fact of the cache is used for a row that it has
not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from cachemgr.base_state import TableAt
from cachemgr.config.cache_properties import FRESH_HITS
from cachemgr.delta.changes import ChangeCode, Changes, DataFile, rows_of
from cachemgr.serving.seen_tables import Seen
from cachemgr.serving.served_cache import ServedCache
from cachemgr.serving.tails import Tail, files_beside
from matcher.model.ir import Block, GroupingSet, reads_groups
from matcher.model.message import (
    CacheName,
    Count,
    Message,
    Number,
    Setting,
    TableName,
    Word,
    listed,
)
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.partials.linear import why_not_linear_in

# Of so many rows their share says nothing.
_FEW: Final = 100_000
# So many bytes are read in no time.
_LITTLE: Final = 16 << 20
_REFRESH: Final = "REFRESH RELATIONAL CACHE {cache}"


@dataclass(frozen=True, slots=True)
class FreshLimits:
    """What a hit may read of the base tables beside its cache.

    Args:
        files: Files at most; 0 where hits are to read none.
        rows: Rows at most.
        share: Of the rows behind the cache at most, in percent.
        tails: Whether it may read some of them from memory.
        waits: Whether it waits until they are there; an EXPLAIN does not.
    """

    files: int
    rows: int
    share: int
    tails: bool = True
    waits: bool = True


@dataclass(frozen=True, slots=True)
class Appended:
    """Files of a table that a query reads beside a cache.

    Args:
        table: The table as the query sees it.
        since: The version that the cache holds.
        changes: What was appended since.
        tail: What is read in the place of some of the files.
        grown: What was appended to dimensions as well, under new keys alone, by their location.
        others: The other tables that the query reads, as it sees them.
    """

    table: TableAt
    since: int
    changes: Changes
    tail: Tail | None = None
    grown: Mapping[str, Changes] = field(default_factory=dict)
    others: Mapping[str, TableAt] = field(default_factory=dict)

    @property
    def came(self) -> frozenset[tuple[str, str]]:
        """All files that were appended, by path and deletion vector."""
        return frozenset(file.key for file in self.changes.added)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files that are read themselves."""
        return files_beside(self.tail, self.changes.added)

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The same, by path and deletion vector."""
        return tuple(file.key for file in self.files)

    @property
    def rows(self) -> int | None:
        """How many rows these files have; None where some writer did not say."""
        return rows_of(self.files)

    def told(self) -> Message:
        """For people: how much it is."""
        number, rest = len(self.changes.added), len(self.files)
        template = "{rows} in {files} appended to {table} after version {since}"
        if self.tail is not None:
            template += ", {held} of them held in memory"
        return Message(
            template,
            rows=Count(self.changes.rows_added, "row"),
            files=Count(number, "file"),
            table=TableName(self.table.name),
            since=Number(self.since),
            held=Count(number - rest) if rest else Word("all"),
        )


class Tails(Protocol):
    """The tails at hand."""

    def find(
        self, cache: ServedCache, grouping_set: GroupingSet | None, appended: Appended, wait: bool
    ) -> Tail | None:
        """The tail that holds most of the files that were appended, and no other one.

        Args:
            cache: The cache, as the query is answered from it.
            grouping_set: Which of its sets the query reads.
            appended: What was appended.
            wait: Whether to have one made that holds all of them and to wait for it, where that
                pays.
        """
        ...


def appended_to(
    block: Block,
    cache: ServedCache,
    appended: Mapping[str, Changes],
    seen: Seen,
    limits: FreshLimits | None,
) -> Appended | Reason:
    """What a hit is to read beside a cache, or why it cannot.

    Args:
        block: The query's block.
        cache: The cache.
        appended: What was appended to the tables of the block since its snapshot: nothing else
            keeps it from being exact.
        seen: The query's tables by location.
        limits: What may be read; None where a query cannot name single files.
    """
    name = CacheName(cache.name)
    if len(appended) > 1:
        names = sorted(seen[place][0].name for place in appended)
        return Reason(
            ReasonCode.DIMENSION_CHANGED,
            "{tables} were all appended to",
            _REFRESH,
            tables=listed(TableName, names),
            cache=name,
        )
    place, changes = next(iter(appended.items()))
    (table,) = {t for t in seen[place] if isinstance(t, TableAt)}
    since = cache.snapshot[place].version
    assert since is not None
    others = {table.key: seen[table.key] for table in block.tables}
    found = Appended(table, since, changes, others=_at_one_version(others, place))
    if limits is None:
        return Reason(
            ReasonCode.FRESH_IN_SPARK_ONLY,
            "{rows} would be read beside cache {cache}, and a text cannot name files",
            "run the query in a Spark session, or " + _REFRESH,
            rows=found.told(),
            cache=name,
        )
    if changes.code is ChangeCode.RANGE_REWRITTEN or not table.commit:
        return Reason(
            ReasonCode.RANGE_REWRITTEN,
            "{rows} cannot be read apart from older ones: {changes}",
            _REFRESH,
            rows=found.told(),
            changes=changes.detail,
            cache=name,
        )
    reason = why_not_linear_in(block, place)
    if reason is None and reads_groups(block):
        what = Message("groups that it is joined to are not worked out beside a cache")
        reason = not_taken(ReasonCode.DELTA_NOT_LINEAR, "{what}", what=what)
    if reason is not None:
        return Reason(reason.code, "{why}", _REFRESH, why=reason.fault, cache=name)
    if _reads_the_rest(block, cache, place):
        return Reason(
            ReasonCode.DIMENSION_CHANGED,
            "{rows}, which would be joined to the other tables as a whole",
            _REFRESH,
            rows=found.told(),
            cache=name,
        )
    return _too_much(found, cache, limits) or found


def _at_one_version(seen: Seen, but: str) -> dict[str, TableAt]:
    found = {place: set(tables) for place, tables in seen.items() if place != but}
    return {
        place: table
        for place, tables in found.items()
        if len(tables) == 1 and isinstance(table := next(iter(tables)), TableAt)
    }


def without_fresh_hits(cache: ServedCache, refused: Reason | None) -> Reason:
    """Why a cache does not answer whose property keeps appended rows from being read beside it.

    Args:
        cache: The cache.
        refused: Why its snapshot alone does not do; None if it would.
    """
    code = ReasonCode.STALE if refused is None else refused.code
    name = CacheName(cache.name)
    appended = Message("rows were appended since the snapshot of {cache}", cache=name)
    return Reason(
        code,
        "{why}; they are not read beside it, since its property {property} is false",
        "REFRESH RELATIONAL CACHE {cache}, or ALTER it to SET TBLPROPERTIES "
        "('{property}' = 'true')",
        why=appended if refused is None else refused.fault,
        property=Setting(FRESH_HITS),
        cache=name,
    )


def switched_off(cache: ServedCache, refused: Reason) -> Reason:
    """Why a cache does not answer in a session that reads no appended rows.

    Args:
        cache: The cache.
        refused: Why its snapshot alone does not do.
    """
    return Reason(
        refused.code,
        "{why}; appended rows are not read beside it, since this session has "
        "spark.cachemgr.freshHits=false, or 0 for its maxFiles",
        "REFRESH RELATIONAL CACHE {cache}, or SET spark.cachemgr.freshHits=true",
        why=refused.fault,
        cache=CacheName(cache.name),
    )


def _reads_the_rest(block: Block, cache: ServedCache, place: str) -> bool:
    """Whether the tables that the appended rows are joined to are most of what the query would read
    anyway: a dimension grew, and not the fact."""
    sizes = dict(cache.plan.base_bytes)
    read = {table.key for table in block.tables}
    others = sum(sizes.get(other, 0) for other in read - {place})
    return others > _LITTLE and 2 * others > sum(sizes.get(other, 0) for other in read)


def _too_much(found: Appended, cache: ServedCache, limits: FreshLimits) -> Reason | None:
    changes, base = found.changes, cache.plan.base_rows
    rows = changes.rows_added
    share = 100 if rows is None or not base else 100 * rows / base
    few = rows is not None and rows <= limits.rows
    small = share <= limits.share or (rows is not None and rows <= _FEW)
    if len(changes.added) <= limits.files and few and small:
        return None
    return Reason(
        ReasonCode.TOO_MUCH_APPENDED,
        "{rows}, more than spark.cachemgr.freshHits.* lets a hit of {cache} read",
        _REFRESH,
        rows=found.told(),
        cache=CacheName(cache.name),
    )
