"""Marks and declared joins follow a base table that was replaced: one at its place, or one that was
given its name."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cachemgr.base_state import TableAt
from cachemgr.metastore.models import JoinRow, RestrictedTableRow
from cachemgr.metastore.records import new_id


def follow_mark(session: Session, table: TableAt) -> bool:
    rows = session.scalars(select(RestrictedTableRow).order_by(RestrictedTableRow.restricted_at))
    marks = [
        row
        for row in rows
        if row.name.lower() == table.name.lower()
        or row.location == table.location
        or row.table_id == table.table_id
    ]
    known = {(row.location, row.table_id) for row in marks}
    if not marks or (table.location, table.table_id) in known:
        return False
    mark = RestrictedTableRow(
        id=new_id(),
        name=table.name,
        location=table.location,
        table_id=table.table_id,
        restricted_by=marks[0].restricted_by,
        restricted_at=marks[0].restricted_at,
    )
    try:
        with session.begin_nested():
            session.add(mark)
    except IntegrityError:  # another refresh has just marked it
        return False
    return True


def point_joins(session: Session, table: TableAt, left: Collection[str]) -> int:
    news = 0
    for row in session.scalars(select(JoinRow)):
        for side in ("left", "right"):
            then = getattr(row, side)
            if str(then["name"]).lower() != table.name.lower():
                continue
            moved = then["location"] != table.location
            if moved and then["location"] not in left:
                continue
            if moved or then["table_id"] != table.table_id:
                now = {**then, "location": table.location, "table_id": table.table_id}
                setattr(row, side, now)
                news += 1
    session.flush()
    return news
