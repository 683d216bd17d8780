"""Caches that paused because a base table was gone, or had columns that they do not follow, go on
by themselves once that table is another one: the next night's job may have put it right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final

from cachemgr.base_state import BaseState, Unreadable
from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.metastore.records import ScheduleRecord, as_utc
from cachemgr.metastore.store import Metastore
from cachemgr.telemetry import logger
from cachemgr.worker.refresher import Refresher

# What somebody puts right by another commit to a base table, or by another table in its place.
_BY_THE_TABLE: Final = (
    ErrorCode.BASE_COLUMN_CHANGED,
    ErrorCode.BASE_COLUMN_LOST,
    ErrorCode.BASE_TABLE_LOST,
    ErrorCode.COLUMNS_CHANGED,
    ErrorCode.DEFINITION_BROKEN,
)
# A table that is written to all the time must not have a broken definition looked at all the time.
_FIRST_SECONDS: Final = 5.0
_LONGEST_SECONDS: Final = 1800.0
Heads = Mapping[str, BaseState | None]


class PutRight:
    """Looks at the base tables of such caches.

    Args:
        metastore: Where caches are.
        refresher: Reads the heads of Delta logs.
    """

    def __init__(self, metastore: Metastore, refresher: Refresher) -> None:
        self._metastore = metastore
        self._refresher = refresher
        # by the cache and the refresh that failed last
        self._seen: dict[tuple[str, str], Heads] = {}

    def look(self, records: Iterable[ScheduleRecord]) -> int:
        """Have each try once more whose tables have moved since it failed.

        Args:
            records: All caches.

        Returns:
            How many go on.
        """
        stopped = {_key(record): record for record in records if _is_stopped(record)}
        self._seen = {key: heads for key, heads in self._seen.items() if key in stopped}
        if not stopped:
            return 0
        now = self._metastore.clock.now()
        return sum([self._try_again(key, record, now) for key, record in stopped.items()])

    def _try_again(self, key: tuple[str, str], record: ScheduleRecord, now: datetime) -> bool:
        cache = self._metastore.caches.get(record.cache.id)
        relations = ((cache and cache.plan) or {}).get("relations", ())
        asked = self._refresher.heads({str(place) for place, _ in relations})
        # a table that cannot be asked has not moved, for all that is known
        heads = {p: head for p, head in asked.items() if not isinstance(head, Unreadable)}
        if len(heads) < len(asked):
            return False
        before = self._seen.setdefault(key, heads)
        moved = heads != before if before is not heads else _came_since(record, heads)
        if cache is None or not moved or not _has_waited(record, now):
            return False
        with suppress(CacheManagerError):  # somebody has just changed it
            self._metastore.caches.update(cache.id, cache.version, now=now, paused=False)
            failures = max(1, record.failures)
            self._metastore.schedules.note_failure(
                cache.id, failures=failures, retry_at=now, paused_because=None
            )
            del self._seen[key]
            logger.info("cache %s goes on: a base table is another one", cache.qualified_name)
            return True
        return False


def _key(record: ScheduleRecord) -> tuple[str, str]:
    return record.cache.id, "" if record.last is None else record.last.id


def _is_stopped(record: ScheduleRecord) -> bool:
    because = record.paused_because or ""
    return record.cache.paused and any(f"[{code}]" in because for code in _BY_THE_TABLE)


def _has_waited(record: ScheduleRecord, now: datetime) -> bool:
    """Whether it is time to look, the later the more often it failed."""
    if record.last is None:
        return True
    wait = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** (min(record.failures, 20) - 1))
    return (now - record.last.started_at).total_seconds() >= wait


def _came_since(record: ScheduleRecord, heads: Heads) -> bool:
    """Whether a table was written to after the refresh that failed began; for a process that has
    just started, by the writers' clocks."""
    if record.last is None:
        return False
    return any(
        head is not None
        and head.committed_ms is not None
        and as_utc(head.committed_ms) > record.last.started_at
        for head in heads.values()
    )
