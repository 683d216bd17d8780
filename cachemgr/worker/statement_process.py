"""What a process that runs statements does all the time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from cachemgr.telemetry import logger
from cachemgr.worker.clock import Clock
from cachemgr.worker.process import HOUSEKEEPING_SECONDS
from cachemgr.worker.statements import StatementWorker

# A small result takes a tenth of a second: whoever waits for one is not to wait for a look.
_TAKE_SECONDS: Final = 0.05
_RECOVER_SECONDS: Final = 1.0
_LOOKS_A_LEASE: Final = 10


class StatementProcess:
    """Takes statements, keeps their leases, and clears away what is over.

    Args:
        worker: Runs statements.
        lease_seconds: How long its leases last.
        housekeeping: Ends the time of results.
    """

    def __init__(
        self,
        worker: StatementWorker,
        lease_seconds: float,
        housekeeping: Callable[[], object],
    ) -> None:
        self._worker = worker
        self._over = threading.Event()
        self._clock = Clock()
        self._clock.every(_RECOVER_SECONDS, "recover", worker.recover)
        self._clock.every(min(1.0, lease_seconds / _LOOKS_A_LEASE), "keep", worker.keep)
        self._clock.every(HOUSEKEEPING_SECONDS, "housekeeping", housekeeping)
        self._taking = threading.Thread(target=self._take, name="cachemgr-take", daemon=True)

    def start(self) -> None:
        """Begin, in the background."""
        self._clock.start()
        self._taking.start()

    def stop(self, grace_seconds: float) -> tuple[str, ...]:
        """End: nothing new is begun, what runs may finish.

        Args:
            grace_seconds: How long statements may take to finish; others are given back.

        Returns:
            Ids of those that were given back.
        """
        logger.info("stopping: no more statements are taken")
        self._worker.take_no_more()
        self._over.set()
        given_back = self._worker.stop(grace_seconds)
        self._clock.stop()
        return given_back

    def _take(self) -> None:
        self._clock.run("prepare", self._worker.prepare)
        while not self._over.wait(_TAKE_SECONDS):
            self._clock.run("take", self._worker.take)
