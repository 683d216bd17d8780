"""What the scheduler and the workers ask of the metastore; see `queue_writes` for the changes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, Subquery, select, true, union_all
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased, defer

from cachemgr.metastore.convert import cache_record, request_record, run_record
from cachemgr.metastore.models import (
    CacheRow,
    RefreshRequestRow,
    RefreshRunRow,
    ScheduleRow,
)
from cachemgr.metastore.reads import Reads, database_moment
from cachemgr.metastore.records import (
    RefreshRequestRecord,
    RefreshRunRecord,
    RunState,
    ScheduleRecord,
)

_RECENT = 5


class QueueReads(Reads):
    """Refreshes that wait, and the state of each cache's schedule."""

    def requests(self) -> tuple[RefreshRequestRecord, ...]:
        """The refreshes that wait for a worker, longest waiting first."""
        query = select(RefreshRequestRow).order_by(
            RefreshRequestRow.requested_at, RefreshRequestRow.id
        )
        with self._session() as session:
            return tuple(request_record(row) for row in session.scalars(query))

    def request(self, refresh_id: str) -> RefreshRequestRecord | None:
        """One refresh that waits; None if none does under that id (it may be a run by now)."""
        with self._session() as session:
            row = session.get(RefreshRequestRow, refresh_id)
            return request_record(row) if row else None

    def open_refreshes(self, ids: Collection[str]) -> frozenset[str]:
        """Those among some refreshes that wait or run."""
        waiting = select(RefreshRequestRow.id).where(RefreshRequestRow.id.in_(ids))
        running = select(RefreshRunRow.id).where(
            RefreshRunRow.id.in_(ids), RefreshRunRow.state == RunState.RUNNING.value
        )
        with self._session() as session:
            return frozenset(session.scalars(waiting)) | frozenset(session.scalars(running))

    def cancel_requested(self, refresh_id: str) -> bool:
        """Whether somebody has cancelled a refresh that runs."""
        asked = select(RefreshRunRow.cancel_requested).where(RefreshRunRow.id == refresh_id)
        with self._session() as session:
            return bool(session.scalar(asked))

    def now(self) -> datetime:
        """This moment by the database's clock, which all replicas share."""
        with self._session() as session:
            return database_moment(session)

    def schedule(self, cache_id: str) -> ScheduleRecord | None:
        """The schedule of one live cache; None if there is no such cache."""
        return next(iter(self.schedules([cache_id])), None)

    def schedules(self, cache_ids: Collection[str] | None = None) -> tuple[ScheduleRecord, ...]:
        """The schedules of live caches with their latest runs, by cache id.

        Plans are left out: a scheduler asks every second, and needs none.

        Args:
            cache_ids: Only these caches, at most a page of them; None asks for all.
        """
        with self._session() as session:
            rows = session.execute(
                select(CacheRow, ScheduleRow)
                .join(ScheduleRow, ScheduleRow.cache_id == CacheRow.id)
                .where(CacheRow.dropped_at.is_(None), _among(CacheRow.id, cache_ids))
                .order_by(CacheRow.id)
                .options(defer(CacheRow.plan))
            ).all()
            waiting = set(
                session.scalars(
                    select(RefreshRequestRow.cache_id).where(
                        _among(RefreshRequestRow.cache_id, cache_ids)
                    )
                )
            )
            latest = _latest(session, cache_ids)
            usual = _usual_seconds(session, cache_ids)
            found = []
            for cache, schedule in rows:
                last = latest.get(cache.id)
                runs = last is not None and last.state is RunState.RUNNING
                found.append(
                    ScheduleRecord(
                        cache=cache_record(cache, with_plan=False),
                        epoch=schedule.epoch,
                        failures=schedule.failures,
                        retry_at=schedule.retry_at,
                        behind_since=schedule.behind_since,
                        paused_because=schedule.paused_because,
                        busy=runs or cache.id in waiting,
                        last=last,
                        usual_seconds=usual.get(cache.id, 0.0),
                    )
                )
            return tuple(found)


def _among(
    column: InstrumentedAttribute[str], cache_ids: Collection[str] | None
) -> ColumnElement[bool]:
    return true() if cache_ids is None else column.in_(sorted(cache_ids))


def _latest(session: Session, cache_ids: Collection[str] | None) -> dict[str, RefreshRunRecord]:
    last = _last_runs(cache_ids, 0)
    runs = session.scalars(
        select(RefreshRunRow)
        .join(last, last.c.run_id == RefreshRunRow.id)
        .options(defer(RefreshRunRow.plan))
    )
    return {run.cache_id: run_record(run, with_plan=False) for run in runs}


def _usual_seconds(session: Session, cache_ids: Collection[str] | None) -> dict[str, float]:
    """The longest of the last published refreshes: a target lag is to be kept, not met at times."""
    last = union_all(
        *(select(_last_runs(cache_ids, n, RunState.PUBLISHED)) for n in range(_RECENT))
    ).subquery()
    rows = session.execute(
        select(RefreshRunRow.cache_id, RefreshRunRow.started_at, RefreshRunRow.finished_at).join(
            last, last.c.run_id == RefreshRunRow.id
        )
    )
    usual: dict[str, float] = {}
    for cache_id, started, finished in rows:
        if finished is not None:
            usual[cache_id] = max(usual.get(cache_id, 0.0), (finished - started).total_seconds())
    return usual


def _last_runs(
    cache_ids: Collection[str] | None, before_it: int, state: RunState | None = None
) -> Subquery:
    """Of each live cache the run that so many newer ones follow: a step into an index for each,
    where a window over all runs would read them all, every second.
    """
    run = aliased(RefreshRunRow)
    wanted = (
        select(run.id)
        .where(run.cache_id == CacheRow.id)
        .order_by(run.fencing_token.desc())
        .offset(before_it)
        .limit(1)
    )
    if state is not None:
        wanted = wanted.where(run.state == state.value)
    return (
        select(wanted.scalar_subquery().label("run_id"))
        .select_from(CacheRow)
        .where(CacheRow.dropped_at.is_(None), _among(CacheRow.id, cache_ids))
        .subquery()
    )
