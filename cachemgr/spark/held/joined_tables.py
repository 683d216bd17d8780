"""Small tables that a cache joins to the one that grows, held in memory for its tails.

Each new tail joins the same dimensions again. To find and read their files takes longer than to
join the few appended rows to them.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from cachemgr.base_state import TableAt
from cachemgr.delta.tables import PinnedSet, TableRead, run_select
from cachemgr.spark.held.pins import NotPinnable, PinKey, PinStore
from matcher.memory.bounded import Bounded
from matcher.render.placeholders import TABLE
from matcher.render.select import quote

# On the disk, with all of their columns.
_MOST_BYTES: Final = 32 << 20
_MOST: Final = 1_000
_UNUSED_SECONDS: Final = 600.0
# Spark's statistics of what is held leave NaN out, so that a filter would pass over it; of other
# types nothing is known.
_HELD: Final = (
    T.BooleanType,
    T.IntegralType,
    T.DecimalType,
    T.StringType,
    T.BinaryType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


@dataclass(frozen=True, slots=True)
class _Use:
    """What was asked for last of a table, and when."""

    key: PinKey
    at: float


class JoinedTables:
    """Tables of one application that are joined again and again; safe for several threads.

    Args:
        pins: What holds them, with the tails and within their bound.
    """

    def __init__(self, pins: PinStore) -> None:
        self._pins = pins
        self._uses: Bounded[_Use] = Bounded(_MOST)

    def relation(
        self,
        session: SparkSession,
        settings: Collection[tuple[str, str]],
        table: TableAt,
        columns: frozenset[str],
        size: int | None,
    ) -> PinnedSet | TableRead:
        """What a tail reads of a table. One that comes again at the same version is held from then
        on.

        Args:
            session: A session of ours.
            settings: What is set in it, which may say how a table is read.
            table: The table.
            columns: Those that are read of it, in lower case.
            size: Bytes of its files; None if nobody knows.

        Returns:
            Its rows in memory, with these columns alone, or the table itself.
        """
        read = TableRead(table.location, table.version)
        if size is None or size > _MOST_BYTES or not columns or not table.commit:
            return read
        key = _key(settings, table, columns)
        last = self._uses.get(key.of_any_version)
        held = self._used(key)
        if held is None and last is not None and last.key == key:
            self._pins.request(key, lambda: _rows(session, read, columns), table.name)
        return read if held is None else held

    def held(
        self, settings: Collection[tuple[str, str]], table: TableAt, columns: frozenset[str]
    ) -> PinnedSet | None:
        """The rows of a table, where they are held for tails; see `relation`.

        Args:
            settings: What is set where tails are made.
            table: The table.
            columns: Those that tails read of it, in lower case.
        """
        key = _key(settings, table, columns)
        last = self._uses.get(key.of_any_version)
        return self._used(key) if last is not None and last.key == key else None

    def is_wanted(self, key: PinKey) -> bool | None:
        """Whether a pin is still to be held; None if it is of no joined table.

        Args:
            key: The pin's.
        """
        if key.cache_id:
            return None
        last = self._uses.get(key.of_any_version)
        used = None if last is None or last.key != key else last.at
        return used is not None and time.monotonic() - used < _UNUSED_SECONDS

    def _used(self, key: PinKey) -> PinnedSet | None:
        self._uses.put(key.of_any_version, _Use(key, time.monotonic()))
        return self._pins.get(key)


def _key(settings: Collection[tuple[str, str]], table: TableAt, columns: frozenset[str]) -> PinKey:
    """A table that was created again may come to the same version: its commit is another one."""
    what = repr((sorted(columns), sorted(settings)))
    identity = (table.table_id, table.commit)
    return PinKey("", table.version, None, table.location, what, identity)


def _rows(session: SparkSession, read: TableRead, columns: frozenset[str]) -> DataFrame:
    rows = run_select(session, f"SELECT * FROM {TABLE}", {TABLE: read})
    kept = [field for field in rows.schema.fields if field.name.lower() in columns]
    for field in kept:
        if not isinstance(field.dataType, _HELD):
            raise NotPinnable(f"{field.name} of {read.location} is {field.dataType}")
    return rows.select(*(quote(field.name) for field in kept))
