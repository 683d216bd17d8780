"""What the metastore knows of the base tables: where a name points, and which columns are there.

Noted down by whoever has a Spark at hand, for those who have none: the text door of the service.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cachemgr.metastore.models import BaseTableRow
from cachemgr.metastore.reads import Reads
from cachemgr.metastore.records import BaseTableRecord
from cachemgr.metastore.writes import Writes, bump_revision


class BaseTableReads(Reads):
    """Questions about base tables."""

    def base_tables(self) -> tuple[BaseTableRecord, ...]:
        """All base tables that were noted down, by location and name."""
        query = select(BaseTableRow).order_by(BaseTableRow.location, BaseTableRow.name)
        with self._session() as session:
            return tuple(_record(row) for row in session.scalars(query))


class BaseTableWrites(Writes):
    """Notes about base tables."""

    def note_tables(self, tables: Iterable[BaseTableRecord]) -> int:
        """Note base tables down as they were seen; an older version than the one noted is passed
        over, unless the table was created again.

        Args:
            tables: What was seen.

        Returns:
            How many are new or have other columns; only these are news to anybody.
        """
        with self._transaction() as session:
            # sorted: two refreshes that share tables must not wait for each other in a circle
            found = sorted(tables, key=lambda t: (t.location, t.name))
            news = sum([_note(session, table) for table in found])
            if news:
                bump_revision(session)
            return news


def _note(session: Session, table: BaseTableRecord) -> bool:
    key = (table.location, table.name)
    row = session.get(BaseTableRow, key, with_for_update=True)
    if row is None:
        try:
            with session.begin_nested():
                session.add(BaseTableRow(**asdict(table)))
            return True
        except IntegrityError:  # another refresh has just noted the same
            row = session.get_one(BaseTableRow, key, with_for_update=True)
    # a table put back from a copy stands at a version that was noted as an earlier one; its next
    # commit is a later one all the same
    known = row.version >= table.version and row.commit_timestamp_ms >= table.commit_timestamp_ms
    if row.table_id == table.table_id and known:
        return False
    news = (row.table_id, row.columns) != (table.table_id, table.columns)
    for name, value in asdict(table).items():
        setattr(row, name, value)
    session.flush()
    return news


def _record(row: BaseTableRow) -> BaseTableRecord:
    return BaseTableRecord(
        name=row.name,
        location=row.location,
        table_id=row.table_id,
        version=row.version,
        commit_timestamp_ms=row.commit_timestamp_ms,
        columns=row.columns,
    )
