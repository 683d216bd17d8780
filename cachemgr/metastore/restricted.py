"""Base tables that no cache answers for anyone not granted."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from cachemgr.errors import ErrorCode, NotFoundError
from cachemgr.metastore.models import RestrictedTableRow
from cachemgr.metastore.records import RestrictedTable, new_id
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import bump_revision


class RestrictedReads(Part):
    """Look marks up."""

    def restricted_tables(self) -> tuple[RestrictedTable, ...]:
        """All restricted base tables by name."""
        with self._session() as session:
            return restricted_tables(session)


class RestrictedWrites(Part):
    """Mark tables; sessions hear of it by the revision, like of every change."""

    def restrict_table(
        self, name: str, location: str, table_id: str | None, *, by: str
    ) -> RestrictedTable:
        """Mark a base table as restricted.

        Args:
            name: What it is called, to be shown.
            location: Its place, spelled as the caches' plans spell it.
            table_id: Its Delta table id, if known.
            by: Who marks it.

        Returns:
            The mark; a table that was marked before keeps its mark and gets the new name.
        """
        with self._transaction() as session:
            bump_revision(session)
            row = session.scalar(
                select(RestrictedTableRow).where(
                    RestrictedTableRow.location == location,
                    RestrictedTableRow.table_id == table_id,
                )
            )
            if row is None:
                row = RestrictedTableRow(
                    id=new_id(),
                    location=location,
                    table_id=table_id,
                    restricted_by=by,
                    restricted_at=self._moment(session, None),
                )
                session.add(row)
            row.name = name
            session.flush()
            return _record(row)

    def unrestrict_table(self, mark_id: str) -> RestrictedTable:
        """Take a mark away.

        Args:
            mark_id: Its id.

        Returns:
            The mark as it was.

        Raises:
            NotFoundError: There is none of that id.
        """
        with self._transaction() as session:
            bump_revision(session)
            row = session.get(RestrictedTableRow, mark_id)
            if row is None:
                raise NotFoundError(
                    ErrorCode.TABLE_NOT_RESTRICTED,
                    f"there is no restricted base table with the id {mark_id}: "
                    "SHOW RESTRICTED BASE TABLES lists those that are",
                )
            record = _record(row)
            session.delete(row)
            return record


def restricted_tables(session: Session) -> tuple[RestrictedTable, ...]:
    """All restricted base tables by name, in a transaction that is open."""
    rows = session.scalars(
        select(RestrictedTableRow).order_by(RestrictedTableRow.name, RestrictedTableRow.id)
    )
    return tuple(_record(row) for row in rows)


def _record(row: RestrictedTableRow) -> RestrictedTable:
    return RestrictedTable(
        row.id, row.name, row.location, row.table_id, row.restricted_by, row.restricted_at
    )
