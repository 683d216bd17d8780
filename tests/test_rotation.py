"""Each case has its turn, at one commit in so many."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest, rotation


@pytest.mark.parametrize("shares", [2, 3, 5, 10])
def test_each_number_is_due_once(shares: int, monkeypatch: pytest.MonkeyPatch) -> None:
    due: list[int] = []
    for turn in range(397, 397 + shares):
        monkeypatch.setattr(rotation, "turn", lambda turn=turn: turn)
        due += [number for number in range(30) if rotation.is_due(number, shares)]
        marks = [mark.name for number in range(30) for mark in rotation.unless_due(number, shares)]
        assert marks.count("long") == 30 - 30 // shares
    assert sorted(due) == list(range(30))


def test_each_test_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    run: dict[str, list[int]] = {}
    for turn in range(2):
        monkeypatch.setattr(rotation, "turn", lambda turn=turn: turn)
        items = [Item(f"tests/test_a.py::test_{number}") for number in range(20)]
        own = Item("tests/test_a.py::test_own", "turns")
        rotation.by_turns([*items, own], 2)
        assert own.marks == ["turns"]
        for item in items:
            if not item.marks:
                run.setdefault(item.nodeid, []).append(turn)
    assert len(run) == 20 and all(len(turns) == 1 for turns in run.values())
    assert {turns[0] for turns in run.values()} == {0, 1}


def test_a_test_on_two_databases_has_one_kind_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """With turns of both kinds some would run on neither database at any commit."""
    run: list[str] = []
    for turn in range(2):
        monkeypatch.setattr(rotation, "turn", lambda turn=turn: turn)
        items = [
            Item(f"tests/api/test_a.py::test_{number}[{database}]", database=database)
            for number in range(20)
            for database in ("sqlite", "postgres")
        ]
        conftest._on_databases_by_turns(items)
        rotation.by_turns(items, 2)
        run += [item.nodeid for item in items if "long" not in item.marks]
    assert len(run) == len(set(run)) == 40


class Item:
    """What of a test is asked for."""

    def __init__(self, nodeid: str, *marks: str, database: str | None = None) -> None:
        self.nodeid, self.marks = nodeid, list(marks)
        self.path = Path(nodeid.partition("::")[0])
        self.callspec = SimpleNamespace(params={"metastore_url": database})

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


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
