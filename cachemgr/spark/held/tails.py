"""The tails of one Spark application: made beside queries that read appended files, extended by
later files, and let go of when a longer one stands.

See `cachemgr.serving.tails` for what a tail is. It is a pin (`pins`) with a bound of its own.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from cachemgr.base_state import TableAt
from cachemgr.config.match_options import match_options
from cachemgr.delta.base_columns import columns_read
from cachemgr.delta.changed_files import ChangedFiles
from cachemgr.delta.changes import ChangeKind, rows_of
from cachemgr.delta.own_session import own_session
from cachemgr.delta.tables import PinnedSet, TableRead, base_tables, run_select
from cachemgr.refresh.measure import rows_name
from cachemgr.serving.appended import Appended
from cachemgr.serving.freshness import Histories
from cachemgr.serving.grown_dimensions import NewKeys
from cachemgr.serving.served_cache import ServedCache
from cachemgr.serving.tails import TAIL, Tail, files_beside, plan_of_tail
from cachemgr.spark.held.degraded import warn
from cachemgr.spark.held.joined_tables import JoinedTables
from cachemgr.spark.held.pins import NotPinnable, PinKey, PinStore, holds_floats
from cachemgr.spark.held.tail_pace import USUAL, Pace, Tempo
from cachemgr.spark.hook import suspended
from matcher.memory.bounded import Bounded
from matcher.model.ir import CachePlan, GroupingSet, RecordPreservingJoin
from matcher.normalize.stored_block import stored_block
from matcher.partials.collapse import merged_rows
from matcher.partials.linear import why_not_linear
from matcher.partials.lossless import joins_by_unique_keys_alone
from matcher.partials.partial_rows import why_not_partials
from matcher.render.select import quote, render_stored

_log = logging.getLogger("cachemgr.tails")
_CAME: Final = "__came"
# Tails that are made of one another; the next one is made of files alone.
_MOST_LINKS: Final = 8
_MOST_USELESS: Final = 1_000
_MOST_PACES: Final = 10_000
# Up to so many appended rows all sets of a cube share one tail, grouped by all of its keys: one is
# there for whichever is read next, and to add up so many rows in memory takes no time to speak of.
_FEW_ROWS: Final = 250_000
# Tails that are made at the same time.
_THREADS: Final = 2


class _Place(NamedTuple):
    """What a tail is a part of: one stored state of one grouping set, or of all of them (it has no
    number then), and the table that grew."""

    pin: PinKey
    grown: str


@dataclass(frozen=True, slots=True)
class _Made:
    """A tail, how many it was made of, and when."""

    tail: Tail
    key: PinKey
    links: int
    at: float


@dataclass(frozen=True, slots=True)
class _Making:
    """A tail that is being made."""

    key: PinKey
    files: frozenset[tuple[str, str]]
    done: threading.Event
    awaited: threading.Event
    began: float


@dataclass(slots=True)
class _State:
    """What is held of a place.

    Args:
        made: Its tail.
        making: The one that is being made.
        waiting: How many queries wait for that.
    """

    made: _Made | None = None
    making: _Making | None = None
    waiting: int = 0


class TailStore:
    """The tails of one application; safe for several threads.

    A query that sees newly appended files reads these itself and has a tail made of them meanwhile.
    Whoever comes for the same files before it is there waits for it, and does not read them once
    more. Where queries come at the same time, the first one waits as well; see `Pace`.

    Args:
        spark: A session of ours.
        histories: What happened to tables.
        new_keys: Which dimensions got new keys alone.
        wanted: Whether some query may still read what a key stands for.
        tempo: How long queries wait, and how long none is made.
    """

    def __init__(
        self,
        spark: SparkSession,
        histories: Histories,
        new_keys: NewKeys,
        wanted: Callable[[PinKey], bool],
        tempo: Tempo = USUAL,
    ) -> None:
        self._spark = spark
        self._histories = histories
        self._new_keys = new_keys
        self._wanted = wanted
        self.tempo = tempo
        self._pins = PinStore(spark, 0, self._is_wanted, "cachemgr-tails", _THREADS)
        self._joined = JoinedTables(self._pins)
        self._lock = threading.Lock()
        self._states: defaultdict[_Place, _State] = defaultdict(_State)
        self._paces: Bounded[Pace] = Bounded(_MOST_PACES)
        # asked for, and of no use: rows without a partner beside dimensions that grew
        self._useless: Bounded[bool] = Bounded(_MOST_USELESS)

    def find(
        self, cache: ServedCache, grouping_set: GroupingSet | None, appended: Appended, wait: bool
    ) -> Tail | None:
        """See `Tails`."""
        at, files = _place(cache, grouping_set, appended), appended.came
        tail = self._held(at, files)
        if wait and (tail is None or tail.files != files):
            self._wait(at, files, cache, grouping_set, appended)
            tail = self._held(at, files)
        return tail

    def _held(self, at: _Place, files: frozenset[tuple[str, str]]) -> Tail | None:
        with self._lock:
            made = self._states[at].made
        if made is None or not made.tail.files <= files:
            return None
        if self._pins.get(made.key) is None:  # another one took its memory
            with self._lock:
                if self._states[at].made is made:
                    self._states[at].made = None
            return None
        return made.tail

    def _wait(
        self,
        at: _Place,
        files: frozenset[tuple[str, str]],
        cache: ServedCache,
        grouping_set: GroupingSet | None,
        appended: Appended,
    ) -> None:
        """Wait while a tail of these files is made, or one that it goes on from."""
        with self._lock:
            patience = self._pace(at).patience(self.tempo, rows_of(appended.changes.added))
        until = time.monotonic() + patience
        while (now := time.monotonic()) < until:
            with self._lock:
                state, pace = self._states[at], self._pace(at)
                making, is_shared = state.making, pace.is_shared
            if making is None:
                if not is_shared or not self._begin(at, cache, grouping_set, appended):
                    return
            elif making.files == files or (is_shared and making.files < files):
                is_done = self._wait_for(making, state, pace, until - now)
                if not is_done or making.files == files:
                    return
            else:
                return

    def _wait_for(self, making: _Making, state: _State, pace: Pace, seconds: float) -> bool:
        with self._lock:
            if state.waiting:  # a query after the other would be alone here
                pace.others += 1
            state.waiting += 1
        making.awaited.set()
        try:
            return making.done.wait(seconds)
        finally:
            with self._lock:
                state.waiting -= 1

    def count_read(
        self, cache: ServedCache, grouping_set: GroupingSet | None, appended: Appended
    ) -> None:
        """Count a query that read no file that was appended, but a tail.

        Args:
            cache: The cache.
            grouping_set: Which of its sets the query reads.
            appended: What was appended.
        """
        with self._lock:
            self._pace(_place(cache, grouping_set, appended)).read()

    def request(
        self, cache: ServedCache, grouping_set: GroupingSet | None, appended: Appended
    ) -> bool:
        """Have a tail made in the background for what a query read beside its cache. Nothing
        happens while one is made, and for some time after unless tails are often read.

        Args:
            cache: The cache.
            grouping_set: Which of its sets the query reads.
            appended: What it reads.

        Returns:
            Whether it is being made now.
        """
        at = _place(cache, grouping_set, appended)
        with self._lock:
            rests = self._pace(at).rests(time.monotonic())
        return not rests and self._begin(at, cache, grouping_set, appended)

    def _begin(
        self,
        at: _Place,
        cache: ServedCache,
        grouping_set: GroupingSet | None,
        appended: Appended,
    ) -> bool:
        """Have a tail made unless one is."""
        with self._lock:
            state = self._states[at]
            if state.making is not None:
                return False
        if _never(cache, grouping_set, appended):
            return False
        key = at.pin._replace(appended=_digest(appended))
        if self._useless.get(key):
            return False
        done, awaited = threading.Event(), threading.Event()
        making = _Making(key, appended.came, done, awaited, time.monotonic())
        with self._lock:
            state = self._states[at]
            if state.making is not None:
                return False
            state.making, before = making, state.made
        chosen = grouping_set if at.pin.grouping_id is not None else None
        maker = _Maker(
            self._spark,
            self._histories,
            self._new_keys,
            self._joined,
            cache,
            chosen,
            appended,
            before,
        )
        pause = self.tempo.pause

        def rows() -> DataFrame:
            # The query that reads the files now has the processor to itself.
            awaited.wait(pause)
            return maker.rows()

        future = self._pins.request(key, rows)
        if future is None:
            with self._lock:
                self._states[at].making = None
            making.done.set()
            return False
        future.add_done_callback(lambda _: self._finish(at, making, maker))
        return True

    def _pace(self, at: _Place) -> Pace:
        """What is known of the tails of a set, whichever stored state they stand beside."""
        key = at._replace(pin=at.pin._replace(version=0))
        pace = self._paces.get(key)
        if pace is None:
            pace = Pace()
            self._paces.put(key, pace)
        return pace

    @property
    def is_making(self) -> bool:
        """Whether one is being made."""
        with self._lock:
            return any(state.making is not None for state in self._states.values())

    def sweep(self) -> None:
        """Let go of all tails that nobody wants."""
        with self._lock:
            for at, state in tuple(self._states.items()):
                is_new = state.made is not None and self._is_new(state.made)
                if state.making is None and not is_new and not self._wanted(at.pin):
                    del self._states[at]
        self._pins.sweep()

    def resize(self, max_bytes: int) -> None:
        """Give the tails another bound.

        Args:
            max_bytes: What all of them together may take; 0 makes none.
        """
        self._pins.resize(max_bytes)

    def close(self) -> None:
        """Let go of everything."""
        self._pins.close()

    def _finish(self, at: _Place, making: _Making, maker: _Maker) -> None:
        made = None
        try:
            pinned = self._pins.get(making.key)
            made = None if pinned is None else maker.made(making.key, pinned)
            if pinned is not None and made is None:
                self._useless.put(making.key, True)
        except Exception as error:
            warn(_log, f"queries read files of {at.grown}, whose tail cannot be used", error)
        finally:
            now = time.monotonic()
            counts = made is not None or self._wanted(at.pin)  # else a newer state was published
            with self._lock:
                state = self._states[at]
                state.making = None
                if made is not None:
                    state.made = made
                if counts:
                    self._pace(at).ended(now - making.began, made is not None, now, self.tempo)
            making.done.set()
            self._pins.sweep()  # the tail that this one was made of

    def _is_wanted(self, key: PinKey) -> bool:
        joined = self._joined.is_wanted(key)
        if joined is not None:
            return joined
        with self._lock:
            for state in self._states.values():
                if state.making is not None and state.making.key == key:
                    return True  # some query waits for it
                if state.made is not None and state.made.key == key:
                    return self._is_new(state.made) or self._wanted(key._replace(appended=""))
        return False

    def _is_new(self, made: _Made) -> bool:
        """Whether queries that waited for it may not have read it yet."""
        return time.monotonic() - made.at < self.tempo.keep


class _Maker:
    """Makes one tail.

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
        before: _Made | None,
    ) -> None:
        self._spark = spark
        self._histories = histories
        self._new_keys = new_keys
        self._joined = joined
        self._cache = cache
        self._set = grouping_set
        self._appended = appended
        self._grown = False
        self._read: dict[str, TableRead] = {}
        self._before = before if before is not None and self._goes_on(before) else None

    def rows(self) -> DataFrame:
        """The rows of the tail.

        Raises:
            NotPinnable: A table that the cache's definition joins is not as the cache read it.
        """
        cache, plan = self._cache, self._plan
        session = own_session(self._spark, dict(cache.settings))
        with suspended(session):
            rows = self._definition(session, plan)
            if self._before is not None:
                relations = {TAIL: self._before.tail.relation, _CAME: rows}
                names = ", ".join(map(quote, rows.columns))
                parts = [f"SELECT {names} FROM {name}" for name in relations]
                text = merged_rows(plan, parts, [], match_options(dict(cache.settings)))
                rows = run_select(session, text, relations)
            # In order its rows would be read faster by little, and to find the order they would be
            # computed twice: who waits for a tail waits for that.
            return rows.coalesce(1)

    def made(self, key: PinKey, pinned: PinnedSet) -> _Made | None:
        """The tail, once its rows are held; None if it is of no use: some of its rows are without a
        partner, which they may get.

        Args:
            key: What it is held by.
            pinned: Its rows.
        """
        joins = self._joins_kept(pinned)
        if self._grown and not joins:
            return None
        plan = plan_of_tail(self._cache.plan, self._set, joins, pinned.rows)
        files = self._appended.came
        read = {place: read.version for place, read in self._read.items()}
        links = 1 if self._before is None else self._before.links + 1
        return _Made(Tail(plan, files, pinned, read), key, links, time.monotonic())

    @property
    def _plan(self) -> CachePlan:
        """The cache with the one set."""
        sets = () if self._set is None else (self._set,)
        return replace(self._cache.plan, grouping_sets=sets)

    def _goes_on(self, before: _Made) -> bool:
        """Whether the new tail is the old one and more."""
        plan, options = self._cache.plan, match_options(dict(self._cache.settings))
        return (
            before.links < _MOST_LINKS
            and before.tail.files <= self._appended.came
            and why_not_partials(plan, options, signed=False) is None
        )

    def _definition(self, session: SparkSession, plan: CachePlan) -> DataFrame:
        """The cache's definition over the files that the old tail does not have."""
        grown, since = self._appended.table, self._appended.since
        held = None if self._before is None else self._before.tail
        files = files_beside(held, self._appended.changes.added)
        came = ChangedFiles(grown.location, since, grown.version, files).plan(session)
        others = self._others(session)
        relations = {
            f"__t{number}": others.get(relation.key, came)
            for number, relation in enumerate(plan.relations)
        }
        return run_select(session, render_stored(plan, [quote(n) for n in relations]), relations)

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
        self._read = {place: TableRead(place, found[place].version) for place in names}
        columns = columns_read(self._cache.plan)
        sizes = dict(self._cache.plan.base_bytes)
        return {
            place: self._joined.relation(
                session, self._cache.settings, read, columns[place], sizes.get(place)
            )
            for place, read in self._read.items()
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
            if join.validated and join.right == table.location
        )

    def _joins_kept(self, pinned: PinnedSet) -> tuple[RecordPreservingJoin, ...]:
        """The joins of the cache, if the tail's rows tell that they kept each row."""
        plan, grown = self._cache.plan, self._appended.table.location
        rows = rows_of(self._appended.changes.added)
        joins = tuple(join for join in plan.joins if join.validated)
        if rows is None or not joins_by_unique_keys_alone(plan, joins, grown):
            return ()
        text = f"SELECT SUM({quote(rows_name(plan))}) FROM {TAIL}"
        with suspended(self._spark):
            ((counted,),) = run_select(self._spark, text, {TAIL: pinned}).collect()
        return joins if (counted or 0) == rows else ()


def _place(cache: ServedCache, grouping_set: GroupingSet | None, appended: Appended) -> _Place:
    assert cache.version is not None
    rows = rows_of(appended.changes.added)
    is_shared = grouping_set is None or (rows is not None and rows <= _FEW_ROWS)
    number = None if is_shared or grouping_set is None else grouping_set.grouping_id
    pin = PinKey(cache.id, cache.version, number, cache.location)
    return _Place(pin, appended.table.location)


def _digest(appended: Appended) -> str:
    text = "\n".join(sorted(map("\t".join, appended.came)))
    return hashlib.sha256(text.encode()).hexdigest()


def _never(cache: ServedCache, grouping_set: GroupingSet | None, appended: Appended) -> bool:
    """Whether a cache has no tails: its rows are no groups, are only the first ones, or are not
    those of the old and the new files together."""
    plan = cache.plan
    if plan.keys is None or plan.limit is not None or holds_floats(plan):
        return True
    if plan.is_cube and grouping_set is None:
        return True
    places = [relation.key for relation in plan.relations]
    if appended.table.location not in places:
        return True
    rel = places.index(appended.table.location)
    return why_not_linear(stored_block(plan), rel) is not None
