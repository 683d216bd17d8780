"""The winner among valid rewrites: least cost, ties by cache name and grouping id, so that the
choice never depends on order."""

from __future__ import annotations

from collections.abc import Iterable

from matcher.ir import Rewrite


def preference(rewrite: Rewrite) -> tuple[int, float, str, int]:
    """The sort key by which rewrites are preferred, smallest first; a cache that has all tables
    comes before one that must be joined with some."""
    number = rewrite.grouping_set.grouping_id if rewrite.grouping_set is not None else -1
    return len(rewrite.extra), rewrite.cost, rewrite.cache, number


def rank(rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """All valid rewrites, the best first."""
    return sorted(rewrites, key=preference)
