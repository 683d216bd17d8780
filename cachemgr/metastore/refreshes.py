"""Refresh runs, their leases and fencing tokens, commit numbers, and publishing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, delete, func, not_, select, update
from sqlalchemy.orm import Session

from cachemgr.errors import ConflictError, ErrorCode, LeaseLostError
from cachemgr.metastore.history import PORTION, delete_rows, prunable_runs
from cachemgr.metastore.leases import take_lease, touch_lease, with_losses
from cachemgr.metastore.models import CacheRow, GroupingSetRow, LeaseRow, RefreshRunRow
from cachemgr.metastore.record_rows import (
    cache_values,
    lease_record,
    run_record,
    set_rows,
    table_rows,
)
from cachemgr.metastore.records import (
    REASON_PARTS,
    Followed,
    LeaseRecord,
    Publication,
    RefreshRunRecord,
    as_utc,
    new_id,
)
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import bump_revision, change_schedule, live_cache, no_refresh
from cachemgr.vocabulary import RunState
from matcher.model.codec import PLAN_VERSION

_RUN_FIELDS = frozenset(
    {"mode", "reason", "commit_number", "parent_version", "stages", "plan", "facts"}
)

_ENDED = tuple(s.value for s in (RunState.PUBLISHED, RunState.UNCHANGED, RunState.FAILED))


class Refreshes(Part):
    """Start, follow and end refreshes, one at a time for each cache; look them up."""

    def get(self, refresh_id: str) -> RefreshRunRecord | None:
        """One refresh run; None if there is none."""
        with self._session() as session:
            row = session.get(RefreshRunRow, refresh_id)
            runs = [run_record(row)] if row else []
            return next(iter(with_losses(session, runs)), None)

    def of(
        self, cache_id: str, limit: int = 100, *, state: RunState | None = None
    ) -> tuple[RefreshRunRecord, ...]:
        """The refresh runs of a cache, newest first.

        Args:
            cache_id: The cache's id.
            limit: At most so many.
            state: Only those in this state.
        """
        wanted = [RefreshRunRow.cache_id == cache_id]
        if state is not None:
            wanted.append(RefreshRunRow.state == state.value)
        query = (
            select(RefreshRunRow)
            .where(*wanted)
            .order_by(RefreshRunRow.started_at.desc(), RefreshRunRow.fencing_token.desc())
            .limit(limit)
        )
        with self._session() as session:
            runs = [run_record(row) for row in session.scalars(query)]
            return with_losses(session, runs)

    def lease(self, cache_id: str) -> LeaseRecord | None:
        """Who refreshes a cache now; None if there is no such cache."""
        with self._session() as session:
            row = session.get(LeaseRow, cache_id)
            return lease_record(row) if row else None

    def cancel_requested(self, refresh_id: str) -> bool:
        """Whether somebody has cancelled a refresh that runs."""
        asked = select(RefreshRunRow.cancel_requested).where(RefreshRunRow.id == refresh_id)
        with self._session() as session:
            return bool(session.scalar(asked))

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

    def start(
        self,
        cache_id: str,
        holder: str,
        *,
        now: datetime | int | None,
        lease_seconds: float,
        mode: str,
        reason: str,
    ) -> RefreshRunRecord:
        """Take the lease of a cache and open a run.

        An expired lease is taken over; the run that held it becomes SUPERSEDED.

        Args:
            cache_id: The cache's id.
            holder: Who refreshes, for messages.
            now: This moment; None asks the database's clock, as replicas must, whose own clocks
                differ.
            lease_seconds: How long the lease lasts unless renewed.
            mode: The way it is refreshed.
            reason: Why this way.

        Returns:
            The run, RUNNING, with its fencing token.

        Raises:
            NotFoundError: There is no such cache.
            ConflictError: `REFRESH_RUNNING`, another refresh holds the lease.
        """
        with self._transaction() as session:
            moment = self._moment(session, now)
            cache = live_cache(session, cache_id)
            token = take_lease(session, cache_id, holder, moment, lease_seconds)
            if token is None:
                held = session.get(LeaseRow, cache_id)
                by = f"by {held.holder} until {held.expires_at}" if held else "by someone"
                raise ConflictError(
                    ErrorCode.REFRESH_RUNNING,
                    f"the relational cache {cache.namespace}.{cache.name} is being refreshed {by}: "
                    "wait for it, or until its lease ends",
                )
            run = RefreshRunRow(
                id=new_id(),
                cache_id=cache_id,
                state=RunState.RUNNING.value,
                mode=mode,
                reason=reason,
                holder=holder,
                fencing_token=token,
                started_at=moment,
                stages=[],
                facts={},
            )
            session.add(run)
            session.flush()
            return run_record(run)

    def update(self, refresh_id: str, token: int, **changed: Any) -> RefreshRunRecord:
        """Note down what became known while a refresh runs.

        Args:
            refresh_id: The run.
            token: Its fencing token.
            changed: `mode`, `reason`, `commit_number`, `parent_version`, `stages` or `plan`; or
                `facts`, which come to those that it has.

        Returns:
            The run as stored.

        Raises:
            LeaseLostError: The run does not hold its lease any more.
            TypeError: A field cannot be set.
        """
        wrong = sorted(set(changed) - _RUN_FIELDS)
        if wrong:
            raise TypeError(f"a run's {', '.join(wrong)} cannot be set; {sorted(_RUN_FIELDS)} can")
        with self._transaction() as session:
            run = _held_run(session, refresh_id, token)
            for name, value in changed.items():
                if name == "facts":
                    value = {**run.facts, **value}
                setattr(run, name, list(value) if name == "stages" else value)
            session.flush()
            return run_record(run)

    def publish(
        self,
        refresh_id: str,
        token: int,
        publication: Publication,
        *,
        now: datetime | int | None,
    ) -> RefreshRunRecord:
        """Make a refresh the one that its cache serves from, and give the lease back.

        Args:
            refresh_id: The run.
            token: Its fencing token.
            publication: What it wrote and read.
            now: This moment.

        Returns:
            The run, PUBLISHED; UNCHANGED if the publication says so.

        Raises:
            LeaseLostError: Its lease was taken over or the cache dropped; all is as before.
        """
        with self._transaction() as session:
            moment = self._moment(session, now)
            # The counter first, as in `Caches.drop`: locks taken in two orders would deadlock.
            revision = bump_revision(session)
            run = _held_run(session, refresh_id, token)
            published = session.scalar(
                update(CacheRow)
                .where(CacheRow.id == run.cache_id, CacheRow.dropped_at.is_(None))
                .values(
                    published_refresh_id=run.id,
                    revision=revision,
                    damaged=None,
                    **({} if publication.location is None else {"location": publication.location}),
                    **_followed(publication.followed),
                )
                .returning(CacheRow.id)
                .execution_options(synchronize_session=False)
            )
            if published is None:
                raise _lost(run.id)
            state = RunState.UNCHANGED if publication.unchanged else RunState.PUBLISHED
            run.state = state.value
            _settle(session, run.cache_id)
            run.finished_at = moment
            run.cache_version = publication.cache_version
            run.rows = publication.rows
            run.bytes = publication.bytes
            run.facts = _facts(run, publication)
            if publication.plan is not None:
                run.plan = dict(publication.plan)
            session.execute(delete(GroupingSetRow).where(GroupingSetRow.cache_id == run.cache_id))
            session.add_all(set_rows(run.cache_id, publication.sets))
            session.add_all(table_rows(run.id, publication.tables))
            _release(session, run.cache_id, token)
            session.flush()
            return run_record(run)

    def finish_unchanged(
        self, refresh_id: str, token: int, *, now: datetime | int | None
    ) -> RefreshRunRecord:
        """End a refresh that found nothing to do, and give the lease back.

        Args:
            refresh_id: The run.
            token: Its fencing token.
            now: This moment.

        Returns:
            The run, UNCHANGED.

        Raises:
            LeaseLostError: Its lease was taken over or the cache dropped.
        """
        with self._transaction() as session:
            run = _held_run(session, refresh_id, token)
            run.state = RunState.UNCHANGED.value
            _settle(session, run.cache_id)
            run.finished_at = self._moment(session, now)
            _release(session, run.cache_id, token)
            session.flush()
            return run_record(run)

    def fail(
        self,
        refresh_id: str,
        token: int,
        error: str,
        *,
        now: datetime | int | None,
        cancelled: bool = False,
    ) -> RefreshRunRecord:
        """End a refresh that failed; what was published before keeps serving.

        Never raises over a lost lease: the failure that is being reported matters more.

        Args:
            refresh_id: The run.
            token: Its fencing token.
            error: What happened.
            now: This moment.
            cancelled: Somebody stopped its jobs, as by Ctrl-C.

        Returns:
            The run: FAILED, CANCELLED if somebody wanted that, or as it ended before.

        Raises:
            NotFoundError: There is no such run.
        """
        with self._transaction() as session:
            found = session.get(RefreshRunRow, refresh_id)
            if found is None:
                raise no_refresh(refresh_id)
            held = _release(session, found.cache_id, token)
            run = _run(session, refresh_id)
            if run.state == RunState.RUNNING.value and run.fencing_token == token:
                run.state = _ended(held, cancelled or run.cancel_requested).value
                run.finished_at = self._moment(session, now)
                run.error = error
            session.flush()
            return run_record(run)

    def renew_lease(
        self, cache_id: str, token: int, *, now: datetime | int | None, lease_seconds: float
    ) -> LeaseRecord:
        """Keep a lease for longer.

        Args:
            cache_id: The cache's id.
            token: The fencing token.
            now: This moment.
            lease_seconds: How long from now.

        Returns:
            The lease.

        Raises:
            LeaseLostError: It was taken over.
        """
        with self._transaction() as session:
            expires = self._moment(session, now) + timedelta(seconds=lease_seconds)
            if not touch_lease(session, cache_id, token, expires_at=expires):
                raise _lost(f"of the cache {cache_id}")
            row = session.get(LeaseRow, cache_id, populate_existing=True)
            if row is None:
                raise _lost(f"of the cache {cache_id}")
            return lease_record(row)

    def prune(self, before: datetime | int, *, limit: int = PORTION) -> int:
        """Delete refreshes that began before a moment, oldest first, with their snapshots.

        The last `RUNS_KEPT` of each cache stay, the one that it serves from, and what still runs.

        Args:
            before: The moment.
            limit: At most so many.

        Returns:
            How many were deleted; `limit` says that there may be more.
        """
        deleted = 0
        with self._transaction() as session:
            for cache_id, served, bound in prunable_runs(session, as_utc(before)):
                if deleted >= limit:
                    break
                found = (
                    select(RefreshRunRow.id)
                    .where(
                        RefreshRunRow.cache_id == cache_id,
                        RefreshRunRow.started_at < bound,
                        RefreshRunRow.state != RunState.RUNNING.value,
                        RefreshRunRow.id != (served or ""),
                    )
                    .order_by(RefreshRunRow.started_at)
                    .limit(limit - deleted)
                    # another replica that does the same is not waited for
                    .with_for_update(skip_locked=True)
                )
                deleted += delete_rows(session, RefreshRunRow, found)
        return deleted


def _followed(followed: Followed | None) -> dict[str, Any]:
    if followed is None:
        return {}
    columns = cache_values({"columns": followed.columns})
    return {**columns, "plan": dict(followed.plan), "plan_version": PLAN_VERSION}


def _settle(session: Session, cache_id: str) -> None:
    """A refresh succeeded: failures before it do not count, and what was behind is not any more."""
    change_schedule(session, cache_id, failures=0, retry_at=None, behind_since=None)


def _release(session: Session, cache_id: str, token: int) -> bool:
    return touch_lease(session, cache_id, token, holder=None, expires_at=None)


def _facts(run: RefreshRunRow, publication: Publication) -> dict[str, Any]:
    """What is known of a run that publishes: its reason is its own, whatever snapshot the other
    facts were taken over from."""
    own = {name: value for name, value in run.facts.items() if name == REASON_PARTS}
    others = {k: v for k, v in (publication.facts or {}).items() if k != REASON_PARTS}
    return others | own


def _held_run(session: Session, refresh_id: str, token: int) -> RefreshRunRow:
    """The run, if its token holds the lease; the lease's row stays locked for the transaction.

    A lease that is past its time and not yet taken over still holds: taking it over moves the
    token, and the update here and that one exclude each other.
    """
    found = session.get(RefreshRunRow, refresh_id)
    if found is None:
        raise no_refresh(refresh_id)
    if not touch_lease(session, found.cache_id, token):
        raise _lost(refresh_id)
    # Read again under the lock: the look above was not part of it.
    run = _run(session, refresh_id)
    if run.state != RunState.RUNNING.value or run.fencing_token != token:
        raise _lost(refresh_id)
    return run


def _run(session: Session, refresh_id: str) -> RefreshRunRow:
    run = session.get(RefreshRunRow, refresh_id, populate_existing=True)
    if run is None:
        raise no_refresh(refresh_id)
    return run


def _ended(held: bool, cancelled: bool) -> RunState:
    if cancelled:
        return RunState.CANCELLED
    return RunState.FAILED if held else RunState.SUPERSEDED


def _lost(what: str) -> LeaseLostError:
    return LeaseLostError(
        ErrorCode.LEASE_LOST,
        f"the refresh {what} does not hold its lease any more (it took too long, or the cache "
        "was dropped): nothing was published, nothing changes for queries; refresh again",
    )
