"""Hot small grouping sets held in the application's memory, as one partition, so that a hit on them
needs no shuffle and no file.

A pin is Spark's own columnar cache of one partition under a plan that its cache manager does not
know: the user's clearCache() leaves it, and nothing of it shows among his tables. Lost blocks are
computed again from the cache's Delta files. A row format (LogicalRDD) needs a copy function on the
executors, which cannot load classes that were compiled at run time, or localCheckpoint, which has
no lineage to recompute from.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cachemgr.causes import were_jobs_cancelled
from cachemgr.delta.tables import PinnedSet
from cachemgr.jvm.alive import is_stopped
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.spark.held.degraded import warn
from matcher.model.ir import CachePlan, Measure
from matcher.model.types import FLOATS, INTEGRAL
from matcher.render.select import quote

__all__ = [
    "NotPinnable",
    "PinKey",
    "PinStats",
    "PinStore",
    "PinnedSet",
    "holds_floats",
    "in_order",
    "most_selective_first",
]

_log = logging.getLogger("cachemgr.pins")


class PinKey(NamedTuple):
    """One stored state of one grouping set; `grouping_id` is None for a cache that is no cube.
    Of a part of a tail, also its number; of a table that is joined, which one it is and what is
    read of it.

    Nothing in it says who asks: whether somebody may be answered from a pin is decided before.
    """

    cache_id: str
    version: int
    grouping_id: int | None = None
    location: str = ""
    appended: str = ""
    identity: tuple[str, str] = ("", "")

    @property
    def of_any_version(self) -> PinKey:
        """What stays the same from one stored state to the next, as a key of memories."""
        return self._replace(version=0, identity=("", ""))


@dataclass(frozen=True, slots=True)
class PinStats:
    """What the store holds and did so far; `held_bytes` are those of the driver's copies."""

    pins: int
    bytes: int
    hits: int
    misses: int
    evicted: int
    failed: int
    held_bytes: int


class NotPinnable(Exception):
    """The rows cannot be held, for a cause that is expected now and then."""


