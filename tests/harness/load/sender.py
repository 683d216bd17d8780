"""Requests at moments fixed beforehand, whether the answers before them have come or not.

A sender that waits for an answer before it sends the next request hides how long the others would
have waited (coordinated omission); here the time counts from when a request was due.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

from tests.harness.load.traffic import Asked


@dataclass(frozen=True)
class Sent:
    """What became of one request.

    Args:
        asked: The request.
        status: Of the answer; 0 if none came.
        hit: Whether the answer says so.
        millis: From when it was due to the end of its answer.
        sent_late: How late it was sent, ms: the sender's own fault.
    """

    asked: Asked
    status: int
    hit: bool
    millis: float
    sent_late: float


class Sender:
    """Sends requests to one service over kept connections.

    Args:
        port: Where it listens on loopback.
        token: A bearer token.
    """

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(self, asked: list[Asked], rate: float) -> list[Sent]:
        """Send all, so many a second.

        Args:
            asked: The requests.
            rate: Requests a second.
        """
        start = time.perf_counter() + 0.05
        tasks = []
        for number, one in enumerate(asked):
            due = start + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(self._one(one, due)))
        return list(await asyncio.gather(*tasks))

    def close(self) -> None:
        """Close all connections."""
        for _, writer in self._free:
            writer.close()
        self._free.clear()

    async def _one(self, asked: Asked, due: float) -> Sent:
        late = (time.perf_counter() - due) * 1000
        try:
            status, body = await asyncio.wait_for(self._exchange(asked), 30)
            hit = status == 200 and bool(json.loads(body)["hit"])
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            status, hit = 0, False
        return Sent(asked, status, hit, (time.perf_counter() - due) * 1000, late)

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._free:
            reader, writer = self._free.pop()
            if not reader.at_eof():  # the service closes those that stand idle
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def _exchange(self, asked: Asked) -> tuple[int, bytes]:
        reader, writer = await self._connection()
        body = json.dumps({"sql": asked.sql}).encode()
        head = (
            f"POST {asked.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self._token}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in answer[1:] if ": " in line)
        content = await reader.readexactly(int(fields["content-length"]))
        self._free.append((reader, writer))
        return int(answer[0].split()[1]), content


def quantile(values: list[float], share: float) -> float:
    """The value that a share of all does not exceed; nan of nothing."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
