"""The collector is kept from walking through what stays, and still finds what became garbage."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from cachemgr.server.heap import PAUSE_SECONDS, THRESHOLDS, WHOLE_SECONDS, SettledHeap


class Circle:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.collect()


def walked(items: list[list[int]]) -> int:
    """How many of them the collector looks at."""
    seen = {id(found) for found in gc.get_objects()}
    return sum(id(item) in seen for item in items)


def test_what_is_there_is_not_walked_through_again():
    now = [0.0]
    heap = SettledHeap(lambda: now[0])
    kept = [[n] for n in range(50_000)]
    heap.settle()
    assert gc.get_freeze_count() > 50_000 > len(gc.get_objects())
    later = [[n] for n in range(20_000)]
    heap.settle()
    assert walked(later) == 20_000, "not twice in a moment"
    now[0] += PAUSE_SECONDS
    heap.settle()
    assert walked(later) == walked(kept) == 0


def test_circles_go_within_an_hour_and_all_else_at_once():
    now = [0.0]
    heap = SettledHeap(lambda: now[0])
    circle, plain = Circle(), type("Plain", (), {})()
    seen, other = weakref.ref(circle), weakref.ref(plain)
    heap.settle()
    del circle, plain
    gc.collect()
    assert seen() is not None and other() is None
    now[0] += WHOLE_SECONDS
    heap.settle()
    assert seen() is None


def test_a_service_that_answers_has_its_heap_settled_again_and_again():
    """Without it each whole collection walks through all that came since the last."""

    async def lives() -> None:
        heap = SettledHeap()
        task = asyncio.create_task(heap.keep())
        await asyncio.sleep(0.01)
        assert gc.get_freeze_count() > 0 and gc.get_threshold() == THRESHOLDS
        looks: list[int] = []
        gc.callbacks.append(lambda phase, found: looks.append(found["generation"]))
        kept = [[n] for n in range(200_000)]
        gc.callbacks.pop()
        assert set(looks) == {0}, "nobody waits for more than a look at the youngest"
        assert walked(kept) == len(kept)
        task.cancel()

    asyncio.run(lives())
