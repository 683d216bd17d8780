"""Each case has its turn, at one commit in so many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import rotation


@pytest.mark.parametrize("shares", [2, 3, 5, 10])
def test_each_number_is_due_once(shares: int, monkeypatch: pytest.MonkeyPatch) -> None:
    due: list[int] = []
    for turn in range(397, 397 + shares):
        monkeypatch.setattr(rotation, "turn", lambda turn=turn: turn)
        due += [number for number in range(30) if rotation.is_due(number, shares)]
        marks = [len(rotation.unless_due(number, shares)) for number in range(30)]
        assert sum(marks) == 30 - 30 // shares
    assert sorted(due) == list(range(30))


def test_without_git_it_is_always_the_same_turn(tmp_path: Path) -> None:
    assert rotation._commits(tmp_path) == ""


def test_a_turn_can_be_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(rotation.VARIABLE, "12")
    rotation.turn.cache_clear()
    try:
        assert rotation.turn() == 12
    finally:
        monkeypatch.undo()
        rotation.turn.cache_clear()
