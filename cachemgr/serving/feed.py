"""The caches that this process matches against: loaded from a metastore or from the service, and
kept up to date.

One feed serves all sessions that use the same source. A thread of its own follows the source and
hands over the decision log, so a query never waits for either. A source that cannot be asked for
longer than its patience, or that refuses, stops all answers from caches.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Protocol

from cachemgr.access.grants import reads_of, restricted_keys
from cachemgr.config.result_settings import fingerprint
from cachemgr.metastore import open_metastore
from cachemgr.metastore.records import DecisionRecord, JoinRecord
from cachemgr.metastore.registry_records import RegistryEntry, RegistryState
from cachemgr.serving.decision_log import DecisionLog
from cachemgr.serving.file_notes import FileNotes
from cachemgr.serving.served_cache import ServedCache, matcher_name, rejoined, serve
from cachemgr.serving.sources import MetastoreSource, Source, SourceRefused
from cachemgr.telemetry import Telemetry
from matcher.index.registry import Registry
from matcher.model.hash_consing import Sharing
from matcher.model.message import Cause, Number, Word
from matcher.model.reasons import Reason, ReasonCode

_CATCH_UPS = 3


class Watcher(Protocol):
    """Keeps what holds only as long as nothing changes."""

    def changing(self) -> None:
        """What is served is about to change, or has; called at both times. Never raises."""
        ...


class Feed:
    """The registry of one source, and the thread that follows it.

    Args:
        source: What to follow; the feed closes it.
        telemetry: Where trouble is counted and logged.
        clock: Monotonic seconds; tests give their own.
    """

    def __init__(
        self,
        source: Source,
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self.telemetry = telemetry or Telemetry()
        self.registry = Registry()
        self._clock = clock
        self._served: dict[str, ServedCache] = {}
        self._names: dict[str, str] = {}
        self._joins: tuple[JoinRecord, ...] = ()
        self._restricted: Mapping[str, str] = {}
        self._share = Sharing()
        self._revision: int | None = None
        self._principal: str | None = None
        self._stamp = 0
        self._fresh_at = clock()
        self._trouble = ""
        self._refused = ""
        self._syncing = threading.Lock()
        self._log = DecisionLog(source, self.telemetry)
        self._noting: list[Callable[[], None]] = []
        self._listeners: list[Callable[[], None]] = []
        self._watchers: list[Watcher] = []
        self._wake = threading.Event()
        self.notes = FileNotes(source, self.telemetry, clock, self._wake.set, self._changing)
        self._closed = False
        self._thread = threading.Thread(target=self._follow, name="cachemgr-feed", daemon=True)

    def start(self) -> None:
        """Begin to load and to follow, in the background."""
        self._thread.start()

    def close(self) -> None:
        """Stop following, hand over the decisions noted so far, and close the source."""
        self._closed = True
        self._wake.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=self.source.close_seconds)
        self.flush_log()
        self.source.close()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of what is served; once, however often it is given."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Take a listener back."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` of each change of what is served before it is made, and once it is."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Take a watcher back."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def _changing(self) -> None:
        for watcher in tuple(self._watchers):
            watcher.changing()

    @property
    def stamp(self) -> int:
        """Grows with each change; a decision takes it before it looks at any plan."""
        return self._stamp

    def served(self, name: str) -> ServedCache | None:
        """The cache of a matcher's name."""
        return self._served.get(name)

    def caches(self) -> tuple[ServedCache, ...]:
        """All caches that are served now."""
        return tuple(self._served.values())

    def may_serve(self, cache_id: str, location: str, version: int) -> bool:
        """Whether a stored state may be read by a query; one that is being replaced at this moment
        counts as being.

        Args:
            cache_id: The cache's id.
            location: Where its table lies.
            version: The state's Delta version.
        """
        name = self._names.get(cache_id)
        if name is None:
            return False
        found = self._served.get(name)
        if found is None or found.id != cache_id:
            return True
        return (found.location, found.version) == (location, version)

    def restricted(self) -> Mapping[str, str]:
        """What is restricted now, as `cachemgr.access.grants.may_use` takes it."""
        return self._restricted

    @property
    def principal(self) -> str | None:
        """Whom what is served was told to; None leaves it to Spark."""
        return self._principal

    def joins(self) -> tuple[JoinRecord, ...]:
        """All record-preserving joins as they are declared now."""
        return self._joins

    def why_not_ready(self) -> Reason | None:
        """Why nothing may be answered from caches at this moment; None if it may."""
        name = self.source.name
        if self._refused:
            return Reason(
                ReasonCode.NOT_GRANTED,
                "{why}",
                "resolve it and run the query again",
                why=Cause(self._refused),
            )
        if self._revision is None:
            return Reason(
                ReasonCode.REGISTRY_LOADING,
                "the caches are being loaded from {source}{trouble}",
                "run the query again",
                source=Word(name),
                trouble=Cause(self._trouble),
            )
        age = self._clock() - self._fresh_at
        if age > self.source.patience:
            return Reason(
                ReasonCode.REGISTRY_LOADING,
                "{source} could not be asked for {age} s: drops are unknown{trouble}",
                "run the query again",
                source=Word(name),
                age=Number(age, ".0f"),
                trouble=Cause(self._trouble),
            )
        return None

    def wait_loaded(self, seconds: float) -> bool:
        """Wait until the first load is done, and what it brought is not out of date.

        Args:
            seconds: At most so long.

        Returns:
            Whether it is done.
        """
        until = time.monotonic() + seconds
        while not self._is_loaded() and time.monotonic() < until:
            time.sleep(0.005)
        return self._is_loaded()

    def _is_loaded(self) -> bool:
        age = self._clock() - self._fresh_at
        return self._revision is not None and age <= self.source.patience

    def sync(self) -> bool:
        """Bring the registry to the source's state now.

        Returns:
            Whether anything changed.

        Raises:
            CacheManagerError: The source cannot be asked, or refuses.
        """
        changed = latest = self._sync_once()
        for _ in range(_CATCH_UPS):
            # what took long to load is out of date before anybody can be answered by it
            if not latest or self._clock() - self._fresh_at < self.source.patience / 2:
                break
            latest = self._sync_once()
        return changed

    def _sync_once(self) -> bool:
        first = self._revision is None
        with self._syncing, _collector_held_off() if first else nullcontext():
            asked_at = self._clock()
            try:
                state = self.source.news(self._revision)
            except SourceRefused as error:
                self._refused = error.message
                self._changing()
                raise
            except Exception as error:
                self._trouble = f" ({error})"
                raise
            if state is not None:
                self._changing()
                # before what comes new: it must not serve for a moment as if nothing were marked
                self._restricted = self._restricted_by(state)
                self._take_joins(state.joins)
                for entry in state.entries:
                    self._put(entry)
                for cache_id in [i for i in self._names if i not in state.live_ids]:
                    self._drop(cache_id)
                # last: until now, whoever was told before has a grant on nothing of this
                self._principal = state.principal
                self._revision = state.revision
                self._changing()
            self._fresh_at = asked_at
            self._trouble = self._refused = ""
        if state is not None:
            for listener in tuple(self._listeners):
                listener()
        return state is not None

    def log(self, decision: Callable[[], DecisionRecord]) -> None:
        """Note a decision; its record is made and sent in the background, not in the query."""
        self._log.note(decision)

    def before_flush(self, note: Callable[[], None]) -> None:
        """Call `note`, which never raises, before decisions are handed over: it notes those that
        wait; once, however often it is given."""
        if note not in self._noting:
            self._noting.append(note)

    def forget_before_flush(self, note: Callable[[], None]) -> None:
        """Take that back."""
        if note in self._noting:
            self._noting.remove(note)

    def flush_log(self) -> None:
        """Hand over the decisions noted so far."""
        for note in tuple(self._noting):
            note()
        self._log.flush()

    def _restricted_by(self, state: RegistryState) -> Mapping[str, str]:
        if not state.restricted:
            return {}
        reads = {c.id: c.reads for c in self._served.values()}
        reads |= {entry.cache.id: reads_of(entry) for entry in state.entries}
        return restricted_keys(state.restricted, reads.items())

    def _take_joins(self, joins: tuple[JoinRecord, ...]) -> None:
        """What a join says changes the plans of caches that did not change themselves."""
        if joins == self._joins:
            return
        self._joins = joins
        for cache in tuple(self._served.values()):
            again = rejoined(cache, joins)
            if again is not cache:
                self._serve(again)

    def _put(self, entry: RegistryEntry) -> None:
        cache = entry.cache
        try:
            served = serve(entry, self._joins, fingerprint(cache.settings), self._share)
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
        self._serve(served)
        self._names[cache.id] = served.name
        if old is not None and old != served.name:
            self._forget(old, cache.id)

    def _serve(self, served: ServedCache) -> None:
        # A decision may have read the old plan from the registry and ask for its state only now.
        # So the state is away while the plan changes, and its stamp says when it came: a decision
        # that began before that must not use it.
        self._served.pop(served.name, None)
        self.registry.put(served.plan)
        self._stamp += 1
        self._served[served.name] = replace(served, stamp=self._stamp)

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
        failures = 0
        while not self._closed:
            try:
                self.notes.tell()
                self.sync()
                failures = 0
            except Exception as error:  # the thread must outlive any trouble of the source
                failures += 1
                if not self._closed:
                    self.telemetry.count("source_errors")
                    self.telemetry.warn_once(
                        f"feed {type(error).__name__}",
                        f"{self.source.name} cannot be followed: {error}",
                    )
            self.flush_log()
            self._wake.wait(self.source.pause(failures))
            self._wake.clear()


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


