"""The caches that this process matches against: loaded from one metastore, and kept up to date.

One feed serves all sessions that use the same metastore. A thread of its own follows the metastore
and writes the decision log, so a query never waits for the database. If the metastore cannot be
asked for longer than a drop or a revoke may take to arrive, nothing is answered from caches.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from cachemgr.access import reads_of, restricted_keys
from cachemgr.journal.files import Files
from cachemgr.journal.journal import Journal, keep_journal
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.records import DecisionRecord, JoinRecord, RegistryEntry, RegistryState
from cachemgr.spark.result_settings import changes_results
from cachemgr.spark.served import ServedCache, matcher_name, serve
from cachemgr.telemetry import Telemetry
from matcher.registry import Registry
from matcher.sharing import Sharing

POLL_SECONDS = 1.0
STALE_SECONDS = 5.0
_MAX_PENDING = 10_000


class Feed:
    """The registry of one metastore, and the thread that follows it.

    Args:
        metastore: The open metastore; the feed closes it.
        telemetry: Where trouble is counted and logged.
        clock: Monotonic seconds; tests give their own.
    """

    def __init__(
        self,
        metastore: Metastore,
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.metastore = metastore
        self.telemetry = telemetry or Telemetry()
        self.registry = Registry()
        self._clock = clock
        self._served: dict[str, ServedCache] = {}
        self._names: dict[str, str] = {}
        self._joins: tuple[JoinRecord, ...] = ()
        self._restricted: Mapping[str, str] = {}
        self._share = Sharing()
        self._revision = 0
        self._stamp = 0
        self._loaded = False
        self._fresh_at = clock()
        self._syncing = threading.Lock()
        self._pending: deque[Callable[[], DecisionRecord]] = deque()
        self._listeners: list[Callable[[], None]] = []
        self._journal: Journal | None = None
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._follow, name="cachemgr-feed", daemon=True)

    def start(self) -> None:
        """Begin to load and to follow, in the background."""
        self._thread.start()

    def close(self) -> None:
        """Stop following, write what is pending, and close the metastore."""
        self._closed = True
        self._wake.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)
        self._flush()
        self.metastore.close()

    def keep_journal(self, location: str, others: Callable[[], Files]) -> None:
        """Write what a rebuild of the metastore needs after each change that is made here.

        Args:
            location: Root folder of the caches.
            others: Files that are not on this machine.
        """
        if self._journal is None:
            self._journal = keep_journal(self.metastore, location, others)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of what is served; once, however often it is given."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Take a listener back."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    @property
    def stamp(self) -> int:
        """Grows with each change; a decision takes it before it looks at any plan."""
        return self._stamp

    def served(self, name: str) -> ServedCache | None:
        """The cache of a matcher's name."""
        return self._served.get(name)

    def restricted(self) -> Mapping[str, str]:
        """What is restricted now, as `cachemgr.access.may_use` takes it."""
        return self._restricted

    def caches(self) -> tuple[ServedCache, ...]:
        """All caches that are served now."""
        return tuple(self._served.values())

    def why_not_ready(self) -> str | None:
        """Why nothing may be answered from caches at this moment; None if it may."""
        if not self._loaded:
            return "the caches are being loaded from the metastore"
        age = self._clock() - self._fresh_at
        if age > STALE_SECONDS:
            return f"the metastore could not be asked for {age:.0f} s: drops are unknown"
        return None

    def wait_loaded(self, seconds: float) -> bool:
        """Wait until the first load is done.

        Args:
            seconds: At most so long.

        Returns:
            Whether it is done.
        """
        until = time.monotonic() + seconds
        while not self._loaded and time.monotonic() < until:
            time.sleep(0.005)
        return self._loaded

    def sync(self) -> bool:
        """Bring the registry to the metastore's state now.

        Returns:
            Whether anything changed.

        Raises:
            MetastoreError: The metastore cannot be asked.
        """
        with self._syncing, nullcontext() if self._loaded else _collector_held_off():
            asked_at = self._clock()
            reader = self.metastore.reader
            changed = not self._loaded or reader.revision() != self._revision
            if changed:
                state = reader.registry(self._revision)
                if state.joins != self._joins:
                    # What a join says changes the plans of caches that did not change themselves.
                    state = reader.registry(0)
                self._joins = state.joins
                # before what comes new: it must not serve for a moment as if nothing were marked
                self._restricted = self._restricted_by(state)
                for entry in state.entries:
                    self._put(entry)
                for cache_id in [i for i in self._names if i not in state.live_ids]:
                    self._drop(cache_id)
                self._revision = state.revision
                self._loaded = True
            self._fresh_at = asked_at
        if changed:
            for listener in tuple(self._listeners):
                listener()
        return changed

    def log(self, decision: Callable[[], DecisionRecord]) -> None:
        """Note a decision; its record is made and written in the background, not in the query."""
        if len(self._pending) >= _MAX_PENDING:
            self.telemetry.count("decisions_not_logged")
            return
        self._pending.append(decision)

    def flush_log(self) -> None:
        """Write the decisions noted so far."""
        self._flush()

    def _restricted_by(self, state: RegistryState) -> Mapping[str, str]:
        if not state.restricted:
            return {}
        reads = {c.id: c.reads for c in self._served.values()}
        reads |= {entry.cache.id: reads_of(entry) for entry in state.entries}
        return restricted_keys(state.restricted, reads.items())

    def _put(self, entry: RegistryEntry) -> None:
        cache = entry.cache
        try:
            served = serve(entry, self._joins, _fingerprint(cache.settings), self._share)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            self._drop(cache.id)
            self.telemetry.count("plans_not_read")
            self.telemetry.warn_once(
                f"plan {cache.id}",
                f"the stored plan of cache {matcher_name(cache)} cannot be read ({error}): "
                f"run REFRESH RELATIONAL CACHE {matcher_name(cache)} FULL",
            )
            return
        old = self._names.get(cache.id)
        # A decision may have read the old plan from the registry and ask for its state only now.
        # So the state is away while the plan changes, and its stamp says when it came: a decision
        # that began before that must not use it.
        self._served.pop(served.name, None)
        self.registry.put(served.plan)
        self._stamp += 1
        self._served[served.name] = replace(served, stamp=self._stamp)
        self._names[cache.id] = served.name
        if old is not None and old != served.name:
            self._forget(old, cache.id)

    def _drop(self, cache_id: str) -> None:
        name = self._names.pop(cache_id, None)
        if name is not None:
            self._forget(name, cache_id)

    def _forget(self, name: str, cache_id: str) -> None:
        current = self._served.get(name)
        # CREATE OR REPLACE gives the name to another cache, which must stay.
        if current is not None and current.id == cache_id:
            del self._served[name]
            self.registry.drop(name)

    def _follow(self) -> None:
        while not self._closed:
            try:
                self.sync()
                self._flush()
            except Exception as error:  # the thread must outlive any trouble of the database
                self.telemetry.count("metastore_errors")
                self.telemetry.warn_once(
                    f"feed {type(error).__name__}",
                    f"the metastore cannot be followed, queries run without caches: {error}",
                )
            self._wake.wait(POLL_SECONDS)
            self._wake.clear()

    def _flush(self) -> None:
        batch: list[DecisionRecord] = []
        try:
            while self._pending and len(batch) < 500:
                batch.append(self._pending.popleft()())
            self.metastore.writer.log_decisions(batch)
        except Exception as error:  # losing log lines is better than losing queries
            self.telemetry.count("decisions_not_logged", len(batch))
            self.telemetry.warn_once("decision log", f"decisions cannot be logged: {error}")


