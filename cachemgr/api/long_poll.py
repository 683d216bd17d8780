"""Requests that wait for something to happen in the metastore.

They wait as coroutines and hold no thread; one look every so often, in a thread of the pool, serves
all that wait for the same kind of thing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final, Generic, TypeVar

from anyio import to_thread
from fastapi import Request

from cachemgr.metastore.registry_records import RegistryMark

LOOK_SECONDS: Final = 0.2
# A small result is there in less than a fifth of a second.
_STATEMENTS_SECONDS: Final = 0.03
Key = TypeVar("Key")


class Watch(Generic[Key]):
    """Those who wait for one kind of thing; used from one event loop.

    Args:
        look: Which of the awaited things have happened; called in a thread.
        every: Seconds between two looks.
    """

    def __init__(
        self, look: Callable[[frozenset[Key]], Collection[Key]], every: float = LOOK_SECONDS
    ) -> None:
        self._look = look
        self._every = every
        self._waiting: dict[Key, set[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    async def wait(self, key: Key, seconds: float) -> None:
        """Return when it has happened, or the time is over.

        Args:
            key: What.
            seconds: How long at most.

        Raises:
            Exception: What the look raised.
        """
        if self._closed or seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        happened: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(key, set()).add(happened)
        if self._looking is None or self._looking.done():
            self._looking = loop.create_task(self._follow())
        try:
            await asyncio.wait({happened}, timeout=seconds)
            if happened.done():
                happened.result()
        finally:
            happened.cancel()
            others = self._waiting.get(key, set())
            others.discard(happened)
            if not others:
                self._waiting.pop(key, None)

    def close(self) -> None:
        """Let everybody go, now and later: the process is to stop. Any thread may call."""
        self._closed = True

    async def _follow(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._every)
            awaited = frozenset(self._waiting)
            if self._closed:
                self._tell(awaited, None)
                return
            try:
                self._tell(await to_thread.run_sync(self._look, awaited), None)
            except Exception as error:  # each of those who wait gets it
                self._tell(awaited, error)

    def _tell(self, keys: Collection[Key], error: Exception | None) -> None:
        for key in keys:
            for happened in self._waiting.pop(key, set()):
                if happened.done():
                    continue
                if error is None:
                    happened.set_result(None)
                else:
                    happened.set_exception(error)


class Watches:
    """What the requests of one application may wait for.

    Args:
        mark: Says where the registry stands.
        still_open: Says which of some refreshes wait or run.
        unfinished: Says which of some statements do.
    """

    def __init__(
        self,
        mark: Callable[[], RegistryMark],
        still_open: Callable[[Collection[str]], frozenset[str]],
        unfinished: Callable[[Collection[str]], frozenset[str]],
    ) -> None:
        self.registry: Watch[RegistryMark] = Watch(lambda known: known - {mark()})
        """Waits until the registry does not stand at a mark any more."""
        self.refreshes: Watch[str] = Watch(lambda ids: ids - still_open(ids))
        """Waits until a refresh is over."""
        self.statements: Watch[str] = Watch(lambda ids: ids - unfinished(ids), _STATEMENTS_SECONDS)
        """Waits until a statement is over."""

    def close(self) -> None:
        """Let everybody go: the process is to stop."""
        self.registry.close()
        self.refreshes.close()
        self.statements.close()


def watches_of(request: Request) -> Watches:
    """The watches of the application."""
    found: Watches = request.app.state.watches
    return found
