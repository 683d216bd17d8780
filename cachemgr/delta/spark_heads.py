"""Base tables' heads by Spark, for logs that a process without Hadoop cannot read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import SparkSession

from cachemgr.base_state import TableAt
from cachemgr.delta.base_commits import CommitRange, unreadable
from cachemgr.delta.past import UNKNOWN_PAST, Past
from cachemgr.delta.tables import base_tables, commits_of, past_of
from cachemgr.telemetry import logger


class SparkHeads:
    """Asks a Spark that is started, beside the requests, when it is first needed. Until then no
    table is known: a query never waits for a JVM.

    Args:
        start: Gives the session; starts the application if need be.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._starting: threading.Thread | None = None
        self._started = False

    def look(self, seeds: Iterable[TableAt]) -> Mapping[str, TableAt]:
        """The tables at these places as they are now; see `head_lookup.RemoteHeads`."""
        spark = self._ready()
        if spark is None:
            return {}
        found = base_tables(spark, {seed.location: seed.name for seed in seeds})
        return {table.location: table for table in found}

    def past(self, table: TableAt, version: int, *, columns_then: bool) -> Past:
        """A version that a table is past; unknown while no Spark is there."""
        spark = self._ready()
        if spark is None:
            return UNKNOWN_PAST
        return past_of(spark, table, version, columns_then=columns_then)

    def commits(self, table: TableAt, version: int) -> CommitRange:
        """The commits after a version; not readable while no Spark is there."""
        spark = self._ready()
        return unreadable("no Spark yet") if spark is None else commits_of(spark, table, version)

    def _ready(self) -> SparkSession | None:
        with self._lock:
            if not self._started and self._starting is None:
                self._starting = threading.Thread(target=self._begin, daemon=True)
                self._starting.start()
        return self._start() if self._started else None

    def _begin(self) -> None:
        try:
            self._start()
            self._started = True
        except Exception:
            logger.exception("no Spark can be started to look at base tables")
        finally:
            self._starting = None
