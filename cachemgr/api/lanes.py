"""Where texts are decided: one thread for the short ones, one for the long.

Deciding is work for the processor alone, and Python runs one thread of it at a time. Many at once
would only take turns, each waiting for all others; one after the other each is done sooner. A text
of a megabyte takes seconds to read, so it waits for its like alone. Where more wait than can be
answered while anybody still wants the answer, the next ones are told so at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from cachemgr.api.errors import ApiError

LONG_TEXT: Final = 20_000
MOST_WAITING: Final = {False: 250, True: 16}
_Result = TypeVar("_Result")


class Lanes:
    """The two threads of one application."""

    def __init__(self) -> None:
        self._waiting = {False: 0, True: 0}
        self._short = ThreadPoolExecutor(1, thread_name_prefix="cachemgr-texts")
        self._long = ThreadPoolExecutor(1, thread_name_prefix="cachemgr-long-texts")

    async def run(self, work: Callable[[], _Result], size: int) -> _Result:
        """Carry work out in turn.

        Args:
            work: What to do.
            size: Characters of the text.

        Raises:
            ApiError: 503, too many wait already.
        """
        is_long = size > LONG_TEXT
        if self._waiting[is_long] >= MOST_WAITING[is_long]:
            raise ApiError(503, "BUSY", "more texts wait than can be answered soon: try again")
        self._waiting[is_long] += 1
        try:
            lane = self._long if is_long else self._short
            return await asyncio.get_running_loop().run_in_executor(lane, work)
        finally:
            self._waiting[is_long] -= 1
