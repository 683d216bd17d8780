"""What of the past is kept: runs of refreshes and decisions about queries grow by the second, and
nobody reads most of them again."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from cachemgr.metastore.models import CacheRow, RefreshRunRow

# Of each cache, however old. A refresh looks back over the last ones to learn what the table's log
# may hold of them, and records beside the tables have as many.
RUNS_KEPT: Final = 20
# Rows of one transaction: what holds locks stays short.
PORTION: Final = 1000


def prunable_runs(session: Session, before: datetime) -> list[tuple[str, str | None, datetime]]:
    """The caches with runs to delete, the run that each serves from, and what is older than all
    that it keeps. Steps through an index for each cache; the runs themselves are not scanned."""
    mine = RefreshRunRow.cache_id == CacheRow.id
    kept = (
        select(RefreshRunRow.started_at)
        .where(mine)
        .order_by(RefreshRunRow.started_at.desc())
        .offset(RUNS_KEPT - 1)
        .limit(1)
        .scalar_subquery()
    )
    oldest = select(func.min(RefreshRunRow.started_at)).where(mine).scalar_subquery()
    bounds = select(CacheRow.id, CacheRow.published_refresh_id, kept, oldest).order_by(CacheRow.id)
    return [
        (cache_id, served, min(last, before))
        for cache_id, served, last, first in session.execute(bounds)
        if last is not None and first < min(last, before)
    ]


def delete_rows(session: Session, model: Any, found: Any) -> int:
    # read first: a subquery of a DELETE may be run again for rows that changed meanwhile
    ids = list(session.scalars(found))
    session.execute(
        delete(model).where(model.id.in_(ids)).execution_options(synchronize_session=False)
    )
    return len(ids)