_feeds: dict[str, tuple[Feed, int]] = {}
_feeds_lock = threading.Lock()


def acquire_feed(url: str) -> Feed:
    """The process's feed for a metastore, started if it is new; give it back with `release_feed`.

    Args:
        url: The metastore's URL.

    Raises:
        MetastoreError: The metastore cannot be opened; says what to do.
    """
    return acquire_feed_of(MetastoreSource(open_metastore(url)))


def acquire_feed_of(source: Source) -> Feed:
    """The process's feed for a source, started if it is new; give it back with `release_feed`.

    Args:
        source: What to follow; closed if there is a feed with one of the same key.
    """
    with _feeds_lock:
        known = _feeds.get(source.key)
        if known is not None:
            source.close()
            _feeds[source.key] = (known[0], known[1] + 1)
            return known[0]
        feed = Feed(source)
        _feeds[source.key] = (feed, 1)
    feed.start()
    return feed


def acquire_known_feed(key: str) -> Feed | None:
    """The process's feed for a source of this key, if there is one; give it back with
    `release_feed`.

    Args:
        key: The source's.
    """
    with _feeds_lock:
        known = _feeds.get(key)
        if known is None:
            return None
        _feeds[key] = (known[0], known[1] + 1)
        return known[0]


def release_feed(feed: Feed) -> None:
    """Give a feed back; the last one to do so closes it."""
    key = feed.source.key
    with _feeds_lock:
        known = _feeds.get(key)
        if known is None or known[0] is not feed:
            return
        if known[1] > 1:
            _feeds[key] = (feed, known[1] - 1)
            return
        del _feeds[key]
    feed.close()
