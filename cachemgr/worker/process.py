"""What one process does all the time: look what is due, watch base tables, take refreshes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cachemgr.metastore.store import Metastore
from cachemgr.telemetry import Telemetry, logger
from cachemgr.worker.clock import Clock
from cachemgr.worker.refresher import Refresher
from cachemgr.worker.schedule import Watch, ask_for_due
from cachemgr.worker.worker import Worker

LOOK_SECONDS: Final = 1.0
HOUSEKEEPING_SECONDS: Final = 60.0


class Process:
    """The scheduler, the watch and a worker of one process.

    Args:
        metastore: What is shared with the other processes.
        refresher: Spark.
        worker: Takes and carries out refreshes; None leaves that to others.
        schedules: Whether to look what is due.
        journal: Writes what others changed and a rebuild needs.
        housekeeping: Deletes what is too old.
        telemetry: Where trouble is counted and logged.
    """

    def __init__(
        self,
        metastore: Metastore,
        refresher: Refresher,
        worker: Worker | None,
        *,
        schedules: bool = True,
        journal: Callable[[], object] | None = None,
        housekeeping: Callable[[], object] | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._worker = worker
        watch = Watch(metastore, refresher)
        jobs: dict[str, Callable[[], object]] = {}
        if schedules:
            jobs = {"watch": watch.look, "schedule": lambda: ask_for_due(metastore)}
        if worker is not None:
            jobs["take"] = worker.take
        if journal is not None:
            jobs["journal"] = journal
        self._clock = Clock(telemetry)
        for name, job in jobs.items():
            self._clock.every(LOOK_SECONDS, name, job)
        if housekeeping is not None:
            self._clock.every(HOUSEKEEPING_SECONDS, "housekeeping", housekeeping)

    def start(self) -> None:
        """Begin, in the background."""
        self._clock.start()

    def stop(self, grace_seconds: float) -> tuple[str, ...]:
        """End: nothing new is begun, what runs may finish.

        Args:
            grace_seconds: How long refreshes may take to finish; others are handed over.

        Returns:
            Ids of those that were handed over.
        """
        if self._worker is not None:
            logger.info("stopping: no more refreshes are taken")
            self._worker.take_no_more()  # the clock waits for a look that waits for Spark
        self._clock.stop()
        return () if self._worker is None else self._worker.stop(grace_seconds)
