"""An application in a thread of the test's process, on loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import uvicorn


class ServerThread:
    """Serves from when it is made until it is stopped.

    Args:
        app: The ASGI application.
        port: Of loopback.
        options: Of uvicorn.
    """

    def __init__(self, app: Any, port: int, **options: Any) -> None:
        config = uvicorn.Config(app, "127.0.0.1", port, log_config=None, **options)
        self._server = _StoppedAtOnce(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until = time.monotonic() + 20
        while not self._server.started and time.monotonic() < until:
            time.sleep(0.01)
        assert self._server.started

    def stop(self) -> None:
        """Serve no more; returns when the port is free. More than once is no error."""
        if self._thread.is_alive():
            self._server.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()


class _StoppedAtOnce(uvicorn.Server):
    """uvicorn's own looks ten times a second whether to stop, and then waits for a tenth more:
    together half a minute of a test run.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self.lifespan.shutdown()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
