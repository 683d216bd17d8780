"""Where texts are decided: one thread for the short ones, one for the long.

Deciding is work for the processor alone, and Python runs one thread of it at a time. Many at once
would only take turns, each waiting for all others; one after the other each is done sooner. A text
of a megabyte takes seconds to read, so it waits for its like alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

LONG_TEXT: Final = 20_000
_Result = TypeVar("_Result")


class Lanes:
    """The two threads of one application."""

    def __init__(self) -> None:
        self._short = ThreadPoolExecutor(1, thread_name_prefix="cachemgr-texts")
        self._long = ThreadPoolExecutor(1, thread_name_prefix="cachemgr-long-texts")

    async def run(self, work: Callable[[], _Result], size: int) -> _Result:
        """Carry work out in turn.

        Args:
            work: What to do.
            size: Characters of the text.
        """
        lane = self._long if size > LONG_TEXT else self._short
        return await asyncio.get_running_loop().run_in_executor(lane, work)
