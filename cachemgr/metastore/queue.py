"""Refreshes that wait for a worker: asked for, taken, handed over, cancelled."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from cachemgr.errors import ConflictError, ErrorCode
from cachemgr.metastore.leases import take_lease
from cachemgr.metastore.models import (
    CacheRow,
    LeaseRow,
    RefreshRequestRow,
    RefreshRunRow,
    ScheduleRow,
)
from cachemgr.metastore.queue_rows import ask, give_up, move_epoch
from cachemgr.metastore.record_rows import request_record, run_record
from cachemgr.metastore.records import ASKED, RefreshRequestRecord, RefreshRunRecord, new_id
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import live_cache, no_refresh
from cachemgr.vocabulary import Origin, RunState

_PORTION: Final = 200


@dataclass(frozen=True, slots=True)
class DueRefresh:
    """A refresh that a schedule asks for: of which cache, why, and at which epoch of its schedule
    that was found."""

    cache_id: str
    why: str
    epoch: int


class Queue(Part):
    """Ask for refreshes, take them, cancel them; look up those that wait."""

    def waiting(self) -> tuple[RefreshRequestRecord, ...]:
        """The refreshes that wait for a worker, longest waiting first."""
        query = select(RefreshRequestRow).order_by(
            RefreshRequestRow.requested_at, RefreshRequestRow.id
        )
        with self._session() as session:
            return tuple(request_record(row) for row in session.scalars(query))

    def get(self, refresh_id: str) -> RefreshRequestRecord | None:
        """One refresh that waits; None if none does under that id (it may be a run by now)."""
        with self._session() as session:
            row = session.get(RefreshRequestRow, refresh_id)
            return request_record(row) if row else None

    def still_open(self, ids: Collection[str]) -> frozenset[str]:
        """Those among some refreshes that wait or run."""
        waiting = select(RefreshRequestRow.id).where(RefreshRequestRow.id.in_(ids))
        running = select(RefreshRunRow.id).where(
            RefreshRunRow.id.in_(ids), RefreshRunRow.state == RunState.RUNNING.value
        )
        with self._session() as session:
            return frozenset(session.scalars(waiting)) | frozenset(session.scalars(running))

    def request(
        self,
        cache_id: str,
        *,
        why: str,
        origin: Origin = Origin.REQUEST,
        mode: str | None = None,
        requested_by: str | None = None,
        epoch: int | None = None,
        now: datetime | int | None = None,
    ) -> RefreshRequestRecord | None:
        """Ask for a refresh. While one waits for that cache, asking again gives that one; it takes
        the mode that is asked for now, unless it is FULL, which does what any other would.

        Args:
            cache_id: The cache's id.
            why: The reason, for the run's record.
            origin: Who asks.
            mode: The way; None takes the cache's own.
            requested_by: The principal who asks.
            epoch: The schedule's epoch that the asking is based on; None does not compare.
            now: This moment; None asks the database's clock.

        Returns:
            The request that waits now; None if the epoch has moved on: another scheduler asked.

        Raises:
            NotFoundError: There is no such cache.
        """
        with self._transaction() as session:
            live_cache(session, cache_id)
            if not move_epoch(session, cache_id, epoch):
                return None
            moment = self._moment(session, now)
            waiting = ask(session, cache_id, moment, origin.value, why, mode, requested_by)
            return request_record(waiting)

    def request_due(self, due: Sequence[DueRefresh]) -> dict[str, str]:
        """Ask for many refreshes by their schedules; of a cache for which one waits, for none.

        They wait in the order given. One whose schedule somebody else changes at this moment is
        left out: whoever looks again will find it.

        Args:
            due: What is due, longest due first.

        Returns:
            Cache id to the request's id, of those that were asked for here.
        """
        asked: dict[str, str] = {}
        for start in range(0, len(due), _PORTION):
            with self._transaction() as session:
                asked |= self._ask_for(session, due[start : start + _PORTION])
        return asked

    def _ask_for(self, session: Session, due: Sequence[DueRefresh]) -> dict[str, str]:
        ids = [d.cache_id for d in due]
        # nobody is waited for: who holds several schedules took them in another order
        schedules = session.execute(
            select(ScheduleRow.cache_id, ScheduleRow.epoch)
            .join(CacheRow, CacheRow.id == ScheduleRow.cache_id)
            .where(ScheduleRow.cache_id.in_(ids), CacheRow.dropped_at.is_(None))
            .with_for_update(skip_locked=True, of=ScheduleRow)
        )
        epochs = {cache_id: epoch for cache_id, epoch in schedules}
        mine = [d for d in due if epochs.get(d.cache_id) == d.epoch]
        held = [d.cache_id for d in mine]
        session.execute(
            update(ScheduleRow)
            .where(ScheduleRow.cache_id.in_(held))
            .values(epoch=ScheduleRow.epoch + 1)
            .execution_options(synchronize_session=False)
        )
        waiting = set(
            session.scalars(
                select(RefreshRequestRow.cache_id).where(RefreshRequestRow.cache_id.in_(held))
            )
        )
        moment = self._moment(session, None)
        requests = [
            {
                "id": new_id(),
                "cache_id": d.cache_id,
                "origin": Origin.SCHEDULE.value,
                "why": d.why,
                "requested_at": moment + timedelta(microseconds=place),
            }
            for place, d in enumerate(mine)
            if d.cache_id not in waiting
        ]
        if requests:
            session.execute(insert(RefreshRequestRow), requests)
        return {str(r["cache_id"]): str(r["id"]) for r in requests}

    def claim(
        self,
        holder: str,
        *,
        lease_seconds: float,
        most_running: int | None = None,
        leaving: Collection[str] = (),
        now: datetime | int | None = None,
    ) -> RefreshRunRecord | None:
        """Take the refresh that has waited longest, with the lease of its cache.

        Args:
            holder: Who takes it, for messages.
            lease_seconds: How long the lease lasts unless renewed.
            most_running: Take none while so many run, of all replicas together.
            leaving: Ids of caches whose refreshes are left to others.
            now: This moment; None asks the database's clock.

        Returns:
            The run, RUNNING; None if nothing waits that may start.
        """
        with self._transaction() as session:
            moment = self._moment(session, now)
            if most_running is not None and _running(session, moment) >= most_running:
                return None
            free = or_(LeaseRow.holder.is_(None), LeaseRow.expires_at <= moment)
            waiting = session.scalar(
                select(RefreshRequestRow)
                .join(LeaseRow, LeaseRow.cache_id == RefreshRequestRow.cache_id)
                .where(free, RefreshRequestRow.cache_id.not_in(leaving))
                .order_by(RefreshRequestRow.requested_at, RefreshRequestRow.id)
                .limit(1)
                # another replica that looks at the same time takes the next one
                .with_for_update(skip_locked=True, of=RefreshRequestRow)
            )
            if waiting is None:
                return None
            token = take_lease(session, waiting.cache_id, holder, moment, lease_seconds)
            if token is None:
                return None
            run = _run_of(session, waiting, RunState.RUNNING, holder, token, moment)
            session.add(run)
            session.execute(delete(RefreshRequestRow).where(RefreshRequestRow.id == waiting.id))
            session.flush()
            return run_record(run)

    def requeue_abandoned(self, *, now: datetime | int | None = None) -> int:
        """Ask again for the refreshes whose worker is gone: their lease is past its time.

        Each keeps its place among those that wait, unless it has lost its worker time and again.
        One that somebody cancelled is over instead.

        Args:
            now: This moment; None asks the database's clock.

        Returns:
            How many were asked for again.
        """
        with self._transaction() as session:
            moment = self._moment(session, now)
            abandoned = session.execute(
                select(RefreshRunRow.id, RefreshRunRow.holder)
                .select_from(LeaseRow)
                .join(RefreshRunRow, RefreshRunRow.cache_id == LeaseRow.cache_id)
                .join(CacheRow, CacheRow.id == LeaseRow.cache_id)
                .where(
                    RefreshRunRow.state == RunState.RUNNING.value,
                    RefreshRunRow.fencing_token == LeaseRow.token,
                    LeaseRow.holder.is_not(None),
                    LeaseRow.expires_at <= moment,
                    CacheRow.dropped_at.is_(None),
                )
                # the lease first, as in publishing: locks taken in two orders would deadlock
                .with_for_update(skip_locked=True, of=LeaseRow)
            ).all()
            again = [
                give_up(session, run_id, f"taken over from {gone}, whose lease ended", moment)
                for run_id, gone in abandoned
            ]
            session.flush()
            return sum(again)

    def hand_over(
        self,
        refresh_id: str,
        *,
        by: str,
        spark_lost: bool = False,
        because: str = "which stops",
        now: datetime | int | None = None,
    ) -> bool:
        """Give up a refresh that runs and ask for it again, so that another worker takes it.

        Its fencing token is void from here on: whatever its thread still writes is not published.

        Args:
            refresh_id: The run.
            by: Who gives it up, for the record.
            spark_lost: Whether that is because its Spark is gone, which may be the refresh's own
                doing, and not because its worker was told to stop.
            because: Why else, for the record.
            now: This moment; None asks the database's clock.

        Returns:
            True if it was asked for again; False if it was over already, or cancelled.
        """
        with self._transaction() as session:
            moment = self._moment(session, now)
            because = "whose Spark is gone" if spark_lost else because
            why = f"handed over by {by}, {because}"
            return give_up(session, refresh_id, why, moment, stopped=not spark_lost)

    def cancel(
        self, refresh_id: str, *, by: str, now: datetime | int | None = None
    ) -> RefreshRunRecord:
        """Cancel a refresh: one that waits is over at once, one that runs is told to stop.

        Args:
            refresh_id: The request's or run's id.
            by: Who cancels, for the record.
            now: This moment; None asks the database's clock.

        Returns:
            The run: CANCELLED, or RUNNING with `cancel_requested`.

        Raises:
            NotFoundError: There is no such refresh.
            ConflictError: It is over already.
        """
        with self._transaction() as session:
            waiting = session.get(RefreshRequestRow, refresh_id, with_for_update=True)
            if waiting is not None:
                moment = self._moment(session, now)
                run = _run_of(session, waiting, RunState.CANCELLED, "", 0, moment)
                run.finished_at = moment
                run.error = f"cancelled by {by} before it began"
                session.delete(waiting)
                session.add(run)
                session.flush()
                return run_record(run)
            found = session.get(RefreshRunRow, refresh_id, with_for_update=True)
            if found is None:
                raise no_refresh(refresh_id)
            if found.state != RunState.RUNNING.value:
                raise ConflictError(
                    ErrorCode.REFRESH_OVER,
                    f"the refresh {refresh_id} is {found.state} already: there is nothing to "
                    "cancel",
                )
            found.cancel_requested = True
            session.flush()
            return run_record(found)


def _running(session: Session, moment: datetime) -> int:
    held = select(func.count()).where(LeaseRow.holder.is_not(None), LeaseRow.expires_at > moment)
    return session.scalar(held) or 0


def _run_of(
    session: Session,
    request: RefreshRequestRow,
    state: RunState,
    holder: str,
    token: int,
    moment: datetime,
) -> RefreshRunRow:
    own = select(CacheRow.refresh_mode).where(CacheRow.id == request.cache_id)
    return RefreshRunRow(
        id=request.id,
        cache_id=request.cache_id,
        state=state.value,
        mode=request.mode or session.scalars(own).one(),
        reason=request.why,
        holder=holder,
        fencing_token=token,
        started_at=moment,
        stages=[],
        facts={} if request.mode is None else {ASKED: request.mode},
        origin=request.origin,
        requested_by=request.requested_by,
        requested_at=request.requested_at,
    )
