"""Can a refresh add what changed to what is stored, and how? Pure.

One base table may have changed. The cache's own definition over the rows that came, less that over
the rows that went (the delta), is then what it lacks: rows of a cache without groups, partial
aggregates of one with groups. These are appended as they are, so that several stored rows stand for
one group until they are added up; or a grouping set is written anew from its rows and the delta,
which costs its size and leaves one row a group.

Rows come and go by whole files: an update that rewrites a file, or hides some of its rows by a
deletion vector, takes the file's rows away and adds those that it holds since. What is in both
cancels out as it is added up. So no Change Data Feed is needed; where there is one, and it is
shorter than the files, the changed rows are read from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from cachemgr.base_state import TableAt
from cachemgr.delta.base_columns import changed_columns, changes_told
from cachemgr.delta.changes import ChangeKind, Changes
from cachemgr.metastore.records import SnapshotRecord, SnapshotTableRecord
from cachemgr.refresh.by_change.why_full import FullCode, WhyFull
from matcher.model.codec import decode_plan
from matcher.model.ir import CachePlan, MatchOptions
from matcher.model.message import Message, Number, TableName, Word, listed
from matcher.normalize.stored_block import stored_block
from matcher.partials.linear import why_not_linear_in
from matcher.partials.partial_rows import why_not_partials

# A set of so many stored rows is written anew: that takes no longer than to append to it.
FEW_ROWS: Final = 100_000
# The partial rows that a set may hold for each of its groups before it is written anew.
MOST_PARTIALS: Final = 0.3
# A byte of the Change Data Feed costs so many times one of a file: rows are converted one by one.
FEED_READS: Final = 2.0
# To compute and write a byte costs so many times what it costs to read one.
WRITING: Final = 4.0
# AUTO takes the delta if it is expected to cost this share of a full refresh at most.
WORTH_IT: Final = 0.8


@dataclass(frozen=True, slots=True)
class Stored:
    """What a cache holds now.

    Args:
        plan: Its plan, with the rows and bytes of its sets and which of them hold partial rows.
        groups: Of each set that holds partial rows, by grouping id, how many groups it had when it
            was written whole.
        base_rows: The rows behind it; None if nobody counted them.
    """

    plan: CachePlan
    groups: Mapping[int, int] = field(default_factory=dict)
    base_rows: int | None = None

    def rows(self, number: int) -> int | None:
        """Stored rows of a set; of the whole cache where it is no cube."""
        if not self.plan.is_cube:
            return self.plan.rows
        return next((s.rows for s in self.plan.grouping_sets if s.grouping_id == number), None)

    def bytes(self, number: int) -> int:
        """Bytes of a set; of the whole cache where it is no cube."""
        if not self.plan.is_cube:
            return self.plan.bytes or 0
        found = next((s.bytes for s in self.plan.grouping_sets if s.grouping_id == number), None)
        return found or 0

    @property
    def sets(self) -> tuple[int, ...]:
        """Its grouping ids; 0 stands for the rows of a cache that is no cube."""
        return tuple(s.grouping_id for s in self.plan.grouping_sets) or (0,)


def stored_of(published: SnapshotRecord | None) -> Stored | None:
    """What a snapshot's version holds; None if there is none, or its plan cannot be read."""
    if published is None or published.run.plan is None:
        return None
    try:
        plan = decode_plan(dict(published.run.plan))
    except (KeyError, TypeError, ValueError):  # stored by another version of this program
        return None
    facts = published.run.facts
    groups = {int(number): rows for number, rows in (facts.get("groups") or {}).items()}
    return Stored(plan, groups, facts.get("base_rows"))


@dataclass(frozen=True, slots=True)
class Delta:
    """The way of a refresh that adds what changed of one base table.

    Args:
        table: The table as it is now.
        since: The version that the cache holds.
        changes: What came and went.
        replaced: The sets (0 where there are none) that are written anew from their rows and the
            delta.
        appended: Those whose part of the delta is appended.
        rewritten_bytes: The stored bytes of `replaced`.
        by_feed: The rows are read from the table's Change Data Feed, and not from the files.
        cost: The expected cost, and `full_cost` that of a full refresh, in bytes read.
    """

    table: TableAt
    since: int
    changes: Changes
    replaced: tuple[int, ...]
    appended: tuple[int, ...]
    rewritten_bytes: int
    cost: float
    full_cost: float
    by_feed: bool = False

    @property
    def is_signed(self) -> bool:
        """Whether rows went as well."""
        return bool(self.changes.removed)

    @property
    def is_worth_it(self) -> bool:
        """Whether AUTO takes it."""
        return self.cost <= WORTH_IT * self.full_cost


def find_delta(
    plan: CachePlan,
    stored: Stored,
    then: Mapping[str, SnapshotTableRecord],
    tables: Mapping[str, TableAt],
    changes: Mapping[str, Changes],
    sizes: Mapping[str, int],
    options: MatchOptions,
    feeds: Collection[str] = (),
) -> Delta | WhyFull:
    """The delta that brings a cache up to date, or why there is none.

    Args:
        plan: What the cache is to hold.
        stored: What it holds.
        then: The base tables as its snapshot read them, by location.
        tables: The base tables now.
        changes: What happened to those that moved since.
        sizes: The bytes of the base tables now.
        options: The settings that the cache is refreshed under.
        feeds: The tables whose Change Data Feed can be read.
    """
    moved = [found for place in changes if (found := _moved(place, then, tables, changes))]
    refused = next((found for found in moved if isinstance(found, WhyFull)), None)
    if refused is not None:
        return refused
    grown = [place for place, found in changes.items() if found.kind is not ChangeKind.SAME]
    if len(grown) != 1:
        names = listed(TableName, sorted(tables[place].name for place in grown))
        detail = Message("{tables} changed since the last refresh", tables=names)
        return WhyFull(FullCode.SEVERAL_TABLES, detail)
    place = grown[0]
    exact = replace(plan, exact_sums=stored.plan.exact_sums)
    signed = changes[place].kind is ChangeKind.SIGNED
    refused = why_not_of(exact, place, options, signed)
    if refused is not None:
        return refused
    return _delta(
        plan, stored, tables[place], then[place], changes[place], sizes, has_feed=place in feeds
    )


