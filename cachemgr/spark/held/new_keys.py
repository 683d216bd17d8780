"""Whether the keys that were appended to dimensions are new: asked of Spark once for two states of
a table, beside the queries, and remembered."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyspark.sql import SparkSession

from cachemgr.base_state import BaseState, TableAt
from cachemgr.delta.changed_files import ChangedFiles
from cachemgr.delta.changes import Changes
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.spark.held.degraded import warn
from cachemgr.spark.hook import suspended
from matcher.memory.bounded import Bounded
from matcher.render.placeholders import ALL, CAME
from matcher.render.select import quote

_log = logging.getLogger("cachemgr.keys")
_MOST: Final = 1_000
# after a look that failed: its job was cancelled, or the table's files cannot be read for a while
_AGAIN_SECONDS: Final = 30.0


class NewKeyChecks:
    """The checks of one application; safe for several threads.

    Args:
        spark: A session of ours.
        clock: Gives seconds.
    """

    def __init__(self, spark: SparkSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._spark = spark
        self._clock = clock
        self._known: Bounded[bool] = Bounded(_MOST)
        self._failed: Bounded[float] = Bounded(_MOST)
        self._lock = threading.Lock()
        self._asked: set[Hashable] = set()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="cachemgr-keys")

    def are_new(
        self, table: TableAt, since: BaseState, changes: Changes, columns: tuple[str, ...]
    ) -> bool | None:
        """See `NewKeys`. A state without a commit of its own may be another one the next time: of
        such a one nothing is known."""
        if not table.commit:
            return None
        key = (table.location, table.state, since, columns)
        found = self._known.get(key)
        if found is not None:
            return found
        with self._lock:
            failed = self._failed.get(key)
            if failed is not None and self._clock() < failed + _AGAIN_SECONDS:
                return False
            if key in self._asked:
                return None
            self._asked.add(key)
        try:
            self._pool.submit(self._look, key, table, since, changes, columns)
        except RuntimeError:  # it is closed
            with self._lock:
                self._asked.discard(key)
        return None

    @property
    def is_looking(self) -> bool:
        """Whether some keys are being looked at."""
        with self._lock:
            return bool(self._asked)

    def close(self) -> None:
        """Later questions get no answer."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _look(
        self,
        key: Hashable,
        table: TableAt,
        since: BaseState,
        changes: Changes,
        columns: tuple[str, ...],
    ) -> None:
        try:
            self._known.put(key, self._no_key_twice(table, since, changes, columns))
        except Exception as error:
            warn(_log, f"the new keys of {table.name} cannot be looked at", error)
            self._failed.put(key, self._clock())
        finally:
            with self._lock:
                self._asked.discard(key)

    def _no_key_twice(
        self, table: TableAt, since: BaseState, changes: Changes, columns: tuple[str, ...]
    ) -> bool:
        assert since.version is not None
        place, names = table.location, ", ".join(map(quote, columns))
        there = " AND ".join(f"{quote(c)} IS NOT NULL" for c in columns)
        text = (
            f"SELECT 1 FROM {ALL} LEFT SEMI JOIN (SELECT {names} FROM {CAME} WHERE {there}) "
            f"USING ({names}) GROUP BY {names} HAVING COUNT(*) > 1 LIMIT 1"
        )
        files = ChangedFiles(place, since.version, table.version, changes.added)
        with suspended(self._spark):
            relations = {ALL: TableRead(place, table.version), CAME: files.plan(self._spark)}
            return not run_select(self._spark, text, relations).collect()
