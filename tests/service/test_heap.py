"""The collector is kept from walking through what stays, and still finds what became garbage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from cachemgr.heap import PAUSE_SECONDS, WHOLE_SECONDS, SettledHeap


class Circle:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.collect()


def test_what_is_there_is_not_walked_through_again():
    now = [0.0]
    heap = SettledHeap(lambda: now[0])
    kept = [[n] for n in range(50_000)]
    heap.settle()
    assert gc.get_freeze_count() > 50_000 > len(gc.get_objects())
    later = [[n] for n in range(20_000)]
    frozen = gc.get_freeze_count()
    heap.settle()
    assert gc.get_freeze_count() == frozen, "not twice in a minute"
    now[0] += PAUSE_SECONDS
    heap.settle()
    assert gc.get_freeze_count() >= frozen + 20_000
    assert kept and later


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
