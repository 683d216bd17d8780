"""The committed ledger of fuzz runs is well formed, and no run in it has a wrong pair."""

from __future__ import annotations

import pytest

from tests.harness.fuzz import ledger


def test_every_entry_is_well_formed() -> None:
    for entry in ledger.read():
        assert ledger.check(entry) == []


def test_no_run_had_a_wrong_pair() -> None:
    assert [e["seeds"] for e in ledger.read() if e["wrong"] != 0] == []


def test_seeds_of_one_commit_are_run_once() -> None:
    ranges = [(e["commit"], e["judge"], *e["seeds"]) for e in ledger.read()]
    assert len(set(ranges)) == len(ranges)


def test_the_distinct_pairs_are_those_whose_shapes_are_kept() -> None:
    assert sum(e["distinct"] for e in ledger.read()) == len(ledger.seen())


def test_a_pair_counts_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ledger, "LEDGER", tmp_path / "ledger.json")
    monkeypatch.setattr(ledger, "SHAPES", tmp_path / "shapes.txt")
    entry = {
        "commit": "0", "date": "2026-01-01", "seeds": [0, 1], "judge": "spark", "generated": 9,
        "accepted": 3, "executed": 3, "skipped": 0, "wrong": 0, "templates": 0, "doors": 0,
        "seconds": 1, "oracle": {}, "found": [],
    }  # fmt: skip
    one = ledger.Pair(ledger.digest("a"), frozenset({"rollup.sum"}), 2)
    two = ledger.Pair(ledger.digest("b"), frozenset({"rollup.sum", "whole.cte"}), 1)
    assert ledger.append(entry, [one, one])["distinct"] == 1
    second = ledger.append(entry, [one, two])
    assert (second["distinct"], second["two_or_more"]) == (1, 0)
    assert second["capabilities"] == {"rollup.sum": 1, "whole.cte": 1}
    assert ledger.total(ledger.read())["capabilities"]["rollup.sum"] == 2
    assert "2 distinct" in ledger.report(ledger.read())
    with pytest.raises(ValueError, match="wrong is missing"):
        ledger.append({k: v for k, v in entry.items() if k != "wrong"}, [])
