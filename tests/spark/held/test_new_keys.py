"""What is remembered of new keys, and what is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cachemgr.base_state import BaseState, TableAt
from cachemgr.delta.changes import ChangeKind, Changes
from cachemgr.spark.held.new_keys import NewKeyChecks

SINCE = BaseState("id", 3)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def checks(clock: Clock) -> Iterator[NewKeyChecks]:
    session: Any = None  # nothing is asked of it: the look itself is the tests'
    made = NewKeyChecks(session, clock)
    yield made
    made.close()


@pytest.fixture
def ask(checks: NewKeyChecks, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    def ask(look: Callable[[], bool], commit: str = "txn") -> list[Any]:
        """What is said at once, and what after the look."""
        monkeypatch.setattr(checks, "_no_key_twice", lambda *_: look())
        table = TableAt("dim", "/dim", "id", 4, 0, commit)

        def are_new() -> bool | None:
            return checks.are_new(table, SINCE, Changes(ChangeKind.APPENDS), ("id",))

        said = [are_new()]
        while checks.is_looking:
            time.sleep(0.001)
        return [*said, are_new()]

    return ask


def cancelled() -> bool:
    raise RuntimeError("the job was cancelled")


@pytest.mark.parametrize("found", [True, False])
def test_a_look_is_remembered(ask, found: bool) -> None:
    assert ask(lambda: found) == [None, found]
    assert ask(cancelled) == [found, found]


def test_a_look_that_failed_is_tried_again_after_a_while(ask, clock: Clock) -> None:
    assert ask(cancelled) == [None, False]
    assert ask(lambda: True) == [False, False]
    clock.now = 31
    assert ask(lambda: True) == [None, True]


def test_of_a_state_without_a_commit_nothing_is_known(ask) -> None:
    assert ask(lambda: True, commit="") == [None, None]
