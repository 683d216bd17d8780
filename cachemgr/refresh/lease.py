"""Keeping a refresh's lease alive while Spark works, and stopping Spark when it is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from cachemgr.errors import CacheManagerError, ErrorCode, LeaseLostError, RefreshError
from cachemgr.metastore.records import RefreshRunRecord
from cachemgr.metastore.refreshes import Refreshes
from cachemgr.refresh.job import Clock

_MOST_SECONDS = 5.0
_SECONDS_BETWEEN_INTERRUPTS = 1.0


class Heartbeat:
    """Renews a lease in the background from `with` until its end; `check` raises once it is lost,
    or once somebody has cancelled the refresh.

    A metastore that cannot be reached for a while does not end the refresh: what counts is
    whether the lease still holds when the result is published, and the metastore decides that.

    Args:
        refreshes: Where the lease is.
        run: The run that holds it.
        now: The clock.
        lease_seconds: How long the lease lasts without being renewed.
        interrupt: Called when the refresh is to stop, from the background, and each second until it
            does: what it stops may only be about to begin.
    """

    def __init__(
        self,
        refreshes: Refreshes,
        run: RefreshRunRecord,
        *,
        now: Clock,
        lease_seconds: float,
        interrupt: Callable[[], None] = lambda: None,
    ) -> None:
        self._refreshes = refreshes
        self._run = run
        self._now = now
        self._seconds = lease_seconds
        self._interrupt = interrupt
        self._over = threading.Event()
        self._stopped: CacheManagerError | None = None
        self._thread = threading.Thread(target=self._beat, name="cachemgr-lease", daemon=True)

    @property
    def stopped(self) -> CacheManagerError | None:
        """Why the refresh is to stop; None if it may go on."""
        return self._stopped

    def _beat(self) -> None:
        run = self._run
        while not self._over.wait(min(_MOST_SECONDS, self._seconds / 3)):
            try:
                self._refreshes.renew_lease(
                    run.cache_id, run.fencing_token, now=self._now(), lease_seconds=self._seconds
                )
                if not self._refreshes.cancel_requested(run.id):
                    continue
                self._stopped = RefreshError(
                    ErrorCode.REFRESH_CANCELLED,
                    f"the refresh {run.id} was cancelled; nothing changes for queries",
                )
            except LeaseLostError as error:
                self._stopped = error
            except CacheManagerError:
                continue
            self._interrupt()
            while not self._over.wait(_SECONDS_BETWEEN_INTERRUPTS):
                self._interrupt()
            return

    def check(self) -> None:
        """Raise LeaseLostError if the lease was taken over, RefreshError if it was cancelled."""
        if self._stopped is not None:
            raise self._stopped

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
