"""The bounds of base columns of whole numbers, as a refresh notes them down among its facts.

They are of the versions that it read, by the number of the relation in the plan that it published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from matcher.model.expr import Col
from matcher.model.integer_bounds import Bounds

BOUNDS: Final = "bounds"
"""The name of the entry among a run's facts."""


def encode_bounds(bounds: Mapping[Col, Bounds]) -> list[list[Any]]:
    """Bounds as a refresh notes them down.

    Args:
        bounds: Those of columns of its plan.
    """
    return [[c.rel, c.name, low, high] for c, (low, high) in bounds.items()]


def noted_bounds(facts: Mapping[str, Any]) -> dict[tuple[int, str], Bounds]:
    """The bounds that a refresh noted down, by relation number and name.

    Args:
        facts: What it noted down.

    >>> noted_bounds({"bounds": encode_bounds({Col(0, "x", "bigint"): (-1, 5)})})
    {(0, 'x'): (-1, 5)}
    """
    return {(rel, name): (low, high) for rel, name, low, high in facts.get(BOUNDS) or ()}


def rounded_bounds(facts: Mapping[str, Any]) -> list[list[Any]]:
    """The entry for those who may not know the values: rounded up to powers of two, on both sides
    of 0 alike.

    Args:
        facts: What a refresh noted down.

    >>> rounded_bounds({"bounds": [[0, "x", -1, 5], [1, "y", 0, 0]]})
    [[0, 'x', -8, 8], [1, 'y', 0, 0]]
    """
    found = []
    for rel, name, low, high in facts.get(BOUNDS) or ():
        most = max(abs(low), abs(high))
        limit = 1 << (most - 1).bit_length() if most else 0
        found.append([rel, name, -limit, limit])
    return found
