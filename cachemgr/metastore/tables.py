"""What the metastore knows of the base tables: where a name points, which columns are there, and
which tables no cache answers for anyone not granted.

Names and columns are noted down by whoever has a Spark at hand, for those who have none: the text
door of the service.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cachemgr.base_state import TableAt
from cachemgr.errors import ErrorCode, NotFoundError
from cachemgr.metastore.following import follow_mark, point_joins
from cachemgr.metastore.models import BaseTableRow, RestrictedTableRow
from cachemgr.metastore.records import RestrictedTable, new_id
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import bump_revision


class Tables(Part):
    """Look base tables up; note them down, mark those that are restricted, follow replaced ones."""

    def noted(self, places: Collection[str] | None = None) -> tuple[TableAt, ...]:
        """Base tables noted down, by location and name; their commits are not kept.

        Args:
            places: The locations of those that are wanted; None for all.
        """
        query = select(BaseTableRow).order_by(BaseTableRow.location, BaseTableRow.name)
        if places is not None:
            query = query.where(BaseTableRow.location.in_(places))
        with self._session() as session:
            return tuple(_table(row) for row in session.scalars(query))

    def note(self, tables: Iterable[TableAt]) -> int:
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

    def follow(self, tables: Iterable[TableAt], left: Collection[str]) -> bool:
        """Extend the marks of restricted tables to those that have taken their names or places,
        and point the declared joins to the tables that their names stand for now.

        A mark is only ever added: what was restricted before stays so.

        Args:
            tables: Base tables as a definition's names stand for them now.
            left: Places that lost their name to one of these; a join of a table that lies there
                still, as far as is known, stays where it is.

        Returns:
            Whether that was news.
        """
        found = sorted(tables, key=lambda t: (t.location, t.name))
        with self._transaction() as session:
            news = sum([follow_mark(session, table) for table in found])
            news += sum([point_joins(session, table, left) for table in found])
            if news:
                bump_revision(session)
            return bool(news)

    def restricted(self) -> tuple[RestrictedTable, ...]:
        """All restricted base tables by name."""
        with self._session() as session:
            return restricted_tables(session)

    def restrict(
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

    def unrestrict(self, mark_id: str) -> RestrictedTable:
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
