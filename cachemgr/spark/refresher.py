"""The worker's `Refresher` on a Spark session of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from cachemgr.base_state import BaseState, Unreadable
from cachemgr.delta.tables import current_states, first_commit_after, table_place
from cachemgr.errors import CacheManagerError
from cachemgr.metastore.records import RefreshRunRecord
from cachemgr.metastore.store import Metastore
from cachemgr.refresh.by_change.adopt import has_more_to_do
from cachemgr.refresh.run import DEFAULT_DROP_GRACE, run_claimed
from cachemgr.spark.definitions.replan import replan_anywhere
from cachemgr.telemetry import logger


class SparkRefresher:
    """Carries refreshes out, and reads the heads of Delta logs.

    Args:
        start: The Spark session; called whenever one is needed, and starts it the first time.
        metastore: Where caches, runs and leases are.
        lease_seconds: How long a lease lasts without being renewed.
        drop_grace_seconds: How long files of old versions stay for queries planned before.
    """

    def __init__(
        self,
        start: Callable[[], SparkSession],
        metastore: Metastore,
        *,
        lease_seconds: float,
        drop_grace_seconds: int = DEFAULT_DROP_GRACE,
    ) -> None:
        self._start = start
        self._metastore = metastore
        self._lease_seconds = lease_seconds
        self._drop_grace_seconds = drop_grace_seconds

    @property
    def spark(self) -> SparkSession:
        """The session as it is now."""
        return self._start()

    def prepare(self) -> None:
        """Start Spark if it does not run yet."""
        self._start()

    def refresh(
        self, run: RefreshRunRecord, failing: Callable[[CacheManagerError], None]
    ) -> RefreshRunRecord:
        """Carry out a refresh whose lease is held.

        Raises:
            CacheManagerError: It failed; the snapshot before keeps serving.
        """
        spark = self.spark
        cache = self._metastore.caches.get(run.cache_id)
        done = run_claimed(
            spark,
            self._metastore,
            run,
            mode=run.mode,
            now=lambda: None,
            replan=None
            if cache is None
            else lambda: replan_anywhere(spark, cache, self._metastore),
            lease_seconds=self._lease_seconds,
            drop_grace_seconds=self._drop_grace_seconds,
            checkpoint=lambda step: logger.debug("refresh %s: step %s", run.id, step),
            failing=failing,
            may_leave=True,
        )
        if has_more_to_do(done):
            self._metastore.queue.request(
                run.cache_id,
                why="what came since the versions that a run which died had written",
                origin=run.origin,
                mode=run.mode,
                requested_by=run.requested_by,
            )
        return done

    def heads(self, places: Collection[str]) -> Mapping[str, BaseState | Unreadable | None]:
        """The Delta table at each place as it is now, None where there is none."""
        return current_states(self.spark, places)

    def places(self, names: Collection[str]) -> Mapping[str, str]:
        """Where the tables lie that names of Spark's own catalog stand for here now."""
        spark = self.spark
        found = {name: table_place(spark, name) for name in names}
        return {name: place for name, place in found.items() if place is not None}

    def first_commit_after(self, place: str, version: int) -> datetime | None:
        """When the first commit after a version was made; None if it is the newest."""
        millis = first_commit_after(self.spark, place, version)
        return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
