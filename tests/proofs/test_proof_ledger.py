"""The ledger's file: it survives merges, damage and several writers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.proofs import ledger
from tests.proofs.ledger import Proofs, add, read

A, B, C = "a" * 32, "b" * 32, "c" * 32


def lines(folder: Path) -> list[str]:
    return (folder / ledger.LEDGER).read_text().splitlines()


def test_lines_are_sorted_and_once(tmp_path: Path) -> None:
    (tmp_path / ledger.LEDGER).write_text(f"{C} 3\n{A} 1\n\n{C} 3\n")
    add(Proofs({B: "2"}), folder=tmp_path)
    assert lines(tmp_path) == [f"{A} 1", f"{B} 2", f"{C} 3"]


def test_what_merges_leave_behind_proves_nothing(tmp_path: Path) -> None:
    text = f"<<<<<<< ours\n{A} 1\n=======\n{A} 2\n>>>>>>> theirs of us\n{B} 2\n"
    (tmp_path / ledger.LEDGER).write_text(text)
    assert read(tmp_path).outcomes == {B: "2", "<<<<<<<": "ours"}


def test_no_ledger_knows_nothing(tmp_path: Path) -> None:
    assert read(tmp_path) == Proofs()


def test_a_new_outcome_replaces_the_old_one(tmp_path: Path) -> None:
    add(Proofs({A: "1"}), folder=tmp_path)
    add(Proofs({A: "2"}), folder=tmp_path)
    assert lines(tmp_path) == [f"{A} 2"]


def test_only_what_is_asked_for_is_kept(tmp_path: Path) -> None:
    old = Proofs()
    gone, kept = old.put_text("gone"), old.put_text("kept")
    old.outcomes |= {A: gone, B: kept}
    add(old, folder=tmp_path)
    add(Proofs({C: "3"}), keep={B, C}, folder=tmp_path)
    found = read(tmp_path)
    assert found.outcomes == {B: kept, C: "3"}
    assert found.text(kept) == "kept"
    assert found.text(gone) is None


def test_no_writer_loses_what_another_one_wrote(tmp_path: Path) -> None:
    def write(number: int) -> None:
        add(Proofs({f"{number:032x}": "1"}), folder=tmp_path)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(64)))
    assert len(read(tmp_path).outcomes) == 64


@pytest.mark.parametrize("text", ["", "x", "ö\n", '{"plan": []}' * 1000])
def test_a_text_comes_back(text: str, tmp_path: Path) -> None:
    new = Proofs()
    outcome = new.put_text(text)
    new.outcomes[A] = outcome
    add(new, folder=tmp_path)
    assert read(tmp_path).text(outcome) == text


@pytest.mark.parametrize("damage", ["", "!!!", "another one's"])
def test_a_text_that_is_damaged_is_not_there(damage: str) -> None:
    known = Proofs()
    outcome, other = known.put_text("mine"), known.put_text("another's")
    known.packed[outcome] = known.packed[other] if damage.startswith("another") else damage
    assert known.text(outcome) is None
