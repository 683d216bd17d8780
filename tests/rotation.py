"""Whose turn it is where `make test` runs only a share of the cases of one kind.

Each commit has another share, so that all have had their turn after as many commits as there are
shares. Without git it is always the same one. `TESTS_ROTATION=<number>` runs the shares of another
turn, as to repeat a run.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])
VARIABLE = "TESTS_ROTATION"


@cache
def turn() -> int:
    """The number of commits, the same one in all processes of a run."""
    given = os.environ.get(VARIABLE)
    if given is None:
        given = os.environ[VARIABLE] = _commits(Path(__file__).parent) or "0"
    return int(given)


def _commits(folder: Path) -> str:
    command = ["git", "-C", str(folder), "rev-list", "--count", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:  # no git here
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def is_due(number: int, shares: int) -> bool:
    """Whether it is this one's turn, of so many shares."""
    return (number + turn()) % shares == 0


def is_due_by_name(name: str, shares: int) -> bool:
    """The same for what has a name and no number."""
    return is_due(zlib.crc32(name.encode()), shares)


def due(number: int, shares: int) -> Callable[[Test], Test]:
    """Marks a whole test as `unless_due` marks a case."""

    def mark(test: Test) -> Test:
        for each in unless_due(number, shares):
            test = each(test)
        return test

    return mark


def unless_due(number: int, shares: int) -> list[pytest.MarkDecorator]:
    """The marks by which `make test` leaves a case to `make test-long` until it is its turn."""
    return [pytest.mark.turns] if is_due(number, shares) else [pytest.mark.long]


def by_turns(items: Iterable[pytest.Item], shares: int) -> None:
    """Leave all but a share of these tests to `make test-long`, besides those that have turns of
    their own.
    """
    for item in items:
        if item.get_closest_marker("turns") or item.get_closest_marker("long"):
            continue
        if not is_due_by_name(item.nodeid, shares):
            item.add_marker(pytest.mark.long)
