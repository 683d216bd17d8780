"""The rows that a statement answers with: plain data, which each door shows in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from matcher.render.select import quote

# Of what changes something.
DONE: Final = ("name", "result")


@dataclass(frozen=True)
class ResultRows:
    """A small table.

    Args:
        columns: (name, Spark type) of each column.
        rows: The rows, values in column order.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...] = ()

    @property
    def schema(self) -> str:
        """The columns as a Spark DDL string."""
        return ", ".join(f"{quote(name)} {kind}" for name, kind in self.columns)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]] = ()) -> ResultRows:
    """Rows under columns written as `name` or `name type`; the type is STRING if not given.

    Args:
        columns: The columns.
        rows: The rows.
    """
    split = [[*c.split(" ", 1), "string"][:2] for c in columns]
    return ResultRows(tuple((n, t) for n, t in split), tuple(tuple(row) for row in rows))


def done(name: str, result: str) -> ResultRows:
    """The one-row answer of a statement that changes something.

    Args:
        name: The object that was changed.
        result: What was done, in a word or two.
    """
    return table(DONE, [(name, result)])
