"""What the scheduler knows of each cache, and what it notes down."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Subquery, select, true, union_all, update
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased, defer

from cachemgr.metastore.leases import touch_lease, with_losses
from cachemgr.metastore.models import CacheRow, RefreshRequestRow, RefreshRunRow, ScheduleRow
from cachemgr.metastore.record_rows import cache_record, run_record
from cachemgr.metastore.records import CacheRecord, RefreshRunRecord, ScheduleRecord, as_utc
from cachemgr.metastore.transactions import Part, Transactions
from cachemgr.metastore.writes import bump_revision, change_schedule
from cachemgr.vocabulary import RunState

_RECENT = 5

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


class Schedules(Part):
    """The state of each cache's schedule."""

    def __init__(self, transactions: Transactions) -> None:
        super().__init__(transactions)
        # replaced as a whole: several threads look
        self._remembered = _Remembered()

    def of(self, cache_id: str) -> ScheduleRecord | None:
        """The schedule of one live cache; None if there is no such cache."""
        return next(iter(self.all([cache_id])), None)

    def all(self, cache_ids: Collection[str] | None = None) -> tuple[ScheduleRecord, ...]:
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

    def note_behind(self, seen: Mapping[str, datetime | None]) -> None:
        """Note down since when caches are behind their base tables.

        Args:
            seen: Cache id to the moment of the first commit that its snapshot lacks, None for one
                that lacks none.
        """
        with self._transaction() as session:
            for cache_id, moment in sorted(seen.items()):
                change_schedule(session, cache_id, behind_since=moment)

    def note_failure(
        self,
        cache_id: str,
        *,
        failures: int,
        retry_at: datetime | None,
        paused_because: str | None,
        token: int | None = None,
        now: datetime | int | None = None,
    ) -> bool:
        """Note down what follows from a scheduled refresh that failed.

        Args:
            cache_id: The cache's id.
            failures: How many failed in a row.
            retry_at: When to try again.
            paused_because: Why the cache is paused now; None leaves it running.
            token: The fencing token of the refresh; None does not compare. What one meets whose
                lease was taken over says nothing about the cache.
            now: This moment; None asks the database's clock.

        Returns:
            False if the lease was lost, and nothing noted.
        """
        with self._transaction() as session:
            # the counter first, as in publishing
            revision = None if paused_because is None else bump_revision(session)
            if token is not None and not touch_lease(session, cache_id, token):
                return False
            if paused_because is not None:
                session.execute(
                    update(CacheRow)
                    .where(CacheRow.id == cache_id, CacheRow.dropped_at.is_(None))
                    .values(
                        paused=True,
                        version=CacheRow.version + 1,
                        updated_at=self._moment(session, now),
                        revision=revision,
                    )
                    .execution_options(synchronize_session=False)
                )
            change_schedule(
                session,
                cache_id,
                failures=failures,
                retry_at=None if retry_at is None else as_utc(retry_at),
                paused_because=paused_because,
            )
            return True


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
