"""What is left of statements that are over: results that are kept for a while and read, and rows
that are forgotten later."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, func, or_, select

from cachemgr.errors import ConflictError, ErrorCode
from cachemgr.metastore.models import StatementRow
from cachemgr.metastore.records import as_utc
from cachemgr.metastore.statement_records import StatementRecord
from cachemgr.metastore.statement_rows import locked, statement_record
from cachemgr.metastore.transactions import Part
from cachemgr.vocabulary import StatementState

_PORTION: Final = 200
# A result is read on for at most so many times as long as it is kept.
_LONGEST_READ: Final = 2
# FINISHED ones expire first: their files would be left behind.
_FORGETTABLE: Final = tuple(
    s.value for s in StatementState if s.is_over and s is not StatementState.FINISHED
)


class StatementResults(Part):
    """Keep results for their readers, end their time, forget old statements."""

    def states(self, ids: Collection[str]) -> dict[str, StatementState]:
        """How some statements stand, by id; those that there are not are left out.

        A folder without a statement, or of one that is over and not FINISHED, is nobody's: it can
        be deleted if it was there before this was asked.

        Args:
            ids: Their ids.
        """
        wanted, found = list(ids), {}
        for start in range(0, len(wanted), _PORTION):
            some = StatementRow.id.in_(wanted[start : start + _PORTION])
            with self._session() as session:
                rows = session.execute(select(StatementRow.id, StatementRow.state).where(some))
                found.update({row.id: StatementState(row.state) for row in rows})
        return found

    def unfinished(self, ids: Collection[str]) -> frozenset[str]:
        """Those among some statements that wait or run."""
        return frozenset(each for each, state in self.states(ids).items() if not state.is_over)

    def discard(self, statement_id: str) -> StatementRecord:
        """End the time of a result now; its files go with the next look at them.

        Args:
            statement_id: The statement's id.

        Returns:
            The statement, EXPIRED.

        Raises:
            NotFoundError: There is no such statement.
            ConflictError: It has no result, not yet or not any more.
        """
        with self._transaction() as session:
            row = locked(session, statement_id)
            _check_readable(row, self._moment(session, None))
            row.state = StatementState.EXPIRED.value
            session.flush()
            return statement_record(row)

    def unsettled(
        self, since: datetime | int, *, most: int = _PORTION
    ) -> tuple[StatementRecord, ...]:
        """Statements of which nobody could tell whether they have written, and whose table is
        known, newest first.

        Args:
            since: Only those that ended after this moment.
            most: At most so many.
        """
        row = StatementRow
        query = (
            select(row)
            .where(row.state == StatementState.UNKNOWN.value, row.finished_at > as_utc(since))
            .order_by(row.finished_at.desc(), row.id)
            .limit(most)
        )
        with self._session() as session:
            found = [statement_record(each) for each in session.scalars(query)]
        return tuple(each for each in found if each.result is not None)

    def settle(
        self, statement_id: str, *, result: Mapping[str, Any], now: datetime | int | None = None
    ) -> StatementRecord:
        """Note that a statement has written after all, of which nobody could tell.

        Args:
            statement_id: The statement's id.
            result: As `Statements.finish` takes it.
            now: This moment; None asks the database's clock.

        Returns:
            The statement: FINISHED; as it was, if it is not UNKNOWN any more.

        Raises:
            NotFoundError: There is no such statement.
        """
        with self._transaction() as session:
            row = locked(session, statement_id)
            if row.state == StatementState.UNKNOWN.value:
                keep = timedelta(seconds=row.keep_seconds)
                row.state = StatementState.FINISHED.value
                row.error_code, row.error = None, None
                row.expires_at = self._moment(session, now) + keep
                row.result, row.bytes = dict(result), int(result["bytes"])
                session.flush()
            return statement_record(row)

    def bytes_of(self, principal: str) -> int:
        """How large the results are that are kept for a principal."""
        query = select(func.sum(StatementRow.bytes)).where(
            StatementRow.principal == principal,
            StatementRow.state == StatementState.FINISHED.value,
        )
        with self._session() as session:
            return int(session.scalar(query) or 0)

    def reading(
        self, statement_id: str, *, until: datetime, now: datetime | int | None = None
    ) -> StatementRecord:
        """Keep a result for somebody who reads it, beyond its time if need be; but not for longer
        than twice as long as it is kept otherwise.

        Args:
            statement_id: The statement's id.
            until: Until when; a later moment that was asked for before stays.
            now: This moment; None asks the database's clock.

        Returns:
            The statement; `read_until` says until when it is kept for readers.

        Raises:
            NotFoundError: There is no such statement.
            ConflictError: It has no result, not yet or not any more.
        """
        with self._transaction() as session:
            row = locked(session, statement_id)
            _check_readable(row, self._moment(session, now))
            assert row.finished_at is not None
            last = row.finished_at + timedelta(seconds=_LONGEST_READ * row.keep_seconds)
            wanted = as_utc(until)
            row.read_until = min(max(row.read_until or wanted, wanted), last)
            session.flush()
            return statement_record(row)

    def expire(
        self, now: datetime | int | None = None, *, most: int = _PORTION
    ) -> tuple[StatementRecord, ...]:
        """End the time of results that nobody reads any more.

        Args:
            now: This moment; None asks the database's clock.
            most: At most so many.

        Returns:
            The statements, EXPIRED: the caller deletes their files.
        """
        with self._transaction() as session:
            moment = self._moment(session, now)
            row = StatementRow
            found = session.scalars(
                select(row)
                .where(
                    row.state == StatementState.FINISHED.value,
                    row.expires_at <= moment,
                    or_(row.read_until.is_(None), row.read_until <= moment),
                )
                .order_by(row.expires_at, row.id)
                .limit(most)
                # whoever has one locked reads or expires it at this moment
                .with_for_update(skip_locked=True)
            ).all()
            for each in found:
                each.state = StatementState.EXPIRED.value
            session.flush()
            return tuple(statement_record(each) for each in found)

    def forget(
        self, before: datetime | int, *, most: int = _PORTION
    ) -> tuple[StatementRecord, ...]:
        """Delete statements that were over before a moment, oldest first, with their texts; not
        those whose result is kept. Their keys are free again.

        Args:
            before: The moment.
            most: At most so many.

        Returns:
            The statements as they were.
        """
        with self._transaction() as session:
            row = StatementRow
            found = session.scalars(
                select(row)
                .where(row.state.in_(_FORGETTABLE), row.finished_at < as_utc(before))
                .order_by(row.finished_at, row.id)
                .limit(most)
                .with_for_update(skip_locked=True)
            ).all()
            records = tuple(statement_record(each) for each in found)
            session.execute(
                delete(row)
                .where(row.id.in_([r.id for r in records]))
                .execution_options(synchronize_session=False)
            )
            return records


def _check_readable(row: StatementRow, moment: datetime) -> None:
    state = StatementState(row.state)
    kept_until = max(filter(None, (row.expires_at, row.read_until)), default=None)
    # it may be expired at any moment, though nobody has done so yet
    is_past = state is StatementState.FINISHED and kept_until is not None and kept_until <= moment
    if (is_past or state is StatementState.EXPIRED) and row.reads_only is False:
        raise ConflictError(
            ErrorCode.STATEMENT_EXPIRED,
            f"the rows of the statement {row.id} are not kept any more; what it wrote is written: "
            "to submit it again would write it again",
        )
    if is_past or state is StatementState.EXPIRED:
        raise ConflictError(
            ErrorCode.STATEMENT_EXPIRED,
            f"the result of the statement {row.id} is not kept any more: submit it again, under "
            "another key if it had one",
        )
    if state is not StatementState.FINISHED:
        raise ConflictError(
            ErrorCode.STATEMENT_NOT_FINISHED,
            f"the statement {row.id} is {state.value}: only a FINISHED one has a result to read",
        )
