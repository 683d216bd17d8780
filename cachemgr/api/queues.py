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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from cachemgr.api.errors import ApiError
from cachemgr.errors import ErrorCode
from cachemgr.text.limits import LONG_TEXT

MOST_KNOWN: Final = 1000
MOST_SHORT: Final = 250
MOST_SLOW: Final = 64
MOST_LONG: Final = 16
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
            return await self._long.run(work)
        found = await self._known.run(quick)
        if found is None:
            found = await self._short.run(soon)
        return found if found is not None else await self._slow.run(work)


class _Lane:
    """One thread, and how many may wait for it."""

    def __init__(self, name: str, most: int) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._most = most
        self._waiting = 0

    async def run(self, work: Callable[[], _Result]) -> _Result:
        if self._waiting >= self._most:
            raise ApiError(
                503, ErrorCode.BUSY, "more texts wait than can be answered soon: try again"
            )
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._waiting -= 1
