"""Statements that the service runs for principals: submitted, taken, ended, given up.

Whoever takes one has it under a lease and a fresh fencing token. Nothing is noted for a token that
was taken away, so that no result is published by a process that was given up.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session, aliased

from cachemgr.errors import ConflictError, ErrorCode, TooManyError
from cachemgr.metastore.models import StatementRow
from cachemgr.metastore.records import new_id
from cachemgr.metastore.statement_records import Renewed, StatementRecord, StatementRequest
from cachemgr.metastore.statement_results import StatementResults
from cachemgr.metastore.statement_rows import (
    cancel,
    end,
    end_unknown,
    give_up,
    held,
    locked,
    one_at_a_time,
    statement_record,
)
from cachemgr.vocabulary import StatementState


class Statements(StatementResults):
    """Submit statements and run them under a lease; look them up, read and forget what is left of
    them."""

    def get(self, statement_id: str) -> StatementRecord | None:
        """One statement; None if there is none."""
        with self._session() as session:
            row = session.get(StatementRow, statement_id)
            return statement_record(row) if row else None

    def of(
        self,
        principal: str | None,
        *,
        state: StatementState | None = None,
        limit: int,
        before: tuple[datetime, str] | None = None,
    ) -> tuple[StatementRecord, ...]:
        """The statements of a principal, newest first.

        Args:
            principal: Whose; None for those of everybody.
            state: Only those in this state.
            limit: At most so many.
            before: `created_at` and `id` of the last one that was seen; None begins with the
                newest.
        """
        row = StatementRow
        query = select(row).order_by(row.created_at.desc(), row.id.desc()).limit(limit)
        if principal is not None:
            query = query.where(row.principal == principal)
        if state is not None:
            query = query.where(row.state == state.value)
        if before is not None:
            at, last = before
            older = or_(row.created_at < at, and_(row.created_at == at, row.id < last))
            query = query.where(older)
        with self._session() as session:
            return tuple(statement_record(found) for found in session.scalars(query))

    def submit(
        self, request: StatementRequest, *, most_waiting: int, now: datetime | int | None = None
    ) -> tuple[StatementRecord, bool]:
        """Have a statement wait to be run. One that was submitted under the same key is given
        again, however it stands.

        Args:
            request: What is asked.
            most_waiting: Take no more while so many of the principal's wait.
            now: This moment; None asks the database's clock.

        Returns:
            The statement, and whether it is new.

        Raises:
            ConflictError: The key was used for something else.
            TooManyError: Too many of the principal's wait.
        """
        with self._transaction() as session:
            one_at_a_time(session, f"submit a statement of {request.principal}")
            before = _under_its_key(session, request)
            if before is not None:
                return before, False
            waiting = session.scalar(
                select(func.count()).where(
                    StatementRow.principal == request.principal,
                    StatementRow.state == StatementState.PENDING.value,
                )
            )
            if (waiting or 0) >= most_waiting:
                raise TooManyError(
                    ErrorCode.TOO_MANY_STATEMENTS,
                    f"{waiting} statements of {request.principal} wait already, and at most "
                    f"{most_waiting} may: wait for some to run, or cancel them, then submit this "
                    "again",
                )
            row = _new_row(request, self._moment(session, now))
            session.add(row)
            session.flush()
            return statement_record(row), True

    def claim(
        self,
        holder: str,
        *,
        lease_seconds: float,
        most_running_each: int,
        leaving: Collection[str] = (),
        now: datetime | int | None = None,
    ) -> StatementRecord | None:
        """Take the statement that has waited longest, of a principal of whom not too many run.

        Args:
            holder: Who takes it, for messages.
            lease_seconds: How long the lease lasts unless renewed.
            most_running_each: Take none of a principal of whom so many run, on all replicas
                together.
            leaving: Ids of statements that are left to others.
            now: This moment; None asks the database's clock.

        Returns:
            The statement, RUNNING; None if none waits that may run.
        """
        running = aliased(StatementRow)
        busy = (
            select(running.principal)
            .where(running.state == StatementState.RUNNING.value)
            .group_by(running.principal)
            .having(func.count() >= most_running_each)
        )
        with self._transaction() as session:
            one_at_a_time(session, "claim a statement")
            row = session.scalar(
                select(StatementRow)
                .where(
                    StatementRow.state == StatementState.PENDING.value,
                    StatementRow.principal.not_in(busy),
                    StatementRow.id.not_in(leaving),
                )
                .order_by(StatementRow.created_at, StatementRow.id)
                .limit(1)
                # whoever has it locked cancels it
                .with_for_update(skip_locked=True, of=StatementRow)
            )
            if row is None:
                return None
            moment = self._moment(session, now)
            row.state = StatementState.RUNNING.value
            row.holder = holder
            row.fencing_token += 1
            row.attempts += 1
            row.started_at = max(moment, row.created_at)
            row.lease_until = moment + timedelta(seconds=lease_seconds)
            session.flush()
            return statement_record(row)

    def renew(
        self,
        statement_id: str,
        token: int,
        *,
        lease_seconds: float,
        now: datetime | int | None = None,
    ) -> Renewed:
        """Keep a statement for longer, and hear whether it goes on: `cancel_requested` and
        `is_timed_out` say otherwise, and leave it to the caller to end it.

        Args:
            statement_id: The statement's id.
            token: The fencing token.
            lease_seconds: How long from now.
            now: This moment; None asks the database's clock.

        Raises:
            LeaseLostError: It was taken away.
        """
        with self._transaction() as session:
            row = held(session, statement_id, token)
            moment = self._moment(session, now)
            row.lease_until = moment + timedelta(seconds=lease_seconds)
            session.flush()
            return Renewed(statement_record(row), moment)

    def analysed(self, statement_id: str, token: int, *, reads_only: bool) -> None:
        """Note what a statement does, before Spark executes anything of it.

        Args:
            statement_id: The statement's id.
            token: The fencing token.
            reads_only: Whether it changes nothing, so that it can be run again.

        Raises:
            LeaseLostError: It was taken away.
        """
        with self._transaction() as session:
            held(session, statement_id, token).reads_only = reads_only

    def handed_over(
        self, statement_id: str, token: int, *, into: Mapping[str, Any] | None = None
    ) -> None:
        """Note that Spark is about to execute a statement.

        Args:
            statement_id: The statement's id.
            token: The fencing token.
            into: What a statement writes to, for whoever looks later whether it has; stands in
                `result` until there is one.

        Raises:
            LeaseLostError: It was taken away.
        """
        with self._transaction() as session:
            row = held(session, statement_id, token)
            row.handed_over = True
            row.result = None if into is None else dict(into)

    def finish(
        self,
        statement_id: str,
        token: int,
        *,
        result: Mapping[str, Any],
        hits: Sequence[Any] = (),
        now: datetime | int | None = None,
    ) -> StatementRecord:
        """Publish the result of a statement.

        Args:
            statement_id: The statement's id.
            token: The fencing token.
            result: What its readers need; its `bytes` count for the principal's quota, and the rest
                is not read here.
            hits: The caches that answered it.
            now: This moment; None asks the database's clock.

        Returns:
            The statement, FINISHED, though somebody wanted it cancelled.

        Raises:
            LeaseLostError: It was taken away: nothing is published.
        """
        with self._transaction() as session:
            row = held(session, statement_id, token)
            finished = end(row, StatementState.FINISHED, self._moment(session, now))
            row.expires_at = finished + timedelta(seconds=row.keep_seconds)
            row.result, row.bytes = dict(result), int(result["bytes"])
            row.hits = list(hits)
            session.flush()
            return statement_record(row)

    def fail(
        self,
        statement_id: str,
        token: int,
        *,
        code: str,
        error: str,
        canceled: bool = False,
        now: datetime | int | None = None,
    ) -> StatementRecord:
        """End a statement that has no result.

        Args:
            statement_id: The statement's id.
            token: The fencing token.
            code: The error's code.
            error: What went wrong.
            canceled: Whether that is because somebody has cancelled it.
            now: This moment; None asks the database's clock.

        Returns:
            The statement, FAILED or CANCELED.

        Raises:
            LeaseLostError: It was taken away.
        """
        with self._transaction() as session:
            row = held(session, statement_id, token)
            state = StatementState.CANCELED if canceled else StatementState.FAILED
            end(row, state, self._moment(session, now), code, error)
            session.flush()
            return statement_record(row)

    def lose(
        self, statement_id: str, token: int, *, why: str, now: datetime | int | None = None
    ) -> StatementRecord:
        """End a statement of which nobody can tell whether it has written.

        Args:
            statement_id: The statement's id.
            token: The fencing token.
            why: What happened.
            now: This moment; None asks the database's clock.

        Returns:
            The statement, UNKNOWN: its `result` says what it wrote to.

        Raises:
            LeaseLostError: It was taken away.
        """
        with self._transaction() as session:
            row = held(session, statement_id, token)
            end_unknown(row, why, self._moment(session, now))
            session.flush()
            return statement_record(row)

    def release(
        self, statement_id: str, token: int, *, now: datetime | int | None = None
    ) -> StatementRecord:
        """Give a statement back, since the process that has it stops; its attempt does not count.

        Args:
            statement_id: The statement's id.
            token: The fencing token, which is void from here on.
            now: This moment; None asks the database's clock.

        Returns:
            The statement: PENDING; UNKNOWN if it may have written something; CANCELED if somebody
            wanted that.

        Raises:
            LeaseLostError: It was taken away before.
        """
        with self._transaction() as session:
            row = held(session, statement_id, token)
            row.attempts -= 1
            give_up(row, f"{row.holder}, which ran it, stopped", self._moment(session, now))
            session.flush()
            return statement_record(row)

    def cancel(
        self, statement_id: str, *, by: str, now: datetime | int | None = None
    ) -> StatementRecord:
        """Cancel a statement: one that waits is over at once, one that runs is told to stop.

        Args:
            statement_id: The statement's id.
            by: Who cancels; of several, the first is kept.
            now: This moment; None asks the database's clock.

        Returns:
            The statement: CANCELED, or RUNNING with `cancel_requested`.

        Raises:
            NotFoundError: There is no such statement.
            ConflictError: It is over already.
        """
        with self._transaction() as session:
            row = locked(session, statement_id)
            if StatementState(row.state).is_over:
                raise ConflictError(
                    ErrorCode.STATEMENT_OVER,
                    f"the statement {statement_id} is {row.state} already: there is nothing to "
                    "cancel",
                )
            if row.state == StatementState.PENDING.value:
                cancel(row, by, self._moment(session, now))
            elif not row.cancel_requested:
                row.cancel_requested, row.cancel_requested_by = True, by
            session.flush()
            return statement_record(row)

    def recover(
        self, *, most_attempts: int, now: datetime | int | None = None
    ) -> tuple[StatementRecord, ...]:
        """Take the statements whose lease has ended from their processes, which are gone.

        One that may have written something becomes UNKNOWN, one that somebody cancelled CANCELED;
        any other waits again, in its place, or is FAILED if it was taken too often.

        Args:
            most_attempts: How often a statement is taken at most.
            now: This moment; None asks the database's clock.

        Returns:
            Those statements, as they stand now.
        """
        with self._transaction() as session:
            moment = self._moment(session, now)
            lost = session.scalars(
                select(StatementRow)
                .where(
                    StatementRow.state == StatementState.RUNNING.value,
                    StatementRow.lease_until <= moment,
                )
                .order_by(StatementRow.created_at, StatementRow.id)
                # whoever has one locked renews or ends it, or recovers it at this moment
                .with_for_update(skip_locked=True)
            ).all()
            for row in lost:
                give_up(row, f"{row.holder}, which ran it, was lost", moment,
                        most_attempts=most_attempts)  # fmt: skip
            session.flush()
            return tuple(statement_record(row) for row in lost)


def _under_its_key(session: Session, request: StatementRequest) -> StatementRecord | None:
    if request.key is None:
        return None
    row = session.scalar(
        select(StatementRow).where(
            StatementRow.principal == request.principal,
            StatementRow.idempotency_key == request.key,
        )
    )
    if row is not None and row.request != request.request:
        raise ConflictError(
            ErrorCode.STATEMENT_KEY_USED,
            f"the key {request.key} was sent with another statement, {row.id}: send this one "
            "under a key of its own",
        )
    return None if row is None else statement_record(row)


def _new_row(request: StatementRequest, moment: datetime) -> StatementRow:
    return StatementRow(
        id=new_id(),
        principal=request.principal,
        idempotency_key=request.key,
        request=request.request,
        text=request.text,
        catalog=request.catalog,
        schema_name=request.schema_name,
        settings=dict(request.settings),
        options=dict(request.options),
        state=StatementState.PENDING.value,
        handed_over=False,
        cancel_requested=False,
        fencing_token=0,
        attempts=0,
        secret=secrets.token_hex(32),
        created_at=moment,
        timeout_seconds=request.timeout_seconds,
        keep_seconds=request.keep_seconds,
        hits=[],
    )
