"""The load harness itself, for seconds: it sends on time whatever the answers do, and knows what to
expect of them."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.harness.load.run import Load, text
from tests.harness.load.sender import Sender, quantile
from tests.harness.load.traffic import Traffic


@pytest.mark.postgres
def test_a_short_load():
    load = Load(rate=20, seconds=3, caches=50, refreshes=False, warm_up=1)
    load.run()
    report = load.report()
    assert report["statuses"] == {"200": 60} and report["not_as_expected"] == 0, report["examples"]
    assert report["latency_ms"]["seen"]["requests"] > 40 and len(report["rss_mb"]) >= 2
    assert report["latency_ms"]["seen"]["p50"] > 0
    assert "p99" in text(report)


def test_the_time_counts_from_when_a_request_was_due():
    """A service that stands still for half a second makes all requests of that time late."""
    held = 0.5

    async def one_at_a_time() -> list[float]:
        turn = asyncio.Lock()
        first = time.perf_counter()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r")[0])
                await reader.readexactly(length)
                async with turn:
                    await asyncio.sleep(max(0.0, first + held - time.perf_counter()))
                body = b'{"hit": true}'
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        sender = Sender(server.sockets[0].getsockname()[1], "t")
        traffic = Traffic(3)
        sent = await sender.send([traffic.next() for _ in range(20)], 50)
        sender.close()
        server.close()
        assert all(s.status == 200 and s.hit for s in sent)
        return [s.millis for s in sent]

    millis = asyncio.run(one_at_a_time())
    assert millis[0] > 300 and millis[10] > 150, "they waited, and that must show"
    assert millis[0] > millis[10] > millis[19] or millis[19] < 300


def test_traffic_is_made_as_it_says():
    traffic = Traffic(1)
    asked = [traffic.next() for _ in range(4000)]
    first = [a for a in asked if a.kind == "first"]
    assert 0.08 < len(first) / len(asked) < 0.12
    assert 0.14 < sum(not a.hits for a in first) / len(first) < 0.26
    assert len({a.sql for a in first}) == len(first)
    assert {a.path for a in asked} == {"/api/v1/rewrite", "/api/v1/explain"}
    assert [a.sql for a in asked] == [a.sql for a in _again(len(asked))]


def _again(count: int) -> list:
    traffic = Traffic(1)
    return [traffic.next() for _ in range(count)]


def test_quantiles():
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
    assert quantile(list(map(float, range(100))), 0.99) == 99.0
