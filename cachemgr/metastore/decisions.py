"""The log of decisions about queries."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from cachemgr.metastore.history import PORTION, delete_rows
from cachemgr.metastore.models import DecisionRow, PastGrantRow
from cachemgr.metastore.record_rows import decision_record, decision_row
from cachemgr.metastore.records import DecisionRecord, as_utc
from cachemgr.metastore.transactions import Part
from cachemgr.vocabulary import Outcome


class Decisions(Part):
    """Look decisions up; log them, and forget old ones."""

    def latest(
        self,
        limit: int = 100,
        *,
        outcome: Outcome | None = None,
        session_id: str | None = None,
        query_hash: str | None = None,
        cache: str | None = None,
        since: datetime | int | None = None,
    ) -> tuple[DecisionRecord, ...]:
        """The latest decisions, newest first.

        Args:
            limit: At most so many.
            outcome: Only these.
            session_id: Only this session's.
            query_hash: Only about this query.
            cache: Only those that name this cache.
            since: Only those made at or after this moment.

        Returns:
            The decisions.
        """
        query = select(DecisionRow).order_by(DecisionRow.at.desc(), DecisionRow.id.desc())
        if outcome is not None:
            query = query.where(DecisionRow.outcome == outcome.value)
        if session_id is not None:
            query = query.where(DecisionRow.session_id == session_id)
        if query_hash is not None:
            query = query.where(DecisionRow.query_hash == query_hash)
        if since is not None:
            query = query.where(DecisionRow.at >= as_utc(since))
        found: list[DecisionRecord] = []
        with self._session() as session:
            for row in session.scalars(query.execution_options(yield_per=500)):
                if len(found) >= limit:
                    break
                if cache is None or cache in row.caches:
                    found.append(decision_record(row))
        return tuple(found)

    def log(self, batch: Iterable[DecisionRecord], *, batch_id: str | None = None) -> bool:
        """Store decisions; sessions are not told, since these change nothing for them.

        Args:
            batch: The decisions.
            batch_id: Under which the very same batch may be sent again, at most 64 characters.

        Returns:
            False if a batch of that id was stored before: nothing is stored then.
        """
        rows = [decision_row(record) for record in batch]
        if not rows:
            return True
        for position, row in enumerate(rows if batch_id is not None else ()):
            row.batch, row.position = batch_id, position
        with self._transaction() as session:
            known = select(DecisionRow.id).where(DecisionRow.batch == batch_id).limit(1)
            if batch_id is not None and session.scalar(known) is not None:
                return False
            try:
                with session.begin_nested():
                    session.add_all(rows)
            except IntegrityError:  # sent twice at once, and the other was quicker
                return False
            return True

    def prune(self, before: datetime | int, *, limit: int = PORTION) -> int:
        """Delete decisions made before a moment, oldest first.

        Args:
            before: The moment.
            limit: At most so many.

        Returns:
            How many were deleted; `limit` says that there may be more.
        """
        found = (
            select(DecisionRow.id)
            .where(DecisionRow.at < as_utc(before))
            .order_by(DecisionRow.at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        with self._transaction() as session:
            # no decision of that time can come any more
            session.execute(delete(PastGrantRow).where(PastGrantRow.until < as_utc(before)))
            return delete_rows(session, DecisionRow, found)
