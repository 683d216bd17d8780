"""What one try at deciding a query goes by, and which tries there are, in order.

The first is the cheapest, and what it finds is right for nearly every query. Where its hits must
not run together, or a key that it relied on does not hold, the next one that mends that is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Policy:
    """What one try goes by.

    Args:
        promised: Keys of joins are taken to hold as they do if no table moved since they were
            validated, and are looked at where a rewrite relies on one; else all tables are looked
            at, and the keys that hold in them are known.
        alone_first: A cache that may answer by itself is taken before one beside which appended
            rows are read, whatever they cost.
        exact_only: Caches that are equal to the tables now serve, and no others.
    """

    promised: bool = False
    alone_first: bool = False
    exact_only: bool = False


class KeysMoved(Exception):
    """A key that was promised does not hold: what was found by it must not run."""


BY_KEYS_SEEN: Final = (Policy(), Policy(alone_first=True), Policy(exact_only=True))
BY_PROMISED_KEYS: Final = (
    *(replace(policy, promised=True) for policy in BY_KEYS_SEEN),
    *BY_KEYS_SEEN,
)