@contextmanager
def _collector_held_off() -> Iterator[None]:
    """The first load makes a million objects that stay: with 10,000 caches three quarters of its
    time went into looking at them again and again, and a second into doing so once more at its
    end (measured). So they go unseen to where long-lived ones are."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else someone has frozen what `unfreeze` would give back
            gc.freeze()
            gc.unfreeze()
        gc.enable()


def _fingerprint(settings: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((k, v) for k, v in settings.items() if changes_results(k))


_feeds: dict[str, tuple[Feed, int]] = {}
_feeds_lock = threading.Lock()


def acquire_feed(url: str) -> Feed:
    """The process's feed for a metastore, started if it is new; give it back with `release_feed`.

    Args:
        url: The metastore's URL.

    Raises:
        MetastoreError: The metastore cannot be opened; says what to do.
    """
    metastore = open_metastore(url)
    with _feeds_lock:
        known = _feeds.get(metastore.url)
        if known is not None:
            metastore.close()
            _feeds[known[0].metastore.url] = (known[0], known[1] + 1)
            return known[0]
        feed = Feed(metastore)
        _feeds[metastore.url] = (feed, 1)
    feed.start()
    return feed


def release_feed(feed: Feed) -> None:
    """Give a feed back; the last one to do so closes it."""
    with _feeds_lock:
        known = _feeds.get(feed.metastore.url)
        if known is None or known[0] is not feed:
            return
        if known[1] > 1:
            _feeds[feed.metastore.url] = (feed, known[1] - 1)
            return
        del _feeds[feed.metastore.url]
    feed.close()
