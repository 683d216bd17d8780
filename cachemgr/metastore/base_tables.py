"""What the metastore knows of the base tables: where a name points, and which columns are there.

Noted down by whoever has a Spark at hand, for those who have none: the text door of the service.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cachemgr.base_state import TableAt
from cachemgr.metastore.models import BaseTableRow
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import bump_revision


class BaseTableReads(Part):
    """Questions about base tables."""

    def base_tables(self, places: Collection[str] | None = None) -> tuple[TableAt, ...]:
        """Base tables noted down, by location and name; their commits are not kept.

        Args:
            places: The locations of those that are wanted; None for all.
        """
        query = select(BaseTableRow).order_by(BaseTableRow.location, BaseTableRow.name)
        if places is not None:
            query = query.where(BaseTableRow.location.in_(places))
        with self._session() as session:
            return tuple(_table(row) for row in session.scalars(query))


class BaseTableWrites(Part):
    """Notes about base tables."""

    def note_tables(self, tables: Iterable[TableAt]) -> int:
        """Note base tables down as they were seen; an older version than the one noted is passed
        over, unless the table was created again.

        Args:
            tables: What was seen, with columns.

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


def _note(session: Session, table: TableAt) -> bool:
    assert table.timestamp_ms is not None, "only a query's own versions have none"
    key, values = (table.location, table.name), _values(table)
    row = session.get(BaseTableRow, key, with_for_update=True)
    if row is None:
        try:
            with session.begin_nested():
                session.add(BaseTableRow(**values))
            return True
        except IntegrityError:  # another refresh has just noted the same
            row = session.get_one(BaseTableRow, key, with_for_update=True)
    # a table put back from a copy stands at a version that was noted as an earlier one; its next
    # commit is a later one all the same
    known = row.version >= table.version and row.commit_timestamp_ms >= table.timestamp_ms
    if row.table_id == table.table_id and known:
        return False
    news = (row.table_id, row.columns) != (table.table_id, table.columns)
    for name, value in values.items():
        setattr(row, name, value)
    session.flush()
    return news


def _values(table: TableAt) -> dict[str, Any]:
    """The columns of a table's row."""
    return {
        "location": table.location,
        "name": table.name,
        "table_id": table.table_id,
        "version": table.version,
        "commit_timestamp_ms": table.timestamp_ms,
        "columns": table.columns,
    }


def _table(row: BaseTableRow) -> TableAt:
    return TableAt(
        row.name,
        row.location,
        row.table_id,
        row.version,
        row.commit_timestamp_ms,
        columns=row.columns,
    )
