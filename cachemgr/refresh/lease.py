"""Keeping a refresh's lease alive while Spark works."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from types import TracebackType

from cachemgr.errors import CacheManagerError, LeaseLostError
from cachemgr.metastore.store import Metastore


class Heartbeat:
    """Renews a lease in the background from `with` until its end; `check` raises once it is lost.

    A metastore that cannot be reached for a while does not end the refresh: what counts is
    whether the lease still holds when the result is published, and the metastore decides that.
    """

    def __init__(
        self,
        metastore: Metastore,
        cache_id: str,
        token: int,
        *,
        now: Callable[[], datetime],
        lease_seconds: float,
    ) -> None:
        self._metastore = metastore
        self._cache_id = cache_id
        self._token = token
        self._now = now
        self._seconds = lease_seconds
        self._stop = threading.Event()
        self._lost: LeaseLostError | None = None
        self._thread = threading.Thread(target=self._beat, name="cachemgr-lease", daemon=True)

    def _beat(self) -> None:
        while not self._stop.wait(self._seconds / 3):
            try:
                self._metastore.writer.renew_lease(
                    self._cache_id, self._token, now=self._now(), lease_seconds=self._seconds
                )
            except LeaseLostError as error:
                self._lost = error
                return
            except CacheManagerError:
                continue

    def check(self) -> None:
        """Raise LeaseLostError if the lease was taken over."""
        if self._lost is not None:
            raise self._lost

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
