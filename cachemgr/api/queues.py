"""Where texts are decided: one thread for those of a known shape, one for others, one for those of
them that take long, and one for long texts.

Deciding is work for the processor alone, and Python runs one thread of it at a time. Many at once
would only take turns, each waiting for all others; one after the other each is done sooner. A text
of a known shape takes a fraction of what it takes to read a new one, so it does not wait for these;
nor do they for a text of a megabyte, which takes seconds, nor for one that uses up all that a
decision may take: after a moment such a one goes to the end of a queue of its own. Where more wait
than can be answered while anybody still wants the answer, the next ones are told so at once.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import Any, Final, TypeVar

from cachemgr.api.errors import ApiError
from cachemgr.errors import ErrorCode
from cachemgr.text.limits import LONG_TEXT

MOST_KNOWN: Final = 1000
MOST_SHORT: Final = 250
MOST_SLOW: Final = 64
MOST_LONG: Final = 16
# So much longer a text may wait for each of its characters.
_SECONDS_A_CHARACTER: Final = 0.002
_Result = TypeVar("_Result")


class Lanes:
    """The four threads of one application. Each counts who waits for it alone: a text of a known
    shape is not refused because of new ones."""

    def __init__(self) -> None:
        self._known = _Lane("cachemgr-known-texts", MOST_KNOWN)
        self._short = _Lane("cachemgr-texts", MOST_SHORT)
        self._slow = _Lane("cachemgr-slow-texts", MOST_SLOW)
        self._long = _Lane("cachemgr-long-texts", MOST_LONG)

    async def run(
        self,
        work: Callable[[], _Result],
        size: int,
        quick: Callable[[], _Result | None] = lambda: None,
        soon: Callable[[], _Result | None] = lambda: None,
    ) -> _Result:
        """Carry work out in turn.

        Args:
            work: What to do.
            size: Characters of the text.
            quick: Gives the same where that takes no time; else None.
            soon: Gives the same where that takes a moment; else None.

        Raises:
            ApiError: 503, too many wait already.
        """
        if size > LONG_TEXT:
            return await self._long.run(work, size)
        found = await self._known.run(quick, size)
        if found is None:
            found = await self._short.run(soon, size)
        return found if found is not None else await self._slow.run(work, size)


class _Lane:
    """One thread, and how many may wait for it. The shorter of two texts is usually done sooner,
    and goes first; how much longer the other has waited counts too, so that each gets its turn."""

    def __init__(self, name: str, most: int) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._most = most
        self._waiting = 0
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._next: list[tuple[float, int, Callable[[], Any], Future[Any]]] = []

    async def run(self, work: Callable[[], _Result], size: int) -> _Result:
        if self._waiting >= self._most:
            raise ApiError(
                503, ErrorCode.BUSY, "more texts wait than can be answered soon: try again"
            )
        self._waiting += 1
        done: Future[_Result] = Future()
        due = monotonic() + size * _SECONDS_A_CHARACTER
        try:
            with self._lock:
                heapq.heappush(self._next, (due, next(self._numbers), work, done))
            self._thread.submit(self._do_next)
            return await asyncio.wrap_future(done)
        finally:
            self._waiting -= 1

    def _do_next(self) -> None:
        with self._lock:
            _, _, work, done = heapq.heappop(self._next)
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)
