"""Texts wait for each other, but not without an end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from cachemgr.api.errors import ApiError
from cachemgr.api.lanes import LONG_TEXT, MOST_WAITING, Lanes


@pytest.mark.parametrize("size", [10, LONG_TEXT + 1])
def test_no_more_wait_than_can_be_answered(size):
    lanes, go = Lanes(), threading.Event()
    other = LONG_TEXT + 1 if size == 10 else 10

    async def ask() -> None:
        most = MOST_WAITING[size > LONG_TEXT]
        waiting = [asyncio.create_task(lanes.run(go.wait, size)) for _ in range(most)]
        await asyncio.sleep(0.05)
        with pytest.raises(ApiError) as refused:
            await lanes.run(go.wait, size)
        assert (refused.value.status, refused.value.kind) == (503, "BUSY")
        assert await lanes.run(lambda: 1, other) == 1, "the other lane is free"
        go.set()
        assert all(await asyncio.gather(*waiting))
        assert await lanes.run(lambda: 2, size) == 2

    asyncio.run(ask())
