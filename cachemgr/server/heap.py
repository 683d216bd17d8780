"""What the garbage collector of a service process need not look at: the plans of its caches, and
what is remembered of queries.

A full collection walks through every object, and the plans of a thousand caches are some million of
them: requests would stand still for it, after some thousand of them for half a second (measured).
Plans hold no cycles, so that they go when nobody refers to them, whether the collector sees them or
not. What a request leaves behind in cycles is little, and garbage as soon as it is answered: a look
at what is young finds it.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Final

PAUSE_SECONDS: Final = 5.0
WHOLE_SECONDS: Final = 3600.0
# So many new objects make a look at the youngest ones; the older are not looked at in between.
THRESHOLDS: Final = (20_000, 1_000, 1_000)


class SettledHeap:
    """Takes what is there out of the collector's sight (`gc.freeze`).

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._settled: float | None = None
        self._collected = 0.0

    async def keep(self) -> None:
        """Settle every few seconds, for as long as the process lives."""
        gc.set_threshold(*THRESHOLDS)
        while True:
            self.settle()
            await asyncio.sleep(PAUSE_SECONDS)

    def settle(self) -> None:
        """Do so, every few seconds at most: each look in between walks through what came since.
        The first time, and once an hour, what is garbage is collected before: also what became so
        out of sight. Otherwise what is young is."""
        now = self._clock()
        if self._settled is not None and now - self._settled < PAUSE_SECONDS:
            return
        if self._settled is None or now - self._collected >= WHOLE_SECONDS:
            gc.unfreeze()
            gc.collect()
            self._collected = now
        else:
            gc.collect(0)
        gc.freeze()
        self._settled = now
