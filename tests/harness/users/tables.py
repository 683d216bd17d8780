"""The base tables that the users ask about: their states, one after another, as plain rows; and
what each query would give over one of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

REGIONS = ("north", "south", "it's", "")
ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe")
KEYS = 40
# all of 2024, in which each zone but UTC has two changes of the clock
FIRST_SECOND, SECONDS = 1_704_067_200, 366 * 86_400

Row = tuple[int, str, int, int]
"""k, region, seconds since 1970, v."""
Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class State:
    """A table's rows between two commits.

    Args:
        rows: All of them.
        began: When the statement that made them was sent, as `time.monotonic`.
        ended: When it was answered.
    """

    rows: tuple[Row, ...]
    began: float
    ended: float


class Table:
    """One base table. One thread writes to it; any number look at its states."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.states: list[State] = []
        # Delta's number of each state
        self.versions: list[int] = []
        self._pending: tuple[tuple[Row, ...], float] | None = None
        self._lock = threading.Lock()

    @property
    def newest(self) -> State:
        """The last state that was committed."""
        return self.states[-1]

    @contextmanager
    def becomes(self, rows: tuple[Row, ...], version: Callable[[], int]) -> Iterator[None]:
        """While the statement runs that makes these the table's rows."""
        began = time.monotonic()
        with self._lock:
            self._pending = (rows, began)
        yield
        with self._lock:
            self.states.append(State(rows, began, time.monotonic()))
            self._pending = None
        # asked for afterwards: the state before is over meanwhile
        self.versions.append(version())

    def seen(self, since: float, until: float) -> list[tuple[Row, ...]]:
        """What a query between two moments may have found: each state that was there meanwhile."""
        with self._lock:
            states, pending = list(self.states), self._pending
        found = []
        for number, state in enumerate(states):
            over = number + 1 < len(states) and states[number + 1].ended < since
            if state.began <= until and not over:
                found.append(state.rows)
        if pending is not None and pending[1] <= until:
            found.append(pending[0])
        return found


def drawn_rows(rng: Random, count: int) -> tuple[Row, ...]:
    """New rows."""
    return tuple(
        (
            rng.randrange(KEYS),
            rng.choice(REGIONS),
            FIRST_SECOND + rng.randrange(SECONDS),
            rng.randrange(-1000, 1000),
        )
        for _ in range(count)
    )


@dataclass(frozen=True)
class Query:
    """A text, and what it gives over a state."""

    table: str
    text: str
    over: Callable[[tuple[Row, ...]], Rows]


def drawn_query(rng: Random, zone: str) -> Query:
    """A query with constants of its own, asked in a session of this time zone."""
    return rng.choice((_by_region, _extremes, _by_day, _total, _restored))(rng, zone)


def quoted(text: str) -> str:
    """A constant of SQL."""
    return "'" + text.replace("'", "\\'") + "'"


def _by_region(rng: Random, zone: str) -> Query:
    below = rng.randrange(KEYS + 1)
    return Query(
        "facts",
        f"SELECT region, SUM(v) AS s, COUNT(*) AS n FROM facts WHERE k < {below} GROUP BY region",
        lambda rows: _sums((region, v) for k, region, _, v in rows if k < below),
    )


def _extremes(rng: Random, zone: str) -> Query:
    region = rng.choice(REGIONS)

    def over(rows: tuple[Row, ...]) -> Rows:
        groups: dict[int, list[int]] = {}
        for k, of, _, v in rows:
            if of == region:
                groups.setdefault(k, []).append(v)
        first = sorted(groups)[:5]
        return Counter((k, min(groups[k]), max(groups[k])) for k in first)

    return Query(
        "facts",
        f"SELECT k, MIN(v), MAX(v) FROM facts WHERE region = {quoted(region)} GROUP BY k "
        "ORDER BY k LIMIT 5",
        over,
    )


def _by_day(rng: Random, zone: str) -> Query:
    since = date(2024, 1 + rng.randrange(12), 1 + rng.randrange(28))
    place = ZoneInfo(zone)
    return Query(
        "facts",
        f"SELECT CAST(ts AS DATE) AS d, SUM(v), COUNT(*) FROM facts "
        f"WHERE CAST(ts AS DATE) >= DATE'{since}' GROUP BY CAST(ts AS DATE)",
        lambda rows: _sums(
            (day, v)
            for _, _, second, v in rows
            if (day := datetime.fromtimestamp(second, place).date()) >= since
        ),
    )


def _total(rng: Random, zone: str) -> Query:
    shown = rng.randrange(99)

    def over(rows: tuple[Row, ...]) -> Rows:
        total = sum(row[3] for row in rows) if rows else None
        return Counter([(shown, total, len(rows))])

    return Query("facts", f"SELECT {shown} AS x, SUM(v), COUNT(*) FROM facts", over)


def _restored(rng: Random, zone: str) -> Query:
    region = rng.choice(REGIONS)
    return Query(
        "restored",
        "SELECT region, SUM(v), COUNT(*) FROM restored "
        f"WHERE region <> {quoted(region)} GROUP BY region",
        lambda rows: _sums((of, v) for _, of, _, v in rows if of != region),
    )


def _sums(pairs: Iterator[tuple[Any, int]]) -> Rows:
    sums: dict[Any, list[int]] = {}
    for key, v in pairs:
        of = sums.setdefault(key, [0, 0])
        of[0] += v
        of[1] += 1
    return Counter((key, s, n) for key, (s, n) in sums.items())
