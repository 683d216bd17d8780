"""What the parts of the metastore do in each other's transactions when they write: move the
revision, change a schedule, look a live cache up."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import update
from sqlalchemy.orm import Session

from cachemgr.errors import ErrorCode, MetastoreError, NotFoundError
from cachemgr.metastore.models import CacheRow, RegistryRevisionRow, ScheduleRow
from cachemgr.metastore.transactions import CHANGED

# Where a metastore goes on from a copy, its numbers go on so far above: some may have been given
# out since, and one used twice would let a writer of the lost metastore pass for one of the new.
GAP: Final = 1000


def bump_revision(session: Session, cache_id: str | None = None) -> int:
    """Move the counter that sessions poll, in the transaction of the change itself.

    The row stays locked to the end of the transaction, so revisions become visible in their
    order: a session that has seen one has seen all changes up to it.

    Args:
        session: The transaction.
        cache_id: The cache that changed, if it was one.

    Returns:
        The new revision.

    Raises:
        MetastoreError: The counter's row is gone.
    """
    revision = session.scalar(
        update(RegistryRevisionRow)
        .values(revision=RegistryRevisionRow.revision + 1)
        .returning(RegistryRevisionRow.revision)
        .execution_options(synchronize_session=False)
    )
    if revision is None:
        raise MetastoreError(
            ErrorCode.METASTORE_DAMAGED,
            "the table registry_revision is empty: restore the metastore from a backup",
        )
    session.info[CHANGED] = True
    if cache_id is not None:
        session.execute(
            update(CacheRow)
            .where(CacheRow.id == cache_id)
            .values(revision=revision)
            .execution_options(synchronize_session=False)
        )
    return revision


def change_schedule(session: Session, cache_id: str, **values: Any) -> None:
    """Set what the scheduler remembers of a cache.

    Args:
        session: The transaction.
        cache_id: The cache's id.
        values: Columns of `schedules`.
    """
    session.execute(
        update(ScheduleRow)
        .where(ScheduleRow.cache_id == cache_id)
        .values(values)
        .execution_options(synchronize_session=False)
    )


def live_cache(session: Session, cache_id: str) -> CacheRow:
    """The row of a cache that is not dropped, with its newest content.

    Args:
        session: The transaction.
        cache_id: Its id.

    Returns:
        The row.

    Raises:
        NotFoundError: There is none, or it was dropped.
    """
    row = session.get(CacheRow, cache_id, populate_existing=True)
    if row is None or row.dropped_at is not None:
        named = f"{row.namespace}.{row.name}" if row else f"with the id {cache_id}"
        raise NotFoundError(
            ErrorCode.CACHE_NOT_FOUND,
            f"there is no relational cache {named}: SHOW RELATIONAL CACHES lists those that exist",
        )
    return row


def no_refresh(refresh_id: str) -> NotFoundError:
    """That there is no such refresh.

    Args:
        refresh_id: The id as it was given.
    """
    return NotFoundError(
        ErrorCode.REFRESH_NOT_FOUND,
        f"there is no refresh {refresh_id}: `cachemgr cache history NAME`, or GET "
        "/api/v1/caches/NAME/refreshes, lists those of a cache",
    )
