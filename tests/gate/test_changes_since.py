"""What differs from a commit, by function."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.changes import changes_since
from tests.gate.history import History
from tests.gate.test_ledger import git

BEFORE = "LIMIT = 1\n\n\ndef a():\n    return 1\n\n\ndef b():\n    return 2\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "m.py").write_text(BEFORE)
    (tmp_path / "gone.py").write_text("def c():\n    return 3\n")
    (tmp_path / "rows.sql").write_text("SELECT 1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def changed(checkout: Path, commit: str = "HEAD") -> frozenset[str] | None:
    return changes_since(History(checkout), commit)


def test_nothing(checkout: Path) -> None:
    assert changed(checkout) == frozenset()


def test_functions_and_files(checkout: Path) -> None:
    (checkout / "m.py").write_text(BEFORE.replace("return 2", "return 3") + "\n\ndef d(): ...\n")
    (checkout / "gone.py").unlink()
    (checkout / "new.py").write_text("def e(): ...\n")
    (checkout / "rows.sql").write_text("SELECT 2")
    assert changed(checkout) == {"m.py:b", "m.py:d", "gone.py:c", "new.py:e", "rows.sql"}


def test_a_constant_and_a_comment(checkout: Path) -> None:
    (checkout / "m.py").write_text(BEFORE.replace("LIMIT = 1", "# more\nLIMIT = 2"))
    assert changed(checkout) == {"m.py:"}


def test_what_is_committed_counts_from_an_older_commit(checkout: Path) -> None:
    first = git(checkout, "rev-parse", "HEAD")
    (checkout / "m.py").write_text(BEFORE.replace("return 1", "return 9"))
    git(checkout, "commit", "-q", "-am", "second")
    assert changed(checkout) == frozenset()
    assert changed(checkout, first) == {"m.py:a"}


def test_a_file_moved_is_one_gone_and_one_new(checkout: Path) -> None:
    git(checkout, "mv", "m.py", "n.py")
    assert changed(checkout) == {"m.py:", "m.py:a", "m.py:b", "n.py:", "n.py:a", "n.py:b"}


def test_a_module_that_cannot_be_read_is_changed_as_a_whole(checkout: Path) -> None:
    (checkout / "m.py").write_text("def a(:\n")
    assert changed(checkout) == {"m.py:"}


def test_a_commit_that_is_not_known(checkout: Path) -> None:
    assert changed(checkout, "f" * 40) is None
