"""A client that is slow to send its request loses its connection; one that waits for the answer
does not."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest

from cachemgr.api import receive_timeout
from tests.processes import free_port
from tests.servers import ServerThread

SECONDS = 0.6


async def _app(scope, receive, send) -> None:
    """Answers after twice the time that a request may take to arrive."""
    if scope["type"] == "lifespan":
        return
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message.get("body", b""), message.get("more_body", False)
    if scope["path"] == "/slow":
        await asyncio.sleep(2 * SECONDS)
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch) -> Iterator[int]:
    monkeypatch.setattr(receive_timeout, "RECEIVE_SECONDS", SECONDS)
    number = free_port()
    server = ServerThread(
        _app,
        number,
        http=receive_timeout.ReceiveTimeoutProtocol,
        timeout_keep_alive=3,
        lifespan="off",
    )
    yield number
    server.stop()


def _closed_after(port: int, *pieces: bytes, pause: float = 0) -> tuple[float, bytes]:
    """Send pieces; how long until the service closes the connection, and what it said."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        said = b""
        try:
            for piece in pieces:
                client.sendall(piece)
                time.sleep(pause)
            while found := client.recv(1000):
                said += found
        except ConnectionError:
            pass
    return time.monotonic() - began, said


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [(), (b"POST / HT",), (HEAD[:-2],), (HEAD,), (HEAD, b"ab"), (HEAD + b"abcd", b"GET")],
    ids=["nothing", "line", "head", "no body", "half a body", "a second one"],
)
def test_a_slow_client_is_cut_off(port, pieces):
    took, said = _closed_after(port, *pieces, pause=0.1 if len(pieces) > 1 else 0)
    assert SECONDS * 0.9 < took < 2.5
    assert said.count(b"200 OK") == (len(pieces) == 2 and pieces[1] == b"GET")


def test_a_byte_now_and_then_does_not_help(port):
    took, said = _closed_after(port, *(HEAD[n : n + 1] for n in range(20)), pause=0.1)
    assert SECONDS * 0.9 < took < 2.5 and said == b""


def test_who_waits_for_an_answer_or_stands_idle_between_two_is_not(port):
    took, said = _closed_after(port, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
    assert said.endswith(b"ok") and took > 2 * SECONDS + 2.5, "uvicorn's own time for idle ones"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        for _ in range(3):
            client.sendall(HEAD[:20])
            time.sleep(0.2)
            client.sendall(HEAD[20:] + b"abcd")
            said = b""
            while not said.endswith(b"ok"):
                found = client.recv(1000)
                assert found, "it is still connected"
                said += found
            time.sleep(SECONDS + 0.3)
