"""How a tail is made: the cache's definition over the appended files, in one partition in memory,
beside the parts of the tail that is there.

What a commit appended becomes a part of its own: to put it together with the others takes as long
as they are large. Only when there are many of them are they made one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.base_state import BaseState, TableAt
from cachemgr.config.match_options import match_options
from cachemgr.delta.base_columns import columns_read
from cachemgr.delta.changed_files import ChangedFiles
from cachemgr.delta.changes import ChangeKind, DataFile, rows_of
from cachemgr.delta.own_session import own_session
from cachemgr.delta.tables import PinnedSet, TableRead, base_tables, plan_of, run_select
from cachemgr.refresh.measure import rows_name
from cachemgr.serving.appended import Appended
from cachemgr.serving.freshness import Histories
from cachemgr.serving.grown_dimensions import NewKeys, has_rows_of
from cachemgr.serving.served_cache import ServedCache
from cachemgr.serving.tails import Tail, plan_of_tail
from cachemgr.spark.held.joined_tables import JoinedTables
from cachemgr.spark.held.pins import NotPinnable, PinKey, holds_floats
from cachemgr.spark.hook import suspended
from matcher.model.ir import CachePlan, GroupingSet, RecordPreservingJoin, reads_groups
from matcher.normalize.stored_block import stored_block
from matcher.partials.collapse import merged_rows
from matcher.partials.linear import why_not_linear
from matcher.partials.lossless import joins_told_by_counts
from matcher.partials.partial_rows import why_not_partials
from matcher.render.placeholders import CAME, TAIL, tables_of, tail_parts
from matcher.render.select import quote, render_stored

# Parts that are read side by side; the next one takes their place.
_MOST_PARTS: Final = 10
# Parts that are made of one another; the next one is made of files alone.
_MOST_LINKS: Final = 8


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of some appended files, one a group.

    Args:
        key: What they are held by.
        rows: They.
        files: The files, by path and deletion vector.
        joins: The joins of the cache that are known to have kept each of them.
        joined: The tables that were joined to them, by location, and in which states.
        links: How many parts were made of one another.
    """

    key: PinKey
    rows: PinnedSet
    files: frozenset[tuple[str, str]]
    joins: tuple[RecordPreservingJoin, ...]
    joined: Mapping[str, frozenset[BaseState]]
    links: int


@dataclass(frozen=True, slots=True)
class Made:
    """A tail, its parts, and when it was made."""

    tail: Tail
    parts: tuple[Part, ...]
    at: float

    @property
    def keys(self) -> frozenset[PinKey]:
        """What its parts are held by."""
        return frozenset(part.key for part in self.parts)


