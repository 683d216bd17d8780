"""What was found out of queries, kept until a cache over one of their tables changes.

With thousands of caches some refresh ends every few seconds, and each changes a plan (its sizes, if
nothing else). A cache that shares no table with a query is not looked at for it, so what is known
of the query outlives such a change: each table has a number that says which change was its last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

_Value = TypeVar("_Value")
Tables = tuple[str, ...]


class Changes:
    """The changes of a registry, counted. One thread at a time notes them, any may read."""

    __slots__ = ("_last", "now")

    def __init__(self) -> None:
        self.now = 0
        self._last: dict[str, int] = {}

    def note(self, tables: Iterable[str]) -> None:
        """A cache over these tables came, went or is another: called when it is done."""
        now = self.now + 1
        for table in tables:
            self._last[table] = now
        self.now = now

    def came(self, tables: Tables, since: int) -> bool:
        """Whether a cache over one of the tables changed after change number `since`."""
        return any(self._last.get(table, 0) > since for table in tables)


class Remembered(Generic[_Value]):
    """A bounded map; the oldest make room.

    Args:
        changes: What makes values old.
        capacity: The most values kept.
    """

    __slots__ = ("_capacity", "_changes", "_values")

    def __init__(self, changes: Changes, capacity: int) -> None:
        self._changes: Final = changes
        self._capacity: Final = capacity
        self._values: dict[object, tuple[int, _Value]] = {}

    def get(self, key: object, tables: Tables) -> _Value | None:
        """The value, None if there is none or it is old.

        Args:
            key: What it is of.
            tables: The relation keys that the key's query reads.
        """
        found = self._values.get(key)
        if found is None or self._changes.came(tables, found[0]):
            return None
        return found[1]

    def keep(
        self, key: object, tables: Tables, since: int, make: Callable[[], _Value]
    ) -> _Value | None:
        """The value that what was just found out may be added to, made if there is none; None where
        what is there was found out after later changes.

        Args:
            key: What it is of.
            tables: As for `get`.
            since: `Changes.now` of before the caches were looked at.
            make: Makes a value.
        """
        found = self._values.get(key)
        if found is not None and not self._changes.came(tables, found[0]):
            return found[1] if found[0] <= since else None
        made = make()
        self._values.pop(key, None)
        while len(self._values) >= self._capacity:
            self._values.pop(next(iter(self._values)), None)
        self._values[key] = since, made
        return made

    def forget(self) -> None:
        """Drop all values."""
        self._values = {}
