"""What is another function, and what is the same one written otherwise."""

from __future__ import annotations

import pytest

from tests.gate.functions import functions

SOURCE = '''
"""A module."""
LIMIT = 3


def add(a, b=LIMIT):
    """Adds."""
    def inner():
        return a + b
    return inner()


class Sum:
    """Sums."""

    start = 0

    def total(self, values):
        return self.start + sum(values)


if LIMIT:
    def late():
        pass
'''


def digests(source: str) -> dict[str, str]:
    return {each.name: each.digest for each in functions(source)}


def test_names_and_lines_of_bodies() -> None:
    found = {each.name: (each.first, each.last) for each in functions(SOURCE)}
    assert found == {"add": (8, 10), "Sum.total": (19, 19), "late": (24, 24), "": (0, 0)}


@pytest.mark.parametrize(
    ("old", "new", "different"),
    [
        ("a + b", "a - b", {"add"}),
        ("b=LIMIT", "b=4", {"add"}),
        ("LIMIT = 3", "LIMIT = 4", {""}),
        ("start = 0", "start = 1", {""}),
        ("sum(values)", "max(values)", {"Sum.total"}),
        ('"""Adds."""', '"""Puts together."""', set()),
        ('"""A module."""', '"""Another one."""\n\n', set()),
        ("return inner()", "# at the end\n    return inner()", set()),
    ],
)
def test_what_is_another_function(old: str, new: str, different: set[str]) -> None:
    before, after = digests(SOURCE), digests(SOURCE.replace(old, new))
    assert {name for name in before if before[name] != after[name]} == different


def test_a_docstring_alone_is_a_body_too() -> None:
    assert digests('def f():\n    """One."""\n') == digests('def f():\n    """Two."""\n')
