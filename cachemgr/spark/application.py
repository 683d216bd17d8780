"""What all sessions of one Spark application share: pins, tails, lists of files, and what is
remembered of tables and settings.

None of it depends on a session or on who asks, so a further session finds it warm, and it takes its
memory once. What a session decides with its own settings and principal is in `session`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import partial

from pyspark.sql import SparkSession

from cachemgr.config.judged.values import default_in_spark
from cachemgr.config.result_settings import SettingsComparer
from cachemgr.config.session_settings import Settings
from cachemgr.config.setting_names import PREFIX
from cachemgr.config.settings_told import warn_of_unknown
from cachemgr.delta.hadoop_files import files_of
from cachemgr.delta.own_session import own_session
from cachemgr.delta.stored_files import StoredFiles
from cachemgr.delta.tables import commits_of, past_of
from cachemgr.jvm.classes import class_on_path
from cachemgr.jvm.loader import java_class
from cachemgr.jvm.runtime import computing
from cachemgr.serving.feed import Feed
from cachemgr.serving.freshness import Histories
from cachemgr.spark.held.new_keys import NewKeyChecks
from cachemgr.spark.held.pin_pace import PinPace
from cachemgr.spark.held.pins import PinKey, PinStore
from cachemgr.spark.held.set_files import FileReads
from cachemgr.spark.held.tails import TailStore
from cachemgr.spark.outcomes import NotedDecision, Outcomes
from cachemgr.spark.prepared import PreparedDecisions
from cachemgr.telemetry import Telemetry
from matcher.memory.bounded import Bounded

_MOST_SETTINGS = 100
_MOST_ORDERS = 10_000


class Application:
    """What the enabled sessions of one application share; safe for several threads.

    Args:
        spark: Any session of the application. The work is done in one of our own, so that what a
            user sets in his must not decide how rows are read for others.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.context = spark.sparkContext
        self.user: str = self.context.sparkUser()
        self.computes = computing(spark)
        self.session = own_session(spark, {})
        self.pins = PinStore(self.session, 0, self._is_served)
        self.pin_pace = PinPace()
        # by cache and grouping set, for the next snapshot: few change their order
        self.key_orders: Bounded[tuple[str, ...]] = Bounded(_MOST_ORDERS)
        self.files = FileReads(self.session)
        self.comparer = SettingsComparer(self._default_of)
        self.histories = Histories(
            partial(past_of, self.session), partial(commits_of, self.session)
        )
        self.new_keys = NewKeyChecks(self.session)
        self.tails = TailStore(self.session, self.histories, self.new_keys, self._is_served)
        self.outcomes = Outcomes(
            lambda: str(java_class(self.session, "Hook").planned()), elsewhere=self
        )
        self._prepared: dict[int, PreparedDecisions] = {}
        self.stored = StoredFiles(files_of(self.session))
        # what was told to the hook
        self.known: frozenset[str] | None = None
        self._lock = threading.Lock()
        self._members: dict[str, tuple[Feed, Settings, Telemetry]] = {}
        self._parsed: Bounded[Settings] = Bounded(_MOST_SETTINGS)

    def join(self, key: str, feed: Feed, settings: Settings, telemetry: Telemetry) -> None:
        """A session takes part.

        Args:
            key: The session's.
            feed: The caches that it uses.
            settings: Say what pins and tails may take. The application's bound is the largest of
                its sessions'.
            telemetry: Its counters.
        """
        with self._lock:
            self._members[key] = (feed, settings, telemetry)
        feed.listen(self._sweep)
        feed.before_flush(self.outcomes.settle)
        self._resize()

    def prepared(self, feed: Feed) -> PreparedDecisions:
        """The decisions of a feed that hold for a query's shape.

        Args:
            feed: The caches.
        """
        with self._lock:
            found = self._prepared.get(id(feed))
            if found is None:
                java = java_class(self.session, "prepared.Prepared").create()
                found = PreparedDecisions(java, feed, self.outcomes.settle)
                self._prepared[id(feed)] = found
                feed.watch(found)
            return found

    @property
    def is_used(self) -> bool:
        """Whether some decision may have been made without Python; see `DecidedElsewhere`."""
        return any(each.is_used for each in list(self._prepared.values()))

    def taken(self) -> Iterator[tuple[int, NotedDecision]]:
        """Those decisions; see there."""
        with self._lock:
            counts = {key: telemetry for key, (*_, telemetry) in self._members.items()}
            stores = list(self._prepared.values())
        for store in stores:
            yield from store.taken(counts, self._touch)

    def _touch(self, key: PinKey) -> None:
        self.pin_pace.read(key)
        self.pins.touch(key)

    def _close_prepared(self, feed: Feed) -> None:
        with self._lock:
            found = self._prepared.pop(id(feed), None)
        if found is not None:
            feed.unwatch(found)
            found.close()

    def leave(self, key: str) -> bool:
        """A session takes part no more; what others use stays.

        Args:
            key: The session's.

        Returns:
            Whether it was the last one: the application is to be closed.
        """
        self.outcomes.settle()  # while the feed still hands over what is told
        with self._lock:
            gone = self._members.pop(key, None)
            feeds = [feed for feed, *_ in self._members.values()]
            last = not self._members
        if gone is not None and all(feed is not gone[0] for feed in feeds):
            self._close_prepared(gone[0])
            gone[0].unlisten(self._sweep)
            gone[0].forget_before_flush(self.outcomes.settle)
            self._sweep()
        self._resize()
        return last

    def close(self) -> None:
        """Let go of everything. Waits for what is being made or looked at."""
        with self._lock:
            members = list(self._members.values())
            self._members.clear()
        for feed, *_ in members:
            self._close_prepared(feed)
            feed.unlisten(self._sweep)
            feed.forget_before_flush(self.outcomes.settle)
        self.tails.close()
        self.new_keys.close()
        self.pins.close()

    def settings(self, explicit: Mapping[str, str]) -> Settings:
        """Our settings among those explicitly set in a session; see `CacheSession.settings`."""
        ours = frozenset((k, v) for k, v in explicit.items() if k.startswith(PREFIX))
        found = self._parsed.get(ours)
        if found is None:
            # what SET, a builder or `enable` was given is warned of there, spark.conf.set is not
            warn_of_unknown(key for key, _ in ours)
            found = Settings.from_mapping(dict(ours))
            self._parsed.put(ours, found)
        return found

    def _resize(self) -> None:
        with self._lock:
            settings = [each for _, each, _ in self._members.values()]
        self.pins.resize(
            max((s.pin_max_bytes for s in settings), default=0),
            max((s.local_max_held_bytes for s in settings if s.local_enabled), default=0),
        )
        self.tails.resize(max((s.fresh_tail_max_bytes for s in settings), default=0))

    def _sweep(self) -> None:
        self.pins.sweep()
        self.tails.sweep()

    def _is_served(self, key: PinKey) -> bool:
        """Whether some session may still be answered from what a pin holds."""
        with self._lock:
            feeds = {id(feed): feed for feed, *_ in self._members.values()}
        return any(
            feed.may_serve(key.cache_id, key.location, key.version) for feed in feeds.values()
        )

    def _default_of(self, key: str) -> str | None:
        # A Scala object: Java sees its methods on the one instance only.
        conf = class_on_path(self.session._jvm, "org.apache.spark.sql.internal.SQLConf$")
        entry = getattr(conf, "MODULE$").getConfigEntry(key)
        if entry is None:
            return default_in_spark(key)  # one of Hadoop's
        text: str = entry.defaultValueString()
        return None if text == "<undefined>" else text
