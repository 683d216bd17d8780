"""The record of what tests cover, packed and read again, or not to be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate import covered
from tests.gate.covered import Covered

RECORD = {
    "tests/a.py::test_a": Covered(1.5, 3, frozenset({"matcher/x.py:f", "matcher/x.py:A.g"})),
    "tests/b.py::test_b": Covered(0.0, 1, frozenset()),
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "covered.txt"
    covered.write(RECORD, path)
    assert covered.read(path) == RECORD
    text = path.read_text()
    covered.write(dict(reversed(RECORD.items())), path)
    assert path.read_text() == text and max(map(len, text.splitlines())) <= 100


def test_new_runs_stand_in_place_of_old_ones(tmp_path: Path) -> None:
    new = {"seconds": 2.0, "cases": 1, "covers": ["matcher/y.py:h"]}
    made = covered.merged(RECORD, [("tests/b.py::test_b", new)])
    assert made["tests/b.py::test_b"] == Covered(2.0, 1, frozenset({"matcher/y.py:h"}))
    assert made["tests/a.py::test_a"] == RECORD["tests/a.py::test_a"]


@pytest.mark.parametrize("damage", ["", "<<<<<<< HEAD\n", "x"])
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "covered.txt"
    assert covered.read(path) == {}
    covered.write(RECORD, path)
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([head, damage, *lines[1:]] if damage else [head]))
    assert covered.read(path) == {}
