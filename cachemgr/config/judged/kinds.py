"""The kinds of judgement, and the rows of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a setting of Spark can change."""

    RESULTS = "may change rows or types of a query"
    WRITES = "only writes"
    EFFORT = "only effort"
    OTHER_SOURCES = "only other sources"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found of one setting, or of all whose names begin alike.

    Args:
        pattern: The key, or what keys begin with and a star.
        kind: What it can change.
        reason: Why that is so.
        functions: Where it can change the rows of these functions alone, their names as
            `used_functions` gives them; empty where it can change any rows.
    """

    pattern: str
    kind: Kind
    reason: str
    functions: frozenset[str] = frozenset()

    @property
    def is_family(self) -> bool:
        """Whether it judges all keys that begin alike."""
        return self.pattern.endswith("*")


def judged(prefix: str, kind: Kind, rows: Iterable[tuple[str, str]]) -> Iterator[Judgement]:
    """The judgements of one table.

    Args:
        prefix: What all its keys begin with.
        kind: What they can change.
        rows: The rest of each key, or of a family with a star, and the reason.
    """
    for name, reason in rows:
        yield Judgement(prefix + name, kind, reason)
