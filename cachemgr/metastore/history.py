"""What of the past is kept: runs of refreshes and decisions about queries grow by the second, and
nobody reads most of them again."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from cachemgr.metastore.models import CacheRow, DecisionRow, PastGrantRow, RefreshRunRow
from cachemgr.metastore.records import as_utc
from cachemgr.metastore.transactions import Part
from cachemgr.vocabulary import RunState

# Of each cache, however old. A refresh looks back over the last ones to learn what the table's log
# may hold of them, and records beside the tables have as many.
RUNS_KEPT: Final = 20
# Rows of one transaction: what holds locks stays short.
_PORTION: Final = 1000


class HistoryWrites(Part):
    """Forget what is over."""

    def prune_runs(self, before: datetime | int, *, limit: int = _PORTION) -> int:
        """Delete refreshes that began before a moment, oldest first, with their snapshots.

        The last `RUNS_KEPT` of each cache stay, the one that it serves from, and what still runs.

        Args:
            before: The moment.
            limit: At most so many.

        Returns:
            How many were deleted; `limit` says that there may be more.
        """
        deleted = 0
        with self._transaction() as session:
            for cache_id, served, bound in _prunable(session, as_utc(before)):
                if deleted >= limit:
                    break
                found = (
                    select(RefreshRunRow.id)
                    .where(
                        RefreshRunRow.cache_id == cache_id,
                        RefreshRunRow.started_at < bound,
                        RefreshRunRow.state != RunState.RUNNING.value,
                        RefreshRunRow.id != (served or ""),
                    )
                    .order_by(RefreshRunRow.started_at)
                    .limit(limit - deleted)
                    # another replica that does the same is not waited for
                    .with_for_update(skip_locked=True)
                )
                deleted += _delete(session, RefreshRunRow, found)
        return deleted

    def prune_decisions(self, before: datetime | int, *, limit: int = _PORTION) -> int:
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
            return _delete(session, DecisionRow, found)


def _prunable(session: Session, before: datetime) -> list[tuple[str, str | None, datetime]]:
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


def _delete(session: Session, model: Any, found: Any) -> int:
    # read first: a subquery of a DELETE may be run again for rows that changed meanwhile
    ids = list(session.scalars(found))
    session.execute(
        delete(model).where(model.id.in_(ids)).execution_options(synchronize_session=False)
    )
    return len(ids)
