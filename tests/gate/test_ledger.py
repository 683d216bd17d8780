"""The ledger of shards, as runs write it and as merges, clones and time leave it."""

from __future__ import annotations

import subprocess
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tests.gate import ledger
from tests.gate.history import History
from tests.gate.ledger import SHARDS, Passed, complaint, oldest_first, shard_of

TODAY = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    for n in range(4):
        (path / "file").write_text(str(n))
        git(path, "add", ".")
        git(path, "commit", "-q", "-m", str(n))
    return path


def git(path: Path, *words: str) -> str:
    named = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@localhost",
        "-c",
        "protocol.file.allow=always",
    ]
    done = subprocess.run(
        ["git", *named, *words], cwd=path, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def passed(shard: int, commit: str, day: str = "2026-11-28") -> Passed:
    return Passed(shard, commit, date.fromisoformat(day), 700, 300)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "passed.txt"
    assert ledger.read(path) == {}
    ledger.write([passed(24, "a" * 40), passed(1, "b" * 40)], path)
    ledger.write([passed(1, "c" * 40)], path)
    assert ledger.read(path) == {1: passed(1, "c" * 40), 24: passed(24, "a" * 40)}


def test_a_merge_with_a_conflict_keeps_what_it_can(tmp_path: Path) -> None:
    path = tmp_path / "passed.txt"
    ledger.write([passed(2, "a" * 40), passed(3, "b" * 40)], path)
    old, other = path.read_text().splitlines()[1:]
    newer = other.replace("b" * 40, "c" * 40).replace("-28", "-29")
    lines = [
        old,
        "<<<<<<< HEAD",
        other,
        "=======",
        newer,
        ">>>>>>> branch",
        "25" + old[2:],
        "nonsense",
    ]
    path.write_text("\n".join(lines))
    assert ledger.read(path) == {2: passed(2, "a" * 40), 3: passed(3, "c" * 40, "2026-11-29")}


def test_every_name_has_a_shard() -> None:
    shards = {shard_of(f"tests/test_{n}.py") for n in range(1000)}
    assert shards == set(range(1, SHARDS + 1))


def test_who_never_passed_comes_first_then_who_passed_longest_ago(repository: Path) -> None:
    commits = git(repository, "log", "--format=%H").splitlines()
    known = {1: passed(1, commits[0]), 3: passed(3, commits[3]), 2: passed(2, "f" * 40)}
    order = oldest_first(known, History(repository))
    assert order == [2, *range(4, SHARDS + 1), 3, 1]


def test_a_shallow_clone_knows_nothing_of_before(repository: Path, tmp_path: Path) -> None:
    first = git(repository, "log", "--format=%H").splitlines()[-1]
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "shallow")
    history = History(tmp_path / "shallow")
    assert history.commits_since(first) is None
    assert history.changed_paths(first) is None
    assert oldest_first({5: passed(5, first)}, history) == list(range(1, SHARDS + 1))
    assert "all shards of the tests never passed" in complaint({5: passed(5, first)}, history)


def test_without_git_nothing_is_known(tmp_path: Path) -> None:
    history = History(tmp_path)
    assert (history.head(), history.is_clean(), history.commits_since("a" * 40)) == (
        "",
        False,
        None,
    )


@pytest.mark.parametrize(
    ("day", "says"),
    [
        ("2026-11-29", ""),
        ("2026-11-22", ""),
        ("2026-11-21", "shard 24 of the tests passed more than 7 days or 500 commits ago"),
    ],
)
def test_what_is_old_is_complained_of(repository: Path, day: str, says: str) -> None:
    head = git(repository, "rev-parse", "HEAD")
    known = {n: passed(n, head) for n in range(1, SHARDS)} | {24: passed(24, head, day)}
    told = complaint(known, History(repository), TODAY)
    assert told.startswith(says) and bool(told) == bool(says)


def test_many_commits_are_old_too(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MOST_COMMITS", 2)
    commits = git(repository, "log", "--format=%H").splitlines()
    known = {n: passed(n, commits[2]) for n in range(1, SHARDS + 1)}
    assert complaint(known, History(repository), TODAY) == ""
    told = complaint(known | {7: passed(7, commits[3])}, History(repository), TODAY)
    assert told.startswith("shard 7 of the tests passed more than") and "make test-long" in told


def test_a_file_that_is_changed_or_new_makes_a_tree_another_one(repository: Path) -> None:
    history = History(repository)
    assert history.is_clean()
    (repository / "tests").mkdir()
    (repository / "tests" / "passed.txt").write_text("written by runs")
    assert history.is_clean()
    (repository / "new.py").write_text("")
    assert not history.is_clean()
