"""Numbers for tables, and expressions whose columns name their tables by them.

Tables get small numbers from one `Interner` a registry, and a column's `rel` becomes its table's
number (the second occurrence of a table in a block gets the number plus `OCCURRENCE`). So
expressions of a query and of a cache are equal objects as they stand, with no mapping, unless a
table occurs twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final

from matcher.model.expr import Col, Expr, rebuild
from matcher.model.hash_consing import Sharing

OCCURRENCE: Final = 1 << 20
# Tables that no cache reads get numbers from here on, which mean something in one query alone.
FIRST_UNKNOWN_TABLE: Final = 1 << 19


class Interner:
    """Numbers for names, given once and kept; safe for concurrent readers and writers."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._lock = Lock()

    def __call__(self, name: object) -> int:
        found = self._numbers.get(name)
        if found is None:
            with self._lock:
                found = self._numbers.setdefault(name, len(self._numbers))
        return found

    def known(self, name: object) -> int | None:
        """The number of `name`, None if it has none."""
        return self._numbers.get(name)


def occurrences(keys: Iterable[int]) -> tuple[int, ...]:
    """Table numbers with repeated ones told apart, in the given order."""
    seen: dict[int, int] = {}
    result = []
    for key in keys:
        nth = seen.get(key, 0)
        seen[key] = nth + 1
        result.append(key + nth * OCCURRENCE)
    return tuple(result)


def relabel(
    expr: Expr, rels: Sequence[int], memo: dict[Expr, Expr], share: Sharing | None = None
) -> Expr:
    """`expr` with other relation numbers; `memo` shares what repeats in a block, `share` what
    repeats in other plans."""
    done = memo.get(expr)
    if done is None:
        if isinstance(expr, Col):
            done = Col(rels[expr.rel], expr.name, expr.type, expr.nullable)
        elif expr.children:
            parts = tuple(relabel(child, rels, memo, share) for child in expr.children)
            done = rebuild(expr, parts)
        else:
            return expr
        memo[expr] = done = done if share is None else share(done)
    return done
