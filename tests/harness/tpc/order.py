"""Whether two answers to one query are the same rows in an order that its ORDER BY allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlglot
from sqlglot import exp

Columns = Sequence[tuple[str, str]]


def differences(
    text: str,
    columns: Columns,
    wanted: Sequence[Any],
    found: Columns,
    got: Sequence[Any],
) -> list[str]:
    """What is wrong with `got`, if anything.

    Rows that ORDER BY does not tell apart may change places; everything else is as it was.

    Args:
        text: The query.
        columns: Its output columns, names and types.
        wanted: Its rows without caches.
        found: The output columns with caches.
        got: Its rows with caches.
    """
    if list(found) != list(columns):
        return [f"columns {found} instead of {columns}"]
    if list(got) == list(wanted):
        return []
    if sorted(map(repr, got)) != sorted(map(repr, wanted)):
        missing = [r for r in wanted if r not in got]
        return [f"rows {[r for r in got if r not in wanted][:3]} instead of {missing[:3]}"]
    places = _key_places(text, [name for name, _ in columns])
    for number, (mine, theirs) in enumerate(zip(got, wanted, strict=True)):
        if [mine[p] for p in places] != [theirs[p] for p in places]:
            return [f"row {number} is {mine} instead of {theirs}"]
    return []


def _key_places(text: str, names: Sequence[str]) -> list[int]:
    """Where the sort keys stand in the output, up to the first that does not stand there."""
    ordered = sqlglot.parse_one(text, read="spark").args.get("order")
    found: list[int] = []
    for key in ordered.expressions if ordered else ():
        this = key.this
        if isinstance(this, exp.Literal) and this.is_int:
            found.append(int(this.this) - 1)
        elif isinstance(this, exp.Column) and this.name in names:
            found.append(list(names).index(this.name))
        else:
            break
    return found
