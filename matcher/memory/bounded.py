"""Bounded memories: of values by key, and of what was found out of queries.

With thousands of caches some refresh ends every few seconds, and each changes a plan (its sizes, if
nothing else). A cache that shares no table with a query is not looked at for it, so what is known
of the query outlives such a change: each table has a number that says which change was its last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final, Generic, Literal, TypeAlias, TypeVar

# One in so many values is new; and for each value, so many hashes of keys that have none.
_NEW_SHARE: Final = 8
_GONE_SHARE: Final = 8
_Value = TypeVar("_Value")
Tables = tuple[str, ...]
Admission: TypeAlias = Literal["first time", "second time"]


class _Entry(Generic[_Value]):
    """A value, and whether it was asked for since it came to its queue."""

    __slots__ = ("asked", "value")

    def __init__(self, value: _Value) -> None:
        self.value = value
        self.asked = False


class Bounded(Generic[_Value]):
    """A bounded map in which what is asked for again stays, however much comes once: S3-FIFO (Yang
    et al., SOSP 2023). Any thread may call it.

    What is new waits in a short queue. Whoever was asked for there goes on to the long one, and to
    its end again each time that it was asked for on the way; of the others the hash alone is known
    for a while, so that one that comes again goes to the long queue at once.

    Args:
        most: The most values kept.
        admit: Where a value takes much memory, or time to make, "second time" keeps it when its key
            comes again; the first time the key's hash alone is noted.
    """

    __slots__ = ("_entries", "_gone", "_lasting", "_lock", "_most", "_most_new", "_new")

    def __init__(self, most: int, admit: Admission = "first time") -> None:
        self._most: Final = most
        self._most_new: Final = max(1, most // _NEW_SHARE) if admit == "first time" else 0
        self._entries: dict[object, _Entry[_Value]] = {}
        self._new: deque[object] = deque()
        self._lasting: deque[object] = deque()
        self._gone: dict[int, None] = {}
        self._lock = Lock()

    def get(self, key: object) -> _Value | None:
        """The value of a key; None if there is none.

        >>> squares = Bounded[int](100)
        >>> squares.put(3, 9)
        >>> squares.get(3), squares.get(4)
        (9, None)
        """
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.asked = True
        return entry.value

    def put(self, key: object, value: _Value) -> None:
        """Keep a value, in place of the one that the key has."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self._take_in(key, lambda: value)
            else:
                entry.value = value

    def keep(self, key: object, make: Callable[[], _Value]) -> _Value | None:
        """The value of a key, made if there is none; None if the key has to come again first.

        >>> plans = Bounded[str](100, admit="second time")
        >>> plans.keep("a", lambda: "made"), plans.keep("a", lambda: "made")
        (None, 'made')

        Args:
            key: The key.
            make: Makes a value, while other threads wait.
        """
        found = self.get(key)
        if found is not None:
            return found
        with self._lock:
            entry = self._entries.get(key) or self._take_in(key, make)
            return None if entry is None else entry.value

    def forget(self) -> None:
        """Drop all values."""
        with self._lock:
            self._entries, self._gone = {}, {}
            self._new.clear()
            self._lasting.clear()

    def _take_in(self, key: object, make: Callable[[], _Value]) -> _Entry[_Value] | None:
        known = hash(key) in self._gone
        if not known and not self._most_new:
            self._note(key)
            return None
        entry = self._entries[key] = _Entry(make())
        (self._lasting if known else self._new).append(key)
        if known:
            del self._gone[hash(key)]
        if len(self._new) > self._most_new:
            self._leave_new(self._new.popleft())
        while len(self._lasting) > self._most - self._most_new:
            oldest = self._lasting.popleft()
            if self._entries[oldest].asked:
                self._entries[oldest].asked = False
                self._lasting.append(oldest)
            else:
                del self._entries[oldest]
        return entry

    def _leave_new(self, key: object) -> None:
        entry = self._entries[key]
        if entry.asked:
            entry.asked = False
            self._lasting.append(key)
            return
        del self._entries[key]
        self._note(key)

    def _note(self, key: object) -> None:
        self._gone[hash(key)] = None
        if len(self._gone) > _GONE_SHARE * self._most:
            del self._gone[next(iter(self._gone))]


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
    """What was found out of queries, kept until a cache over one of their tables changes.

    Args:
        changes: What makes values old.
        capacity: The most values kept.
    """

    __slots__ = ("_changes", "_found", "_lock")

    def __init__(self, changes: Changes, capacity: int) -> None:
        self._changes: Final = changes
        # with the change before which each was found out
        self._found: Final[Bounded[tuple[int, _Value]]] = Bounded(capacity)
        self._lock = Lock()

    def get(self, key: object, tables: Tables) -> _Value | None:
        """The value, None if there is none or it is old.

        Args:
            key: What it is of.
            tables: The relation keys that the key's query reads.
        """
        found = self._found.get(key)
        return None if found is None or self._changes.came(tables, found[0]) else found[1]

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
        with self._lock:
            found = self._found.get(key)
            if found is None or self._changes.came(tables, found[0]):
                value = make()
                self._found.put(key, (since, value))
                return value
            before, value = found
            return value if before <= since else None

    def forget(self) -> None:
        """Drop all values."""
        self._found.forget()
