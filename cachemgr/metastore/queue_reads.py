"""What the scheduler and the workers ask of the metastore; see `queue_writes` for the changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Subquery,
    and_,
    func,
    not_,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased, defer

from cachemgr.metastore.leases import with_losses
from cachemgr.metastore.models import (
    CacheRow,
    RefreshRequestRow,
    RefreshRunRow,
    ScheduleRow,
)
from cachemgr.metastore.record_rows import cache_record, request_record, run_record
from cachemgr.metastore.records import (
    CacheRecord,
    RefreshRequestRecord,
    RefreshRunRecord,
    ScheduleRecord,
    as_utc,
)
from cachemgr.metastore.transactions import Part, Transactions, database_moment
from cachemgr.vocabulary import RunState

_RECENT = 5
_ENDED = tuple(s.value for s in (RunState.PUBLISHED, RunState.UNCHANGED, RunState.FAILED))


# What tells that a cache is as it was read before.
_CACHE_MARK = (
    CacheRow.id,
    CacheRow.version,
    CacheRow.revision,
    CacheRow.published_refresh_id,
    CacheRow.paused,
    CacheRow.damaged,
    CacheRow.updated_at,
)
_SCHEDULE = (
    ScheduleRow.epoch,
    ScheduleRow.failures,
    ScheduleRow.retry_at,
    ScheduleRow.behind_since,
    ScheduleRow.paused_because,
)


@dataclass(frozen=True)
class _Remembered:
    """What was read of all live caches and does not change: caches with their marks, runs that are
    over, and how long refreshes took up to a published one. By cache id.
    """

    caches: Mapping[str, tuple[tuple[object, ...], CacheRecord]] = field(default_factory=dict)
    runs: Mapping[str, RefreshRunRecord] = field(default_factory=dict)
    usual: Mapping[str, tuple[str | None, float]] = field(default_factory=dict)


class QueueReads(Part):
    """Refreshes that wait, and the state of each cache's schedule."""

    def __init__(self, transactions: Transactions) -> None:
        super().__init__(transactions)
        # replaced as a whole: several threads look
        self._remembered = _Remembered()

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

    def failing_since(self, cache_id: str, code: str) -> datetime | None:
        """When the first of a cache's refreshes began that have failed with one error and nothing
        else since.

        Args:
            cache_id: The cache's id.
            code: The error's code.

        Returns:
            The moment; None if the last refresh that came to an end did otherwise.
        """
        run = RefreshRunRow
        over = (run.cache_id == cache_id, run.state.in_(_ENDED))
        so = and_(run.state == RunState.FAILED.value, run.error.startswith(f"[{code}]"))
        other = select(func.max(run.fencing_token)).where(*over, not_(so)).scalar_subquery()
        first = select(func.min(run.started_at)).where(
            *over, so, run.fencing_token > func.coalesce(other, -1)
        )
        with self._session() as session:
            found = session.scalar(first)
            return None if found is None else as_utc(found)

    def schedule(self, cache_id: str) -> ScheduleRecord | None:
        """The schedule of one live cache; None if there is no such cache."""
        return next(iter(self.schedules([cache_id])), None)

    def schedules(self, cache_ids: Collection[str] | None = None) -> tuple[ScheduleRecord, ...]:
        """The schedules of live caches with their latest runs, by cache id.

        Plans are left out: a scheduler asks every second, and needs none. What it has read of all
        caches and is as it was is not read again.

        Args:
            cache_ids: Only these caches, at most a page of them; None asks for all.
        """
        with self._session() as session:
            rows: Sequence[Any] = session.execute(
                select(*_CACHE_MARK, *_SCHEDULE)
                .join(ScheduleRow, ScheduleRow.cache_id == CacheRow.id)
                .where(CacheRow.dropped_at.is_(None), _among(CacheRow.id, cache_ids))
                .order_by(CacheRow.id)
            ).all()
            waiting = set(
                session.scalars(
                    select(RefreshRequestRow.cache_id).where(
                        _among(RefreshRequestRow.cache_id, cache_ids)
                    )
                )
            )
            width = len(_CACHE_MARK)
            marks = {row[0]: tuple(row[1:width]) for row in rows}
            caches = self._caches(session, marks)
            latest = self._latest(session, cache_ids)
            published = {i: c.published_refresh_id for i, c in caches.items()}
            usual = self._usual(session, published)
            if cache_ids is None:
                self._remembered = _Remembered(
                    {i: (marks[i], cache) for i, cache in caches.items()},
                    {i: run for i, run in latest.items() if run.state is not RunState.RUNNING},
                    {i: (published[i], seconds) for i, seconds in usual.items()},
                )
            found = []
            for row in rows:
                cache_id, (epoch, failures, retry_at, behind_since, because) = row[0], row[width:]
                last = latest.get(cache_id)
                runs = last is not None and last.state is RunState.RUNNING
                found.append(
                    ScheduleRecord(
                        cache=caches[cache_id],
                        epoch=epoch,
                        failures=failures,
                        retry_at=retry_at,
                        behind_since=behind_since,
                        paused_because=because,
                        busy=runs or cache_id in waiting,
                        last=last,
                        usual_seconds=usual.get(cache_id, 0.0),
                    )
                )
            return tuple(found)

    def _caches(
        self, session: Session, marks: Mapping[str, tuple[object, ...]]
    ) -> dict[str, CacheRecord]:
        known = self._remembered.caches
        found = {i: known[i][1] for i, mark in marks.items() if i in known and known[i][0] == mark}
        for some in _portions(i for i in marks if i not in found):
            rows = session.scalars(
                select(CacheRow).where(CacheRow.id.in_(some)).options(defer(CacheRow.plan))
            )
            found |= {row.id: cache_record(row, with_plan=False) for row in rows}
        return found

    def _latest(
        self, session: Session, cache_ids: Collection[str] | None
    ) -> dict[str, RefreshRunRecord]:
        newest, run = _last_runs(cache_ids), RefreshRunRow
        # an id may come back in another state, in a metastore that was put back from a copy
        ids = session.execute(
            select(run.cache_id, run.id, run.state, run.started_at).join(
                newest, newest.c.run_id == run.id
            )
        )
        last = {cache_id: (run_id, *mark) for cache_id, run_id, *mark in ids}
        known = self._remembered.runs
        found = {
            i: known[i]
            for i, mark in last.items()
            if i in known and (known[i].id, known[i].state.value, known[i].started_at) == mark
        }
        for some in _portions(str(mark[0]) for i, mark in last.items() if i not in found):
            rows = session.scalars(
                select(RefreshRunRow)
                .where(RefreshRunRow.id.in_(some))
                .options(defer(RefreshRunRow.plan))
            )
            runs = with_losses(session, [run_record(row, with_plan=False) for row in rows])
            found |= {run.cache_id: run for run in runs}
        return found

    def _usual(self, session: Session, published: Mapping[str, str | None]) -> dict[str, float]:
        """The longest of the last published refreshes: a target lag is to be kept, not met at
        times."""
        known = self._remembered.usual
        found = {
            i: known[i][1] for i, run in published.items() if i in known and known[i][0] == run
        }
        for some in _portions(i for i, run in published.items() if run and i not in found):
            found |= dict.fromkeys(some, 0.0) | _usual_seconds(session, some)
        return found


def _among(
    column: InstrumentedAttribute[str], cache_ids: Collection[str] | None
) -> ColumnElement[bool]:
    return true() if cache_ids is None else column.in_(sorted(cache_ids))


def _portions(ids: Iterable[str]) -> Iterator[list[str]]:
    """In portions: databases bound the number of parameters of one statement."""
    left = list(ids)
    for start in range(0, len(left), 500):
        yield left[start : start + 500]


def _usual_seconds(session: Session, cache_ids: Collection[str]) -> dict[str, float]:
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
    cache_ids: Collection[str] | None, before_it: int = 0, state: RunState | None = None
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
        select(CacheRow.id.label("cache_id"), wanted.scalar_subquery().label("run_id"))
        .select_from(CacheRow)
        .where(CacheRow.dropped_at.is_(None), _among(CacheRow.id, cache_ids))
        .subquery()
    )