def _moved(
    place: str,
    then: Mapping[str, SnapshotTableRecord],
    tables: Mapping[str, TableAt],
    changes: Mapping[str, Changes],
) -> WhyFull | str:
    """Why what happened to a table cannot be added; its name if it can."""
    found, table = changes[place], tables[place]
    kept, name = then[place].columns, TableName(table.name)
    changed = {} if kept is None else changed_columns(kept, table.columns)
    if kept is None or changed:
        what = changes_told(changed) or "the snapshot does not say what its columns were"
        detail = Message("{table}: {what}", table=name, what=Word(what))
        return WhyFull(FullCode.COLUMNS_CHANGED, detail)
    if found.kind is ChangeKind.SIGNED and any(not file.bytes for file in found.removed):
        detail = Message("{table}: its log does not say which files went", table=name)
        return WhyFull(FullCode.ROWS_REMOVED, detail)
    if found.kind is not ChangeKind.UNKNOWN:
        return table.name
    code = FullCode.UNKNOWN_ACTION if found.code is None else FullCode(found.code.value)
    return WhyFull(code, Message("{table}: {what}", table=name, what=found.detail))


def why_not_of(plan: CachePlan, place: str, options: MatchOptions, signed: bool) -> WhyFull | None:
    """Why what changed of a base table cannot be added to what a cache holds; None if it can.

    Args:
        plan: What it holds; its `exact_sums` are those that are proven small.
        place: The table's location.
        options: The settings that it is refreshed under.
        signed: Whether rows went as well.
    """
    if plan.limit is not None:
        limit = Number(plan.limit)
        detail = Message("it keeps its first {limit} rows alone", limit=limit)
        return WhyFull(FullCode.TOP_K, detail)
    if plan.having:
        return WhyFull(
            FullCode.HAVING,
            Message("a group that did not pass its HAVING is not stored, and may pass it now"),
        )
    block = stored_block(plan)
    reason = why_not_linear_in(block, place)
    if reason is not None:
        return WhyFull(FullCode.DELTA_NOT_LINEAR, reason.fault)
    reason = why_not_partials(plan, options, signed=signed)
    if reason is None:
        return None
    if signed and why_not_partials(plan, options, signed=False) is None:
        name = TableName(next(table.name for table in plan.tables if table.key == place))
        detail = Message("rows of {table} went, and {why}", table=name, why=reason.fault)
        return WhyFull(FullCode.ROWS_REMOVED, detail)
    return WhyFull(FullCode.NOT_MERGEABLE, reason.fault)


def _delta(
    plan: CachePlan,
    stored: Stored,
    table: TableAt,
    then: SnapshotTableRecord,
    changes: Changes,
    sizes: Mapping[str, int],
    *,
    has_feed: bool,
) -> Delta:
    assert then.version is not None
    changed, by_feed = changes.bytes_added + changes.bytes_removed, False
    feed = changes.bytes_by_feed
    if has_feed and feed is not None and FEED_READS * feed < changed:
        changed, by_feed = int(FEED_READS * feed), True
    new_rows = _changed_rows(stored, changes, changed, sizes.get(table.location, 0))
    replaced: list[int] = []
    appended: list[int] = []
    for number in stored.sets:
        anew = plan.keys is not None and _is_written_anew(stored, number, new_rows)
        (replaced if anew else appended).append(number)
    rest = sum(size for place, size in sizes.items() if place != table.location)
    held = sum(map(stored.bytes, stored.sets))
    read = changed + rest * (2 if changes.removed and not by_feed else 1)
    rewritten = sum(map(stored.bytes, replaced))
    added = sum(_appended_bytes(stored, number, new_rows) for number in appended)
    return Delta(
        table=table,
        since=then.version,
        changes=changes,
        replaced=tuple(replaced),
        appended=tuple(appended),
        rewritten_bytes=rewritten,
        cost=read + rewritten * (1 + WRITING) + added * WRITING,
        full_cost=sum(sizes.values()) + held * WRITING,
        by_feed=by_feed,
    )


def _changed_rows(stored: Stored, changes: Changes, changed: int, size: int) -> int | None:
    """How many rows came and went; by the bytes of what changed where the log does not count
    them."""
    if not changes.removed:
        return changes.rows_added
    if stored.base_rows is None or not size:
        return None
    share = changed / size
    return int(share * stored.base_rows)


def _is_written_anew(stored: Stored, number: int, new_rows: int | None) -> bool:
    rows = stored.rows(number)
    if rows is None or new_rows is None or rows <= FEW_ROWS:
        return True
    groups = stored.groups.get(number, rows)
    partials = rows - groups + min(new_rows, groups)
    return partials > MOST_PARTIALS * groups


def _appended_bytes(stored: Stored, number: int, new_rows: int | None) -> float:
    rows = stored.rows(number) or 0
    share = 1.0 if not rows or new_rows is None else min(1.0, new_rows / rows)
    return share * stored.bytes(number)