class TailMaker:
    """Makes one tail, by making one part more.

    Args:
        spark: A session of ours.
        histories: What happened to tables.
        new_keys: Which dimensions got new keys alone.
        joined: What is held of the tables that are joined.
        cache: The cache.
        grouping_set: The set.
        appended: What it is to hold.
        before: The tail that is there.
    """

    def __init__(
        self,
        spark: SparkSession,
        histories: Histories,
        new_keys: NewKeys,
        joined: JoinedTables,
        cache: ServedCache,
        grouping_set: GroupingSet | None,
        appended: Appended,
        before: Made | None,
    ) -> None:
        self._spark = spark
        self._histories = histories
        self._new_keys = new_keys
        self._joined = joined
        self._cache = cache
        self._set = grouping_set
        self._appended = appended
        self._grown = False
        self._read: dict[str, BaseState] = {}
        self._kept, self._merged = self._parts_of(before)

    @property
    def files(self) -> frozenset[tuple[str, str]]:
        """The files whose rows the new part holds, by path and deletion vector."""
        return self._appended.came.difference(*(part.files for part in self._kept))

    def rows(self) -> DataFrame:
        """The rows of the new part.

        Raises:
            NotPinnable: A table that the cache's definition joins is not as the cache read it.
        """
        cache, plan = self._cache, self._plan
        session = own_session(self._spark, dict(cache.settings))
        with suspended(session):
            rows = self._definition(session, plan)
            if self._merged:
                relations = {CAME: rows, **_named(self._merged)}
                names = ", ".join(map(quote, rows.columns))
                parts = [f"SELECT {names} FROM {name}" for name in relations]
                text = merged_rows(plan, parts, [], match_options(dict(cache.settings)))
                rows = run_select(session, text, relations)
            # In order its rows would be read faster by little, and to find the order they would be
            # computed twice: who waits for a tail waits for that.
            return rows.coalesce(1)

    def made(self, key: PinKey, pinned: PinnedSet) -> Made | None:
        """The tail, once the rows of the new part are held; None if it is of no use: some of its
        rows are without a partner, which they may get.

        Args:
            key: What they are held by.
            pinned: The rows.
        """
        links = 1 + max((part.links for part in self._merged), default=0)
        read = _states({place: frozenset({at}) for place, at in self._read.items()}, self._merged)
        part = Part(key, pinned, self.files, self._joins_kept(pinned), read, links)
        parts = (*self._kept, part)
        joins = tuple(join for join in part.joins if all(join in p.joins for p in parts))
        if self._grown and not joins:
            return None
        held = self._side_by_side(parts)
        plan = plan_of_tail(self._cache.plan, self._set, joins, held.rows)
        joined = _states(read, self._kept)
        return Made(Tail(plan, self._appended.came, held, joined), parts, time.monotonic())

    def _side_by_side(self, parts: Sequence[Part]) -> PinnedSet:
        """What reads all of some parts, as one partition."""
        if len(parts) == 1:
            return parts[0].rows
        relations = _named(parts)
        text = " UNION ALL ".join(f"SELECT * FROM {name}" for name in relations)
        with suspended(self._spark):
            plan = plan_of(run_select(self._spark, text, relations).coalesce(1))
        rows, size = (sum(getattr(p.rows, what) for p in parts) for what in ("rows", "bytes"))
        return PinnedSet(plan, rows, size)

    @property
    def _plan(self) -> CachePlan:
        """The cache with the one set."""
        sets = () if self._set is None else (self._set,)
        return replace(self._cache.plan, grouping_sets=sets)

    def _parts_of(self, before: Made | None) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """The parts of the tail that is there which stay beside the new one, and those whose rows
        go into it."""
        parts = () if before is None else tuple(filter(self._still_holds, before.parts))
        if len(parts) < _MOST_PARTS:
            # the new one has a file at least: after a RESTORE there may be none left for it
            whole = self._appended.came == frozenset().union(*(part.files for part in parts))
            return parts[:-1] if whole else parts, ()
        plan, options = self._cache.plan, match_options(dict(self._cache.settings))
        links = max(part.links for part in parts)
        if links >= _MOST_LINKS or why_not_partials(plan, options, signed=False) is not None:
            return (), ()
        return (), parts

    def _still_holds(self, part: Part) -> bool:
        """Whether a part has rows of the files that were appended alone, and the query sees the
        tables that are joined to them as they were for it. Of those that it does not read, queries
        that do are asked."""
        seen = self._appended.others
        return part.files <= self._appended.came and all(
            has_rows_of(seen[place], states, self._histories, or_more=bool(part.joins))
            for place, states in part.joined.items()
            if place in seen
        )

    def _definition(self, session: SparkSession, plan: CachePlan) -> DataFrame:
        """The cache's definition over the files that no part has."""
        grown, since = self._appended.table, self._appended.since
        held = frozenset[tuple[str, str]]().union(*(p.files for p in self._merged))
        files = tuple(f for f in self._new_files() if f.key not in held)
        came = ChangedFiles(grown.location, since, grown.version, files).plan(session)
        others = self._others(session)
        names = tables_of(len(plan.relations))
        relations = {
            name: others.get(relation.key, came)
            for name, relation in zip(names, plan.relations, strict=True)
        }
        return run_select(session, render_stored(plan, [quote(n) for n in relations]), relations)

    def _new_files(self) -> tuple[DataFile, ...]:
        files = self.files
        return tuple(file for file in self._appended.changes.added if file.key in files)

    def _others(self, session: SparkSession) -> dict[str, PinnedSet | TableRead]:
        """The tables that are joined to the one that grew: as they are now, which holds the rows
        that the cache read."""
        names = {
            relation.key: relation.name
            for relation in self._cache.plan.relations
            if relation.key != self._appended.table.location
        }
        found = {table.location: table for table in base_tables(self._spark, names)}
        for place, name in names.items():
            table = found.get(place)
            if table is None or not self._is_as_before(table):
                raise NotPinnable(f"{name} changed since cache {self._cache.name} was refreshed")
        self._read = {place: found[place].state for place in names}
        columns = columns_read(self._cache.plan)
        sizes = dict(self._cache.plan.base_bytes)
        return {
            place: self._joined.relation(
                session, self._cache.settings, found[place], columns[place], sizes.get(place)
            )
            for place in names
        }

    def _is_as_before(self, table: TableAt) -> bool:
        """Whether a joined table gives the rows that the cache has read what it gave them then."""
        then = self._cache.snapshot[table.location]
        changes = self._histories.changes(table, then)
        if changes.kind is not ChangeKind.APPENDS:
            return changes.kind is ChangeKind.SAME
        self._grown = True
        return any(
            self._new_keys.are_new(table, then, changes, tuple(right for _, right in join.keys))
            for join in self._cache.plan.joins
            if join.validated and join.finds_each and join.right == table.location
        )

    def _joins_kept(self, pinned: PinnedSet) -> tuple[RecordPreservingJoin, ...]:
        """The joins of the cache, if the new part's rows tell that they kept each row."""
        plan, grown = self._cache.plan, self._appended.table.location
        rows = rows_of(self._new_files())
        joins = joins_told_by_counts(plan, [join for join in plan.joins if join.validated], grown)
        if rows is None or not joins:
            return ()
        text = f"SELECT SUM({quote(rows_name(plan))}) FROM {TAIL}"
        with suspended(self._spark):
            ((counted,),) = run_select(self._spark, text, {TAIL: pinned}).collect()
        return joins if (counted or 0) == rows else ()


def _states(
    joined: Mapping[str, frozenset[BaseState]], parts: Iterable[Part]
) -> dict[str, frozenset[BaseState]]:
    """The states of the tables that were joined to some rows, and to those of some parts."""
    return {p: states.union(*(part.joined[p] for part in parts)) for p, states in joined.items()}


def _named(parts: Sequence[Part]) -> dict[str, object]:
    names = tail_parts(len(parts))
    return {name: part.rows for name, part in zip(names, parts, strict=True)}


def has_none(cache: ServedCache, grouping_set: GroupingSet | None, appended: Appended) -> bool:
    """Whether a cache has no tails: its rows are no groups, are only the first ones, or are not
    those of the old and the new files together."""
    plan = cache.plan
    if plan.keys is None or plan.limit is not None or holds_floats(plan) or reads_groups(plan):
        return True
    if plan.is_cube and grouping_set is None:
        return True
    places = [relation.key for relation in plan.relations]
    if appended.table.location not in places:
        return True
    rel = places.index(appended.table.location)
    return why_not_linear(stored_block(plan), rel) is not None
