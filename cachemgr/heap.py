"""What the garbage collector of a service process need not look at: the plans of its caches.

A full collection walks through every object, and the plans of a thousand caches are some million of
them: requests would stand still for it. Plans hold no cycles, so that they go when nobody refers to
them, whether the collector sees them or not.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final

PAUSE_SECONDS: Final = 60.0
WHOLE_SECONDS: Final = 3600.0


class SettledHeap:
    """Takes what is there out of the collector's sight (`gc.freeze`).

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._settled: float | None = None
        self._collected = 0.0

    def settle(self) -> None:
        """Do so, at most once a minute. The first time, and once an hour, what is garbage is
        collected before: also what became so out of sight."""
        now = self._clock()
        if self._settled is not None and now - self._settled < PAUSE_SECONDS:
            return
        if self._settled is None or now - self._collected >= WHOLE_SECONDS:
            gc.unfreeze()
            gc.collect()
            self._collected = now
        gc.freeze()
        self._settled = now
