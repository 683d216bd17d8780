"""How long a client may take to send a request: slow clients would keep a connection, and what
its request is read into, for as long as it likes.

uvicorn closes connections that stand idle between two requests, and waits without end for the rest
of one that has begun, or for the first.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

RECEIVE_SECONDS: Final = 30.0
_log = logging.getLogger("cachemgr.api")


class ReceiveTimeoutProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it; a request that has not arrived wholly after `RECEIVE_SECONDS`
    ends its connection. What is done with it once it has arrived may take as long as it takes."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came, and is to send a request."""
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        """More of a request came."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """A request is answered; the next may be there already in part."""
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Start or stop the clock, as the rest of a request is missing or not."""
        state = self.conn.their_state
        begun = state is h11.SEND_BODY
        # between two requests it is uvicorn's own time that counts
        awaited = state is h11.IDLE and self.timeout_keep_alive_task is None
        if not (begun or awaited):
            self._stop()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(RECEIVE_SECONDS, self._give_up)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        _log.info("a client took longer than %.0f s to send a request", RECEIVE_SECONDS)
        self.transport.close()
