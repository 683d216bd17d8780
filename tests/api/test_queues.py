"""Texts wait for each other, but not without an end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from cachemgr.api.errors import ApiError
from cachemgr.api.queues import MOST_KNOWN, MOST_LONG, MOST_SHORT, MOST_SLOW, Lanes
from cachemgr.text.limits import LONG_TEXT


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """What the texts wait for; when a test fails, too, or their threads would never end."""
    event = threading.Event()
    yield event
    event.set()


async def _are_waiting(lane: object, count: int) -> None:
    """Each passes through the known lane first, which takes its time on a busy machine."""
    async with asyncio.timeout(60):
        while lane._waiting < count:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("size", "most"), [(10, MOST_SHORT), (LONG_TEXT + 1, MOST_LONG)])
def test_no_more_wait_than_can_be_answered(go, size, most):
    lanes = Lanes()
    other = LONG_TEXT + 1 if size == 10 else 10

    async def ask() -> None:
        work = (go.wait, size, lambda: None, go.wait)
        waiting = [asyncio.create_task(lanes.run(*work)) for _ in range(most)]
        await _are_waiting(lanes._short if size == 10 else lanes._long, most)
        with pytest.raises(ApiError) as refused:
            await lanes.run(*work)
        assert (refused.value.status, refused.value.kind) == (503, "BUSY")
        assert await lanes.run(lambda: 1, other) == 1, "the other lane is free"
        go.set()
        assert all(await asyncio.gather(*waiting))
        assert await lanes.run(lambda: 2, size) == 2

    asyncio.run(ask())


def test_a_known_text_is_not_refused_because_of_new_ones(go):
    lanes = Lanes()

    async def ask() -> None:
        work = (go.wait, 10, lambda: None, go.wait)
        new = [asyncio.create_task(lanes.run(*work)) for _ in range(MOST_SHORT)]
        await _are_waiting(lanes._short, MOST_SHORT)
        with pytest.raises(ApiError):
            await lanes.run(*work)
        assert await lanes.run(go.wait, 10, lambda: True), "its own lane is free"
        go.set()
        assert all(await asyncio.gather(*new))

    asyncio.run(ask())


def test_no_more_known_texts_wait_than_can_be_answered(go):
    lanes = Lanes()

    async def ask() -> None:
        known = [asyncio.create_task(lanes.run(bool, 10, go.wait)) for _ in range(MOST_KNOWN)]
        await _are_waiting(lanes._known, MOST_KNOWN)
        with pytest.raises(ApiError) as refused:
            await lanes.run(bool, 10, lambda: True)
        assert refused.value.status == 503
        go.set()
        assert all(await asyncio.gather(*known))
        assert await lanes.run(bool, 10, lambda: True)

    asyncio.run(ask())


def test_what_takes_a_moment_does_not_wait_for_what_takes_long(go):
    lanes = Lanes()

    async def ask() -> None:
        slow = [asyncio.create_task(lanes.run(go.wait, 10)) for _ in range(MOST_SLOW)]
        await _are_waiting(lanes._slow, MOST_SLOW)
        assert await lanes.run(go.wait, 10, lambda: None, lambda: True), "its own lane is free"
        with pytest.raises(ApiError):
            await lanes.run(go.wait, 10)
        go.set()
        assert all(await asyncio.gather(*slow))

    asyncio.run(ask())


def test_the_shorter_of_two_goes_first_and_each_gets_its_turn(go, monkeypatch):
    lanes, done = Lanes(), []
    now = 100.0
    monkeypatch.setattr("cachemgr.api.queues.monotonic", lambda: now)

    async def ask() -> None:
        nonlocal now
        tasks = [asyncio.create_task(lanes.run(go.wait, 10))]
        await _are_waiting(lanes._slow, 1)
        for later, size in ((0.0, 5_000), (0.0, 200), (1.0, 400), (20.0, 300)):
            now += later
            tasks.append(asyncio.create_task(lanes.run(lambda n=size: not done.append(n), size)))
            await _are_waiting(lanes._slow, len(tasks))
        go.set()
        assert all(await asyncio.gather(*tasks))

    asyncio.run(ask())
    assert done == [200, 400, 5_000, 300]
