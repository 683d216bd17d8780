"""The declared record-preserving joins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cachemgr.base_state import BaseState
from cachemgr.errors import AlreadyExistsError, ErrorCode, NotFoundError
from cachemgr.metastore.models import JoinRow
from cachemgr.metastore.record_rows import join_record, join_row
from cachemgr.metastore.records import JoinRecord, as_utc, name_key
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import bump_revision
from cachemgr.vocabulary import JoinState


class Joins(Part):
    """Look joins up; declare them, note down what a validation found, drop them."""

    def all(self) -> tuple[JoinRecord, ...]:
        """All record-preserving joins by name."""
        with self._session() as session:
            return all_joins(session)

    def named(self, name: str) -> JoinRecord | None:
        """The record-preserving join of a name, whatever its case; None if there is none."""
        with self._session() as session:
            row = session.scalar(select(JoinRow).where(JoinRow.name_key == name_key(name)))
            return join_record(row) if row else None

    def create(self, record: JoinRecord, *, now: datetime | int) -> JoinRecord:
        """Store a record-preserving join.

        Args:
            record: The join.
            now: The moment of its declaration.

        Returns:
            The join as stored.

        Raises:
            AlreadyExistsError: There is one of that name.
        """
        with self._transaction() as session:
            bump_revision(session)
            row = join_row(record, as_utc(now))
            session.add(row)
            try:
                session.flush()
            except IntegrityError as error:
                raise AlreadyExistsError(
                    ErrorCode.JOIN_EXISTS,
                    f"the record-preserving join {record.name} exists already: "
                    "use IF NOT EXISTS, drop it first, or take another name",
                ) from error
            return join_record(row)

    def update_state(
        self,
        join_id: str,
        state: JoinState,
        *,
        message: str | None = None,
        validated_versions: Mapping[str, BaseState] | None = None,
        validated_under: Mapping[str, str] | None = None,
        validated_at: datetime | int | None = None,
        validated: bool | None = None,
    ) -> JoinRecord | None:
        """Note down what a validation found, of the very declaration that was validated.

        Args:
            join_id: The join's id. Not its name: while a validation ran, another join may have been
                declared under it.
            state: What was found.
            message: In words, with an example key if it is broken.
            validated_versions: Location to the state that was read; None keeps.
            validated_under: The settings under which it was read; None keeps.
            validated_at: When; None keeps.
            validated: Whether the join is to be validated from now on; None keeps.

        Returns:
            The join as stored; None if it was dropped meanwhile.
        """
        with self._transaction() as session:
            bump_revision(session)
            row = session.get(JoinRow, join_id)
            if row is None:
                return None
            row.state = state.value
            row.message = message
            if validated_versions is not None:
                row.validated_versions = {p: list(v) for p, v in validated_versions.items()}
            if validated_under is not None:
                row.validated_under = dict(validated_under)
            if validated_at is not None:
                row.validated_at = as_utc(validated_at)
            if validated is not None:
                row.validated = validated
            session.flush()
            return join_record(row)

    def drop(self, name: str) -> None:
        """Forget a record-preserving join.

        Args:
            name: The join.

        Raises:
            NotFoundError: There is no such join.
        """
        with self._transaction() as session:
            bump_revision(session)
            session.delete(_join(session, name))


def _join(session: Session, name: str) -> JoinRow:
    row = session.scalar(select(JoinRow).where(JoinRow.name_key == name_key(name)))
    if row is None:
        raise NotFoundError(
            ErrorCode.JOIN_NOT_FOUND,
            f"there is no record-preserving join {name}: "
            "SHOW RECORD PRESERVING JOINS lists those that exist",
        )
    return row


def all_joins(session: Session) -> tuple[JoinRecord, ...]:
    """All record-preserving joins by name."""
    rows = session.scalars(select(JoinRow).order_by(JoinRow.name_key))
    return tuple(join_record(row) for row in rows)
