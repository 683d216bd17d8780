"""What the decision log keeps of the filters of a hit: by which stored columns its cache is read,
and no value.

Of a column compared with constants either how many values are asked for (`points`) or that a range
is, with its width in days or whole numbers where both ends are known, rounded to one digit.
`cachemgr cache layout` reckons from that which layout of the table would have opened fewest files.
It is worked out by the thread that hands decisions over: no query waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import floor, log10
from typing import Any, Final

from cachemgr.serving.decision import Hit
from matcher.model.expr import Call, Col, Expr, Lit, conjuncts
from matcher.model.ir import Rewrite
from matcher.model.operators import FLIPPED
from matcher.model.types import INTEGRAL

POINTS: Final = "points"
RANGE: Final = "range"
MOST_COLUMNS: Final = 20
# Of one decision: a query may read one cache in many branches.
MOST_FILTERS: Final = 50
_DAY_MICROS: Final = 86_400_000_000
_ENDS: Final = {"gt": "low", "ge": "low", "lt": "high", "le": "high"}


@dataclass
class _Asked:
    """What the conjuncts of one column ask for."""

    points: int | None = None
    low: Lit | None = None
    high: Lit | None = None
    is_range: bool = False


def logged_filters(hits: Iterable[Hit]) -> tuple[dict[str, Any], ...]:
    """The filters of a decision as the log keeps them, one for each time that a cache is read.

    Args:
        hits: The blocks that are answered from caches.
    """
    found = (entry for hit in hits for entry in _of(hit.rewrite))
    return tuple(entry for entry, _ in zip(found, range(MOST_FILTERS), strict=False))


def _of(rewrite: Rewrite) -> Iterator[dict[str, Any]]:
    if rewrite.branches:
        for branch in rewrite.branches:
            yield from _of(branch)
        return
    yield {"cache": rewrite.cache, "columns": columns_of(rewrite.compensating)}


def columns_of(filters: Iterable[Expr]) -> list[dict[str, Any]]:
    """Each stored column that filters compare with constants, and how.

    Args:
        filters: Over the cache's columns.

    >>> day = Col(0, "day", "date")
    >>> columns_of([Call("ge", (day, Lit(100, "date")), "boolean"),
    ...             Call("lt", (day, Lit(128, "date")), "boolean")])
    [{'column': 'day', 'kind': 'range', 'width': 30.0}]
    >>> columns_of([Call("in", (Col(0, "k", "int"), Lit(1, "int"), Lit(2, "int")), "boolean")])
    [{'column': 'k', 'kind': 'points', 'points': 2}]
    """
    asked: dict[str, _Asked] = {}
    for condition in (part for each in filters for part in conjuncts(each)):
        _note(condition, asked)
    return [_told(name, one) for name, one in list(asked.items())[:MOST_COLUMNS]]


def _note(condition: Expr, asked: dict[str, _Asked]) -> None:
    args = condition.children
    if not isinstance(condition, Call) or len(args) < 2:
        return
    op, (column, *constants) = condition.op, args
    if isinstance(column, Lit) and len(args) == 2:
        op, column, constants = FLIPPED.get(op, ""), args[1], [column]
    # `extra` joins have numbers of their own
    if not isinstance(column, Col) or column.rel != 0:
        return
    values = [each for each in constants if isinstance(each, Lit)]
    if len(values) < len(constants):
        return
    if op in ("eq", "nseq", "in"):
        one = asked.setdefault(column.name, _Asked())
        one.points = min(len(values), len(values) if one.points is None else one.points)
    elif op in _ENDS:
        one = asked.setdefault(column.name, _Asked())
        one.is_range = True
        setattr(one, _ENDS[op], values[0])
    elif op == "startswith":
        asked.setdefault(column.name, _Asked()).is_range = True


def _told(name: str, one: _Asked) -> dict[str, Any]:
    if one.points is not None:
        return {"column": name, "kind": POINTS, "points": one.points}
    width = None if one.low is None or one.high is None else _width(one.low, one.high)
    return {"column": name, "kind": RANGE, "width": width}


def _width(low: Lit, high: Lit) -> float | None:
    """How far apart two constants are; rounded, so that a range from nought tells no value."""
    if not isinstance(low.value, int) or not isinstance(high.value, int) or low.type != high.type:
        return None
    if low.type not in (*INTEGRAL, "date", "timestamp", "timestamp_ntz"):
        return None
    unit = _DAY_MICROS if low.type.startswith("timestamp") else 1
    return rounded(max(0, high.value - low.value) / unit)


def rounded(width: float) -> float:
    """A width by its first digit.

    >>> rounded(0), rounded(28), rounded(1_234_567), rounded(0.034)
    (0.0, 30.0, 1000000.0, 0.03)
    """
    return 0.0 if width <= 0 else float(round(width, -floor(log10(width))))
