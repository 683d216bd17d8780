"""A worker: takes refreshes from the queue and carries them out, so many at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cachemgr.errors import NO_SPARK, CacheManagerError, ErrorCode, RefreshError
from cachemgr.metastore.records import RefreshRunRecord
from cachemgr.metastore.store import Metastore
from cachemgr.telemetry import logger
from cachemgr.vocabulary import Origin
from cachemgr.worker.passing import is_of_storage
from cachemgr.worker.refresher import Refresher
from scheduler.failures import after_failure

_TABLE_LOST: Final = ErrorCode.BASE_TABLE_LOST
LOST_TABLE_SECONDS: Final = 600.0
_LEFT_SECONDS: Final = 600.0
# Trying again cannot help until somebody mends what these name.
PERMANENT: Final = frozenset(
    {
        ErrorCode.BASE_COLUMN_CHANGED,
        ErrorCode.BASE_COLUMN_LOST,
        _TABLE_LOST,
        ErrorCode.COLUMNS_CHANGED,
        ErrorCode.DEFINITION_BROKEN,
        ErrorCode.NOT_INCREMENTAL,
        ErrorCode.PLAN_UNREADABLE,
        ErrorCode.SETTING_NOT_AVAILABLE,
    }
)
_NO_FAILURE: Final = frozenset(
    {
        ErrorCode.REFRESH_CANCELLED,
        ErrorCode.CACHE_NOT_FOUND,
        ErrorCode.LEASE_LOST,
        ErrorCode.OTHER_SPARK,
        *NO_SPARK,
    }
)


@dataclass(frozen=True, slots=True)
class _Passing:
    """What a refresh met and may pass by itself.

    Args:
        since: When it was met first; None if it will not pass.
        until: Until when it is looked for often.
        never_pauses: However long it lasts, it is looked for.
    """

    since: datetime | None = None
    until: datetime | None = None
    never_pauses: bool = False


class Worker:
    """Carries out refreshes of the queue.

    Args:
        metastore: Where the queue is.
        refresher: Spark.
        holder: Who this is, in leases and messages.
        slots: How many refreshes this worker runs at once.
        lease_seconds: How long a lease lasts without being renewed: what a crash costs.
        most_running: How many may run at once on all workers together.
        chance: A number from 0 to 1, for the jitter of retries.
        lost_table_seconds: How long a base table that is gone may be one that a job makes anew, and
            how long a storage that cannot be asked is tried as often as such a table.
    """

    def __init__(
        self,
        metastore: Metastore,
        refresher: Refresher,
        *,
        holder: str,
        slots: int = 1,
        lease_seconds: float = 20.0,
        most_running: int | None = None,
        chance: Callable[[], float] = random.random,
        lost_table_seconds: float = LOST_TABLE_SECONDS,
    ) -> None:
        self._metastore = metastore
        self._refresher = refresher
        self._holder = holder
        self._slots = slots
        self._lease_seconds = lease_seconds
        self._most_running = most_running
        self._chance = chance
        self._lost_table_seconds = lost_table_seconds
        self._pool = ThreadPoolExecutor(slots, thread_name_prefix="cachemgr-refresh")
        self._lock = threading.Lock()
        self._running: dict[str, Future[None]] = {}
        self._stopping = False
        # caches that this Spark could not build, and when it tries again: they may be defined anew
        self._leaving: dict[str, float] = {}

    def take(self) -> int:
        """Take as many refreshes as there are free slots; also those of workers that are gone.

        Returns:
            How many were taken.
        """
        self._metastore.queue.requeue_abandoned()
        taken = 0
        if self._stopping or not self._metastore.queue.waiting():
            return 0
        self._refresher.prepare()
        while not self._stopping and len(self._running) < self._slots:
            run = self._metastore.queue.claim(
                self._holder,
                lease_seconds=self._lease_seconds,
                most_running=self._most_running,
                leaving=self._left(),
            )
            if run is None:
                break
            with self._lock:
                self._running[run.id] = self._pool.submit(self._carry_out, run)
            taken += 1
        return taken

    @property
    def running(self) -> tuple[str, ...]:
        """Ids of the refreshes that run here now."""
        with self._lock:
            return tuple(self._running)

    def take_no_more(self) -> None:
        """Take nothing more, also where taking waits for Spark to start; what runs goes on."""
        self._stopping = True

    def stop(self, grace_seconds: float) -> tuple[str, ...]:
        """Take nothing more, and wait for what runs.

        Args:
            grace_seconds: At most so long.

        Returns:
            Ids of the refreshes that were handed over: stopped here, and asked for again.
        """
        self.take_no_more()
        with self._lock:
            running = dict(self._running)
        for future in running.values():
            try:
                future.result(timeout=grace_seconds)
            except TimeoutError:
                grace_seconds = 0
        handed = [run_id for run_id, future in running.items() if not future.done()]
        for run_id in handed:
            self._metastore.queue.hand_over(run_id, by=self._holder)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return tuple(handed)

    def _carry_out(self, run: RefreshRunRecord) -> None:
        name = run.cache_id
        try:
            name = self._metastore.caches.names((run.cache_id,)).get(run.cache_id, name)
            logger.info("refresh %s of cache %s begins", run.id, name)
            done = self._refresher.refresh(run, lambda error: self._failing(run, error))
            logger.info("refresh %s of cache %s: %s", run.id, name, done.state.value)
        except CacheManagerError as error:
            logger.warning("refresh %s of cache %s: %s", run.id, name, error)
            self._end(run, error)
        except Exception as error:
            logger.exception("refresh %s of cache %s failed", run.id, name)
            told = RefreshError(
                ErrorCode.REFRESH_FAILED, f"the refresh failed: {type(error).__name__}: {error}"
            )
            self._failing(run, told)
            self._end(run, told)
        finally:
            with self._lock:
                self._running.pop(run.id, None)

    def _left(self) -> tuple[str, ...]:
        now = time.monotonic()
        return tuple(cache_id for cache_id, until in self._leaving.items() if now < until)

    def _end(self, run: RefreshRunRecord, error: CacheManagerError) -> None:
        """One that failed before it came to its own end must not keep its lease."""
        try:
            if error.code == ErrorCode.OTHER_SPARK:
                self._leaving[run.cache_id] = time.monotonic() + _LEFT_SECONDS
                because = f"which leaves it to others: {error.message}"
                self._metastore.queue.hand_over(run.id, by=self._holder, because=because)
                return
            if error.code in NO_SPARK:
                self._metastore.queue.hand_over(run.id, by=self._holder, spark_lost=True)
                return
            self._metastore.refreshes.fail(run.id, run.fencing_token, str(error), now=None)
        except CacheManagerError as trouble:
            logger.warning("the end of refresh %s cannot be noted: %s", run.id, trouble)

    def _failing(self, run: RefreshRunRecord, error: CacheManagerError) -> None:
        if run.origin is not Origin.SCHEDULE or error.code in _NO_FAILURE:
            return
        schedule = self._metastore.schedules.of(run.cache_id)
        if schedule is None:
            return
        passing = self._passing(run, error)
        verdict = after_failure(
            schedule.failures,
            permanent=error.code in PERMANENT,
            error=str(error),
            now=self._metastore.clock.now(),
            chance=self._chance,
            passing_until=passing.until,
            lasting_since=passing.since if passing.never_pauses else None,
        )
        noted = self._metastore.schedules.note_failure(
            run.cache_id,
            failures=verdict.failures,
            retry_at=verdict.retry_at,
            paused_because=verdict.paused_because,
            token=run.fencing_token,
        )
        if noted and verdict.paused_because is not None:
            logger.error("cache %s is paused: %s", run.cache_id, verdict.paused_because)

    def _passing(self, run: RefreshRunRecord, error: CacheManagerError) -> _Passing:
        """A job that drops a table and makes it anew leaves none there for a while; a storage that
        cannot be asked comes back.
        """
        of_storage = is_of_storage(str(error))
        if error.code != _TABLE_LOST and not of_storage:
            return _Passing()
        since = self._metastore.refreshes.failing_since(run.cache_id, error.code) or run.started_at
        what = "its base table" if error.code == _TABLE_LOST else "the storage"
        until = since + timedelta(seconds=self._lost_table_seconds)
        logger.warning("cache %s waits for %s to be back", run.cache_id, what)
        return _Passing(since, until, never_pauses=of_storage)
