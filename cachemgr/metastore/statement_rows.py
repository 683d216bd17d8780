"""Rows of statements: how they are read, held under a fencing token, ended and given up."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cachemgr.errors import ErrorCode, LeaseLostError, NotFoundError
from cachemgr.metastore.models import StatementRow
from cachemgr.metastore.statement_records import (
    StatementRecord,
    StatementRequest,
    commit_mark,
)
from cachemgr.vocabulary import StatementState


def statement_record(row: StatementRow) -> StatementRecord:
    """A row as a record."""
    asked = StatementRequest(
        principal=row.principal,
        request=row.request,
        text=row.text,
        timeout_seconds=row.timeout_seconds,
        keep_seconds=row.keep_seconds,
        key=row.idempotency_key,
        catalog=row.catalog,
        schema_name=row.schema_name,
        settings=row.settings,
        options=row.options,
    )
    return StatementRecord(
        id=row.id,
        asked=asked,
        state=StatementState(row.state),
        created_at=row.created_at,
        secret=row.secret,
        reads_only=row.reads_only,
        handed_over=row.handed_over,
        cancel_requested=row.cancel_requested,
        cancel_requested_by=row.cancel_requested_by,
        holder=row.holder,
        fencing_token=row.fencing_token,
        lease_until=row.lease_until,
        attempts=row.attempts,
        started_at=row.started_at,
        finished_at=row.finished_at,
        expires_at=row.expires_at,
        read_until=row.read_until,
        error_code=row.error_code,
        error=row.error,
        result=row.result,
        hits=tuple(row.hits),
    )


def one_at_a_time(session: Session, what: str) -> None:
    """Wait until no other transaction is at the same, and let others wait for this one: what they
    count is then not changed by each other.

    Args:
        session: The transaction.
        what: What is done; of all that is done under one name, one goes on at a time.
    """
    # SQLite has one writing transaction at a time anyway
    if session.get_bind().dialect.name == "postgresql":
        key = func.hashtextextended(f"cachemgr: {what}", 0)
        session.execute(select(func.pg_advisory_xact_lock(key)))


def locked(session: Session, statement_id: str) -> StatementRow:
    """The newest row of a statement, locked.

    Args:
        session: The transaction.
        statement_id: Its id.

    Raises:
        NotFoundError: There is none.
    """
    row = session.get(StatementRow, statement_id, with_for_update=True)
    if row is None:
        raise NotFoundError(
            ErrorCode.STATEMENT_NOT_FOUND,
            f"there is no statement {statement_id}: it never was, or was forgotten after its time; "
            "submit it again",
        )
    return row


def held(session: Session, statement_id: str, token: int) -> StatementRow:
    """The row of a statement that runs under a fencing token, locked.

    Args:
        session: The transaction.
        statement_id: Its id.
        token: The fencing token.

    Raises:
        LeaseLostError: It does not, or not any more.
    """
    row = session.get(StatementRow, statement_id, with_for_update=True)
    if row is None or row.state != StatementState.RUNNING.value or row.fencing_token != token:
        raise LeaseLostError(
            ErrorCode.LEASE_LOST,
            f"the statement {statement_id} does not run under the fencing token {token} any more: "
            "its lease ended and was taken away. Nothing was noted; drop what was written for it",
        )
    return row


def end(
    row: StatementRow,
    state: StatementState,
    moment: datetime,
    code: str | None = None,
    error: str | None = None,
) -> datetime:
    """End a statement; whoever held it holds it no more.

    Args:
        row: Its row, locked.
        state: How it ended.
        moment: This moment.
        code: The error's code.
        error: The error.

    Returns:
        When it ended: not before it began, since a clock that was set back for a while must not let
        its result expire before its time.
    """
    row.state = state.value
    row.finished_at = finished = max(moment, row.started_at or row.created_at)
    row.lease_until = None
    row.error_code, row.error = code, error
    return finished


def give_up(
    row: StatementRow, why: str, moment: datetime, *, most_attempts: int | None = None
) -> None:
    """Take a statement from whoever runs it: it waits again, unless it may have written something,
    was cancelled, or has lost its process too often.

    Args:
        row: Its row, locked, of a statement that runs.
        why: What happened, for the error.
        moment: This moment.
        most_attempts: Let it wait again only if it was taken less often; None always does.
    """
    if row.handed_over and row.reads_only is not True:
        # told as cancelled it would be sent again, and written twice
        end_unknown(row, f"{why} while Spark executed it", moment)
    elif row.cancel_requested:
        cancel(row, row.cancel_requested_by, moment)
    elif most_attempts is not None and row.attempts >= most_attempts:
        failed = f"{why}, as {row.attempts} that took it: it may be what ends them; submit another"
        end(row, StatementState.FAILED, moment, ErrorCode.OWNER_LOST.value, failed)
    else:
        row.state = StatementState.PENDING.value
        row.lease_until = row.started_at = None
        # what its names stand for may be something else when it is analysed again
        row.handed_over, row.reads_only, row.result = False, None, None


def end_unknown(row: StatementRow, why: str, moment: datetime) -> None:
    """End a statement of which nobody can tell whether it has written.

    Args:
        row: Its row, locked.
        why: What happened.
        moment: This moment.
    """
    table = (row.result or {}).get("table")
    history = "its table's history" if table is None else f"the history of {table}"
    unknown = (
        f"{why}: look whether {history} has a commit whose userMetadata is {commit_mark(row.id)!r};"
        " if so, all of it is written; if not, and that process is gone, nothing of it is"
    )
    end(row, StatementState.UNKNOWN, moment, ErrorCode.OWNER_LOST.value, unknown)


def cancel(row: StatementRow, by: str | None, moment: datetime) -> None:
    """End a statement as CANCELED.

    Args:
        row: Its row, locked.
        by: Who cancelled it.
        moment: This moment.
    """
    row.cancel_requested, row.cancel_requested_by = True, by
    error = f"cancelled by {by}"
    end(row, StatementState.CANCELED, moment, ErrorCode.STATEMENT_CANCELED.value, error)
