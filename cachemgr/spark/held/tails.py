"""The tails of one Spark application: made beside queries that read appended files, extended by
later files, and let go of when a longer one stands.

See `cachemgr.serving.tails` for what a tail is. It is a pin (`pins`) with a bound of its own.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from cachemgr.base_state import TableAt
from cachemgr.delta.base_columns import columns_read
from cachemgr.delta.changes import rows_of
from cachemgr.delta.tables import PinnedSet
from cachemgr.serving.appended import Appended
from cachemgr.serving.freshness import Histories
from cachemgr.serving.grown_dimensions import NewKeys
from cachemgr.serving.served_cache import ServedCache
from cachemgr.serving.tails import Tail
from cachemgr.spark.held.degraded import warn
from cachemgr.spark.held.joined_tables import JoinedTables
from cachemgr.spark.held.pins import NotPinnable, PinKey, PinStore
from cachemgr.spark.held.scan_name import tail_name
from cachemgr.spark.held.tail_maker import Made, TailMaker, has_none
from cachemgr.spark.held.tail_pace import USUAL, Pace, Tempo
from matcher.memory.bounded import Bounded
from matcher.model.ir import GroupingSet

_log = logging.getLogger("cachemgr.tails")
_MOST_USELESS: Final = 1_000
_MOST_PACES: Final = 10_000
# Up to so many appended rows all sets of a cube share one tail, grouped by all of its keys: one is
# there for whichever is read next, and to add up so many rows in memory takes no time to speak of.
_FEW_ROWS: Final = 250_000
# Seconds after which what is no longer recent is looked for.
_SOON: Final = 0.1
# Tails that are made at the same time.
_THREADS: Final = 2


class _Place(NamedTuple):
    """What a tail is a part of: one stored state of one grouping set, or of all of them (it has no
    number then), and the table that grew."""

    pin: PinKey
    grown: str


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
        replaced: What holds parts that are no longer its own, and since when: queries may still
            read them.
        making: The one that is being made.
        waiting: How many queries wait for that.
    """

    made: Made | None = None
    replaced: dict[PinKey, float] = field(default_factory=dict)
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
        self._closed = False
        self._later: threading.Timer | None = None
        self._lock = threading.Lock()
        self._states: defaultdict[_Place, _State] = defaultdict(_State)
        self._paces: Bounded[Pace] = Bounded(_MOST_PACES)
        # asked for, and of no use: rows without a partner beside dimensions that grew
        self._useless: Bounded[bool] = Bounded(_MOST_USELESS)
        self._numbers = itertools.count()

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
        if any(self._pins.get(part.key) is None for part in made.parts):
            with self._lock:  # another one took its memory
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

    def joined(
        self, cache: ServedCache, table: TableAt, columns: frozenset[str]
    ) -> PinnedSet | None:
        """The rows of a table that tails of a cache join, where they are held, with the columns
        that the cache reads alone.

        Args:
            cache: The cache.
            table: The table, as a query sees it.
            columns: Those that the query reads of it, in lower case.
        """
        read = columns_read(cache.plan).get(table.location, frozenset())
        return self._joined.held(cache.settings, table, read) if columns <= read else None

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
            making, before = state.making, state.made
        if making is not None or has_none(cache, grouping_set, appended):
            return False
        if self._useless.get(_digest(at, appended.came)):
            return False
        chosen = grouping_set if at.pin.grouping_id is not None else None
        maker = TailMaker(
            self._spark,
            self._histories,
            self._new_keys,
            self._joined,
            cache,
            chosen,
            appended,
            before,
        )
        # no two are alike: one that held the same files may not have gone yet
        key = at.pin._replace(appended=str(next(self._numbers)))
        done, awaited = threading.Event(), threading.Event()
        making = _Making(key, appended.came, done, awaited, time.monotonic())
        with self._lock:
            state = self._states[at]
            if state.making is not None or state.made is not before:
                return False
            state.making = making
        pause = self.tempo.pause

        def rows() -> DataFrame:
            # The query that reads the files now has the processor to itself.
            awaited.wait(pause)
            if self._closed:
                raise NotPinnable("the session ends")
            return maker.rows()

        future = self._pins.request(key, rows, tail_name(cache))
        if future is None:
            with self._lock:
                self._states[at].making = None
            making.done.set()
            return False
        future.add_done_callback(lambda _: self._finish(at, making, maker))
        return True

    def _pace(self, at: _Place) -> Pace:
        """What is known of the tails of a set, whichever stored state they stand beside."""
        key = at._replace(pin=at.pin.of_any_version)
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
        """Let go of all tails that nobody wants; of recent ones a while later."""
        with self._lock:
            places = tuple(self._states)
        gone = [at for at in places if not self._wanted(at.pin)]
        with self._lock:
            for at in gone:
                state = self._states[at]
                is_recent = state.made is not None and self._is_recent(state.made.at)
                if state.making is None and not is_recent:
                    del self._states[at]
                else:
                    self._sweep_later()
        self._pins.sweep()

    def _sweep_later(self) -> None:
        """Sweep once more when nothing is recent any more; the lock is held."""
        if self._later is None and not self._closed:
            self._later = threading.Timer(self.tempo.keep + _SOON, self._swept_later)
            self._later.daemon = True
            self._later.start()

    def _swept_later(self) -> None:
        with self._lock:
            self._later = None
        self.sweep()

    def resize(self, max_bytes: int) -> None:
        """Give the tails another bound.

        Args:
            max_bytes: What all of them together may take; 0 makes none.
        """
        self._pins.resize(max_bytes)

    def close(self) -> None:
        """Let go of everything."""
        self._closed = True
        with self._lock:
            if self._later is not None:
                self._later.cancel()
            for state in self._states.values():
                if state.making is not None:
                    state.making.awaited.set()
        self._pins.close()

    def _finish(self, at: _Place, making: _Making, maker: TailMaker) -> None:
        made, wanted = None, True
        try:
            pinned = self._pins.get(making.key)
            made = None if pinned is None else maker.made(making.key, pinned)
            if made is None:  # nor is it tried again where the rows cannot be put together
                self._useless.put(_digest(at, making.files), True)
            wanted = self._wanted(at.pin)  # else a newer state was published, or it was dropped
        except Exception as error:
            warn(_log, f"queries read files of {at.grown}, whose tail cannot be used", error)
        finally:
            now = time.monotonic()
            with self._lock:
                state = self._states[at]
                state.making = None
                if made is not None:
                    before = state.made.keys if state.made is not None else frozenset()
                    recent = {k: t for k, t in state.replaced.items() if self._is_recent(t)}
                    state.replaced = recent | dict.fromkeys(before - made.keys, now)
                    state.made = made
                if state.replaced or not wanted:
                    self._sweep_later()
                if made is not None or wanted:
                    self._pace(at).ended(now - making.began, made is not None, now, self.tempo)
            making.done.set()
            self._pins.sweep()  # parts that were put together a while ago

    def _is_wanted(self, key: PinKey) -> bool:
        joined = self._joined.is_wanted(key)
        if joined is not None:
            return joined
        with self._lock:
            states = list(self._states.values())
        for state in states:
            if state.making is not None and state.making.key == key:
                return True  # some query may wait for it
            if state.made is not None and key in state.made.keys:
                return self._is_recent(state.made.at) or self._wanted(key._replace(appended=""))
            if key in state.replaced:
                return self._is_recent(state.replaced[key])
        return False

    def _is_recent(self, at: float) -> bool:
        """Whether queries may still read, or wait for, what was made or replaced then."""
        return time.monotonic() - at < self.tempo.keep


def _place(cache: ServedCache, grouping_set: GroupingSet | None, appended: Appended) -> _Place:
    assert cache.version is not None
    rows = rows_of(appended.changes.added)
    is_shared = grouping_set is None or (rows is not None and rows <= _FEW_ROWS)
    number = None if is_shared or grouping_set is None else grouping_set.grouping_id
    pin = PinKey(cache.id, cache.version, number, cache.location)
    return _Place(pin, appended.table.location)


def _digest(at: _Place, files: frozenset[tuple[str, str]]) -> PinKey:
    text = "\n".join(sorted(map("\t".join, files)))
    return at.pin._replace(appended=hashlib.sha256(text.encode()).hexdigest())