class PinStore:
    """Pins of one Spark application, bounded by bytes; the least recently used go first.

    Pins are made by background threads, so that no query has to wait for one. Safe for several
    threads.

    Args:
        spark: The session in which pins are made; its settings decide how the rows are read, so
            give it one of ours.
        max_bytes: What all pins together may take, as Spark measures them after they were made; 0
            pins nothing.
        wanted: Whether some query may still read what a key stands for. Called without a lock.
        thread_name: Of the background threads.
        threads: How many pins are made at the same time.
    """

    def __init__(
        self,
        spark: SparkSession,
        max_bytes: int,
        wanted: Callable[[PinKey], bool] = lambda key: True,
        thread_name: str = "cachemgr-pins",
        threads: int = 1,
    ) -> None:
        self._spark = spark
        self._max_bytes = max_bytes
        self._max_held_bytes = 0
        self._wanted = wanted
        self._lock = threading.Lock()
        self._pins: OrderedDict[PinKey, PinnedSet] = OrderedDict()
        self._asked: dict[PinKey, Future[None]] = {}
        self._hits = self._misses = self._evicted = self._failed = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=thread_name)
        self._closed = False

    @property
    def holds_rows(self) -> bool:
        """Whether the driver has copies of pins' rows, where they can be had and fit."""
        return self._max_held_bytes > 0

    def get(self, key: PinKey, *, to_read: bool = True) -> PinnedSet | None:
        """The pin, to be used as a relation of a `Replacement`; None if there is none, or if its
        blocks were taken away.

        Args:
            key: What is pinned.
            to_read: Whether a query reads it, which counts.
        """
        with self._lock:
            found = self._pins.get(key)
            if found is None:
                self._misses += to_read
                return None
            if to_read:
                self._pins.move_to_end(key)
        if not self._present(found):
            # unpersist() by the user's hand: the plan would still answer, but from the files and
            # slowly.
            self._remove(key, found)
            with self._lock:
                self._misses += to_read
            return None
        with self._lock:
            self._hits += to_read
        return found

    def touch(self, key: PinKey) -> None:
        """A pin was read by somebody who did not `get` it.

        Args:
            key: Its key.
        """
        with self._lock:
            if key in self._pins:
                self._pins.move_to_end(key)
                self._hits += 1

    def request(
        self, key: PinKey, loader: Callable[[], DataFrame], name: str = "held rows"
    ) -> Future[None] | None:
        """Have the rows of `loader()` pinned in the background. Nothing happens if they are, or
        were asked for and failed.

        Args:
            key: What is pinned.
            loader: Makes the DataFrame over the published version; called in the background thread.

        Returns:
            What ends when the pin is there or was given up; None if nothing was started.
        """
        with self._lock:
            if self._closed or self._max_bytes <= 0 or key in self._pins or key in self._asked:
                return None
            future: Future[None] = self._pool.submit(self._load, key, loader, name)
            self._asked[key] = future
            return future

    def sweep(self) -> None:
        """Let go of all pins that nobody wants: their cache was dropped, or a newer snapshot was
        published. One that is being made is looked at when it is there.

        A query that was planned over such a pin still runs: its rows are read again from the files
        of that version.
        """
        with self._lock:
            keys = [*self._pins, *(key for key, made in self._asked.items() if made.done())]
        gone = [key for key in keys if not self._wanted(key)]
        with self._lock:
            for key in gone:
                self._asked.pop(key, None)
            pins = [pin for key in gone if (pin := self._pins.pop(key, None)) is not None]
        for pin in pins:
            self._release(pin)

    def resize(self, max_bytes: int, max_held_bytes: int = 0) -> None:
        """Give the pins another bound; the least recently used that do not fit any more go.

        Args:
            max_bytes: What all pins together may take.
            max_held_bytes: What the driver's copies of them may take. A smaller bound is for those
                that are made from now on; for a larger one copies are made in the background.
        """
        with self._lock:
            self._max_bytes = max_bytes
            more = max_held_bytes > self._max_held_bytes
            self._max_held_bytes = max_held_bytes
            gone = self._evict()
            if more and self._pins and not self._closed:
                self._pool.submit(self._hold_others)
        for pin in gone:
            self._release(pin)

    def close(self) -> None:
        """Let go of everything; later requests do nothing."""
        with self._lock:
            self._closed = True
            pins = list(self._pins.values())
            self._pins.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for pin in pins:
            self._release(pin)

    def stats(self) -> PinStats:
        """Counts and sizes now."""
        with self._lock:
            used = sum(pin.bytes for pin in self._pins.values())
            held = sum(pin.held_bytes for pin in self._pins.values())
            return PinStats(
                len(self._pins), used, self._hits, self._misses, self._evicted, self._failed, held
            )

    def _load(self, key: PinKey, loader: Callable[[], DataFrame], name: str) -> None:
        if not self._wanted(key):  # it waited behind others until a newer state was published
            with self._lock:
                self._asked.pop(key, None)
            return
        try:
            pin = self._make(loader(), name)
        except Exception as error:
            if were_jobs_cancelled(error):
                _log.info("pinning %s was cancelled; the next query asks again", key)
                with self._lock:
                    self._asked.pop(key, None)
                return
            if isinstance(error, NotPinnable):
                _log.info("%s is not pinned: %s", key, error)
                return
            # The key stays in _asked: a set that cannot be pinned is not tried at each query.
            warn(_log, f"queries read files of {key.location}, which cannot be pinned", error)
            with self._lock:
                self._failed += 1
            return
        unwanted: list[PinnedSet] = []
        wanted = self._wanted(key)
        with self._lock:
            if self._closed or not wanted:
                self._asked.pop(key, None)
                unwanted.append(pin)
            elif pin.bytes > self._max_bytes:
                unwanted.append(pin)
                self._failed += 1
            else:
                self._pins[key] = pin
                self._asked.pop(key, None)
                unwanted += self._evict()
        for pin in unwanted:
            self._release(pin)

    def _evict(self) -> list[PinnedSet]:
        used = sum(pin.bytes for pin in self._pins.values())
        gone = []
        while used > self._max_bytes:
            _, oldest = self._pins.popitem(last=False)
            used -= oldest.bytes
            self._evicted += 1
            gone.append(oldest)
        return gone

    def _make(self, frame: DataFrame, name: str) -> PinnedSet:
        from cachemgr.spark.hook import suspended

        pins = self._java()
        with suspended(self._spark):
            plan = pins.pin(session_of(self._spark), frame._jdf, name)
        held = self._hold(plan)
        return PinnedSet(plan, pins.rows(plan), pins.bytes(plan), held)

    def _hold_others(self) -> None:
        """Make copies of the pins that have none."""
        with self._lock:
            without = [(key, pin) for key, pin in self._pins.items() if not pin.held_bytes]
        for key, pin in without:
            held = self._hold(pin.plan)
            with self._lock:
                still = self._pins.get(key) is pin
                if still:
                    self._pins[key] = replace(pin, held_bytes=held)
            if not still:  # let go of meanwhile, without this copy
                self._release(pin)

    def _hold(self, plan: Any) -> int:
        from cachemgr.spark.hook import suspended

        if self._max_held_bytes <= 0:
            return 0
        try:
            with suspended(self._spark):
                return int(self._java().hold(session_of(self._spark), plan, self._max_held_bytes))
        except Exception as error:
            warn(_log, "queries over a pin run Spark jobs, since its rows cannot be copied", error)
            return 0

    def _present(self, pin: PinnedSet) -> bool:
        try:
            return bool(self._java().present(session_of(self._spark), pin.plan))
        except Exception as error:
            warn(_log, "a pin cannot be looked at and is left out", error)
            return False

    def _remove(self, key: PinKey, pin: PinnedSet) -> None:
        with self._lock:
            found = self._pins.pop(key) if self._pins.get(key) is pin else None
        if found is not None:
            self._release(found)

    def _release(self, pin: PinnedSet) -> None:
        try:
            self._java().drop(pin.plan)
        except Exception as error:
            if not is_stopped(self._spark.sparkContext):  # else it is gone anyway
                warn(_log, "a pin cannot be released", error)

    def _java(self) -> Any:
        return java_class(self._spark, "Pins")


