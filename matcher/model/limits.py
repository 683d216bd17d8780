"""Where LIMIT and OFFSET may stand, as data: below which operator a limit may be pushed, and where
never.

The table of docs/matching.md. A limit *moves* below an operator that maps each row to one row, is
*copied* below one that may only lose rows by the limit itself (the outer limit stays), and *never*
goes below one that drops, merges or multiplies rows: the operator would then see other rows than
it should. CarbonData pushed it below filters and aggregates (CARBONDATA-3733, -3842).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Operator(StrEnum):
    """What a limit may stand above."""

    SCAN = "a plain scan"
    PROJECTION = "a projection"
    FILTER = "a filter"
    AGGREGATE = "an aggregate"
    DISTINCT = "DISTINCT"
    SORT = "ORDER BY"
    UNION_ALL = "both sides of UNION ALL"
    SET_OPERATION = "UNION, INTERSECT or EXCEPT"
    INNER_JOIN = "an inner join"
    PRESERVED_SIDE = "the preserved side of an outer join"
    OTHER_SIDE = "the other side of an outer join"
    SEMI_JOIN = "a semi or anti join"
    WINDOW = "a window function"


class Push(StrEnum):
    """What may be done with a limit above an operator."""

    MOVE = "moves"
    COPY = "is copied, the outer one stays"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table: for LIMIT, for LIMIT with OFFSET, and why.

    A limit that is copied below keeps `limit + offset` rows there; the offset itself stays.
    """

    limit: Push
    offset: Push
    why: str


RULES: Final[dict[Operator, Rule]] = {
    Operator.SCAN: Rule(Push.MOVE, Push.MOVE, "any rows of the table are as good as any others"),
    Operator.PROJECTION: Rule(Push.MOVE, Push.MOVE, "each row becomes exactly one"),
    Operator.FILTER: Rule(Push.NEVER, Push.NEVER, "the rows kept below may all be filtered out"),
    Operator.AGGREGATE: Rule(Push.NEVER, Push.NEVER, "the groups would be made of too few rows"),
    Operator.DISTINCT: Rule(Push.NEVER, Push.NEVER, "the rows kept below may all be equal"),
    Operator.SORT: Rule(Push.NEVER, Push.NEVER, "the rows kept below need not be the first ones"),
    Operator.UNION_ALL: Rule(Push.COPY, Push.COPY, "one side alone may give all rows"),
    Operator.SET_OPERATION: Rule(
        Push.NEVER, Push.NEVER, "a row kept below may be dropped by its equal, or miss its partner"
    ),
    Operator.INNER_JOIN: Rule(Push.NEVER, Push.NEVER, "the rows kept below may have no partner"),
    Operator.PRESERVED_SIDE: Rule(Push.COPY, Push.COPY, "each row below gives one or more"),
    Operator.OTHER_SIDE: Rule(
        Push.NEVER, Push.NEVER, "a partner that is cut off becomes a row of NULLs"
    ),
    Operator.SEMI_JOIN: Rule(Push.NEVER, Push.NEVER, "it filters the rows kept below"),
    Operator.WINDOW: Rule(Push.NEVER, Push.NEVER, "a row's window would lack rows"),
}


@dataclass(frozen=True, slots=True)
class Tail:
    """LIMIT and OFFSET of one query: `offset` rows are passed over, then `limit` are given (None:
    all)."""

    limit: int | None = None
    offset: int = 0

    @property
    def reach(self) -> int | None:
        """How many of the first rows are looked at; None for all."""
        return None if self.limit is None else self.limit + self.offset


def combined(inner: Tail, outer: Tail) -> Tail:
    """Two adjacent limits as one: the smaller.

    >>> combined(Tail(10), Tail(3))
    Tail(limit=3, offset=0)
    >>> combined(Tail(10, 2), Tail(20, 7))
    Tail(limit=3, offset=9)
    """
    left = None if inner.limit is None else max(inner.limit - outer.offset, 0)
    limits = [n for n in (left, outer.limit) if n is not None]
    return Tail(min(limits) if limits else None, inner.offset + outer.offset)


def covers(stored: int, tail: Tail) -> bool:
    """True if the first `stored` rows in some order hold all that `tail` gives of that order."""
    return tail.reach is not None and tail.reach <= stored
