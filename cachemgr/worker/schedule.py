"""The scheduler's look at the metastore, and the watch over base tables that feeds it.

Every replica looks; the metastore lets one of them ask for each refresh (`schedules.epoch`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cachemgr.base_state import BaseState, Unreadable, counted
from cachemgr.cache_spec import UnreadableTrigger
from cachemgr.errors import ConflictError, NotFoundError
from cachemgr.metastore.queue import DueRefresh
from cachemgr.metastore.records import CacheRecord, ScheduleRecord
from cachemgr.metastore.store import Metastore
from cachemgr.telemetry import logger
from cachemgr.vocabulary import RunState
from cachemgr.worker.passing import is_of_storage
from cachemgr.worker.put_right import PutRight
from cachemgr.worker.refresher import Refresher
from scheduler.due import CacheStatus
from scheduler.order import sources_of
from scheduler.tick import Look, look
from scheduler.triggers import Cron, OnCommit, TargetLag, Trigger, check_cron

# A catalog is asked less often than the logs: a name is seldom given to another table.
_NAMES_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """What a published refresh read, by location, and when it began to; where the tables lay that
    their names stood for."""

    read_at: datetime
    tables: Mapping[str, BaseState]
    places: Mapping[str, str]


def status_of(record: ScheduleRecord, reads: Collection[str] = ()) -> CacheStatus | None:
    """What the scheduler is to know of a cache; None where its trigger cannot be read here.

    Args:
        record: What the metastore knows of it.
        reads: Ids of the caches that it is defined over, also through others.
    """
    cache = record.cache
    trigger = _trigger(cache)
    if isinstance(trigger, str):
        return None
    assert cache.created_at is not None
    return CacheStatus(
        id=cache.id,
        name=cache.qualified_name,
        trigger=trigger,
        created_at=cache.created_at,
        paused=cache.paused,
        busy=record.busy,
        started_at=None if record.last is None else record.last.started_at,
        behind_since=record.behind_since,
        usual_seconds=record.usual_seconds,
        failures=record.failures,
        retry_at=record.retry_at,
        reads=frozenset(reads),
        running_since=_running_since(record),
        damaged=cache.damaged is not None,
    )


def _trigger(cache: CacheRecord) -> Trigger | str:
    """When a cache is to be refreshed, or why that cannot be read here."""
    trigger = cache.spec.refresh.trigger
    if isinstance(trigger, UnreadableTrigger):
        return trigger.why
    if isinstance(trigger, Cron):
        try:
            check_cron(trigger)
        except (ValueError, KeyError, TypeError) as error:
            return str(error) or type(error).__name__
    return trigger


def _running_since(record: ScheduleRecord) -> datetime | None:
    last = record.last
    return last.started_at if last is not None and last.state is RunState.RUNNING else None


def ask_for_due(metastore: Metastore) -> Look:
    """One look: ask for each refresh that is due, unless another replica just did.

    Args:
        metastore: Where everything is.

    Returns:
        What was found due, and when the next cache will be.
    """
    records = {r.cache.id: r for r in metastore.schedules.all()}
    reads = {i: r.cache.depends_on for i, r in records.items()}
    statuses = []
    for cache_id, record in records.items():
        status = status_of(record, sources_of(reads, cache_id))
        if status is not None:
            statuses.append(status)
        elif not record.cache.paused:
            _pause_unreadable(metastore, record)
        if record.paused_because is not None and is_of_storage(record.paused_because):
            _resume(metastore, record)
    found = look(statuses, metastore.clock.now())
    due = [DueRefresh(w.cache_id, w.why, records[w.cache_id].epoch) for w in found.wanted]
    asked = metastore.queue.request_due(due) if due else {}
    for one in due:
        if one.cache_id in asked:
            name = records[one.cache_id].cache.qualified_name
            logger.info("refresh of %s asked for: %s [%s]", name, one.why, asked[one.cache_id])
    return found


def _pause_unreadable(metastore: Metastore, record: ScheduleRecord) -> None:
    """A schedule that cannot be read keeps no other waiting, and its cache says so."""
    cache = record.cache
    why = (
        f"its schedule cannot be read: {_trigger(cache)}; ALTER RELATIONAL CACHE "
        f"{cache.qualified_name} SET REFRESH …, then RESUME"
    )
    metastore.schedules.note_failure(
        cache.id, failures=record.failures + 1, retry_at=None, paused_because=why
    )
    logger.error("cache %s is paused: %s", cache.qualified_name, why)


def _resume(metastore: Metastore, record: ScheduleRecord) -> None:
    """An earlier release paused a cache for a storage that did not answer: it is due again, and its
    next refresh tells whether it does by now."""
    cache = record.cache
    with suppress(ConflictError, NotFoundError):  # another replica did, or somebody else
        metastore.caches.update(cache.id, cache.version, now=metastore.clock.now(), paused=False)
        logger.info("cache %s goes on: it was paused for its storage", cache.qualified_name)


class Watch:
    """Notices new versions of base tables for the caches that wait for them.

    Args:
        metastore: Where caches and their snapshots are.
        refresher: Reads the heads of Delta logs.
    """

    def __init__(self, metastore: Metastore, refresher: Refresher) -> None:
        self._metastore = metastore
        self._refresher = refresher
        self._put_right = PutRight(metastore, refresher)
        self._named: Mapping[str, str] = {}
        self._names_at = 0.0
        self._told: set[tuple[str, str, str]] = set()
        # a published snapshot never changes
        self._snapshots: dict[str, _Snapshot] = {}

    def look(self) -> int:
        """Note down which caches are behind their base tables, and since when.

        Returns:
            How many fell behind since the last look.
        """
        records = self._metastore.schedules.all()
        self._put_right.look(records)
        watched = [r for r in records if _waits_for_commits(r)]
        snapshots = {r.cache.id: self._snapshot(r.cache.published_refresh_id) for r in watched}
        self._forget(r.cache.published_refresh_id for r in watched)
        places = sorted({p for found in snapshots.values() if found for p in found.tables})
        if not places:
            return 0
        heads = self._refresher.heads(places)
        self._find_names(found for found in snapshots.values() if found)
        now = self._metastore.clock.now()
        behind = {
            cache_id: moment
            for cache_id, snapshot in snapshots.items()
            if snapshot is not None
            and (moment := self._behind_since(cache_id, snapshot, heads, now)) is not None
        }
        if behind:
            self._metastore.schedules.note_behind(behind)
        return len(behind)

    def _behind_since(
        self,
        cache_id: str,
        snapshot: _Snapshot,
        heads: Mapping[str, BaseState | Unreadable | None],
        now: datetime,
    ) -> datetime | None:
        moments = [now] if self._was_renamed(cache_id, snapshot) else []
        for place, then in snapshot.tables.items():
            head = heads.get(place)
            if isinstance(head, Unreadable) and head.is_away:
                continue  # whether it moved is not known; it is asked again with the next look
            if isinstance(head, BaseState) and then.is_same(head):
                continue
            moment = None
            if (
                isinstance(head, BaseState)
                and head.table_id == then.table_id
                and then.version is not None
            ):
                moment = self._first_commit_after(place, then.version)
            if moment is None:
                # gone, cannot be read, made again or put back from a copy: the refresh will say so,
                # and its failures are counted for its cache alone
                moments.append(now)
            else:
                # a writer's clock that is ahead must not make the cache wait until then
                moments.append(counted(moment, snapshot.read_at, now))
        return min(moments, default=None)

    def _was_renamed(self, cache_id: str, snapshot: _Snapshot) -> bool:
        """Whether another table has taken the name of one that a cache read; told once, as a
        refresh that ends at the old place knows better."""
        others = {
            (cache_id, name, self._named[name])
            for name, place in snapshot.places.items()
            if self._named.get(name, place) != place
        } - self._told
        self._told |= others
        return bool(others)

    def _find_names(self, snapshots: Iterable[_Snapshot]) -> None:
        """Look from time to time where the tables lie that the names of base tables stand for."""
        if time.monotonic() < self._names_at:
            return
        self._names_at = time.monotonic() + _NAMES_SECONDS
        names = {name for snapshot in snapshots for name in snapshot.places}
        self._named = self._refresher.places(names)

    def _first_commit_after(self, place: str, version: int) -> datetime | None:
        try:
            return self._refresher.first_commit_after(place, version)
        except Exception as error:  # it has moved, and when does not count
            logger.warning("the commit of %s after %d cannot be read: %s", place, version, error)
            return None

    def _snapshot(self, refresh_id: str | None) -> _Snapshot | None:
        if refresh_id is None:
            return None
        found = self._snapshots.get(refresh_id)
        if found is None:
            published = self._metastore.snapshots.get(refresh_id)
            if published is None:
                return None
            tables = {t.location: t.state for t in published.tables if t.version is not None}
            names = {t.name: t.location for t in published.tables}
            found = self._snapshots[refresh_id] = _Snapshot(published.read_at, tables, names)
        return found

    def _forget(self, current: Iterable[str | None]) -> None:
        kept = set(current)
        for gone in [i for i in self._snapshots if i not in kept]:
            del self._snapshots[gone]


def _waits_for_commits(record: ScheduleRecord) -> bool:
    if record.cache.paused or record.busy or record.behind_since is not None:
        return False
    status = status_of(record)
    return status is not None and isinstance(status.trigger, OnCommit | TargetLag)