def most_selective_first(rows: DataFrame, keys: Sequence[str]) -> tuple[str, ...]:
    """The keys of a set that is to be pinned, the one with the most values first.

    Args:
        rows: The set; one small job counts its keys' values.
        keys: Its key columns.
    """
    if not keys:
        return ()
    counted = rows.agg(*(F.approx_count_distinct(quote(key)).alias(key) for key in keys))
    (counts,) = counted.collect()
    return tuple(sorted(keys, key=lambda key: (-counts[key], key)))


def in_order(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """`rows` as one partition, sorted by its keys.

    Spark keeps the least and greatest value of each batch of a pinned set (10,000 rows), so that a
    filter on a sorted key passes most batches over.

    Args:
        rows: What is to be pinned.
        keys: Its key columns, the most selective one first.
    """
    if not keys:
        return rows
    return rows.coalesce(1).sortWithinPartitions(*(quote(key) for key in keys))


def holds_floats(plan: CachePlan) -> bool:
    """Whether a cache stores FLOAT or DOUBLE that may be NaN. Such a cache is not pinned: Spark's
    statistics of pinned batches leave NaN out, so it would pass over batches with it.

    Args:
        plan: The cache.

    >>> from matcher.examples import plan_of
    >>> texts = ("store, AVG(qty) AS a", "store, AVG(ratio) AS a", "ratio, COUNT(*) AS n")
    >>> [holds_floats(plan_of(f"SELECT {text} FROM sales GROUP BY 1")) for text in texts]
    [False, True, True]
    """
    stored = [*(plan.keys or ()), *plan.columns]
    kinds = {c.expr.type for c in stored} | {m.agg.type for m in plan.measures if _may_be_nan(m)}
    return not kinds.isdisjoint(FLOATS)


def _may_be_nan(measure: Measure) -> bool:
    """The average of whole numbers never is."""
    return measure.agg.func != "avg" or measure.agg.args[0].type not in INTEGRAL
