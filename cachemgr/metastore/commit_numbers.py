"""The numbers of the commits to the caches' tables."""

from __future__ import annotations

from sqlalchemy import select, update

from cachemgr.errors import ErrorCode, NotFoundError
from cachemgr.metastore.models import CommitNumberRow, RegistryRevisionRow
from cachemgr.metastore.records import new_id
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import GAP, bump_revision


class CommitNumbers(Part):
    """Give numbers out; each is given once."""

    def next(self, cache_id: str) -> int:
        """Give out the number of one Delta commit; each is given once, and they only grow.

        Args:
            cache_id: The cache's id.

        Returns:
            The number, from 1.

        Raises:
            NotFoundError: There is no such cache.
        """
        with self._transaction() as session:
            number = session.scalar(
                update(CommitNumberRow)
                .where(CommitNumberRow.cache_id == cache_id)
                .values(last=CommitNumberRow.last + 1)
                .returning(CommitNumberRow.last)
                .execution_options(synchronize_session=False)
            )
            if number is None:
                raise NotFoundError(
                    ErrorCode.CACHE_NOT_FOUND,
                    f"there is no relational cache with the id {cache_id}: "
                    "SHOW RELATIONAL CACHES lists those that exist",
                )
            return number

    def catch_up(self, cache_id: str, number: int) -> bool:
        """Go on after a commit number that the cache's log holds and this metastore never gave
        out: it was put back from a copy of its own, and what happened since is not known to it.

        Sessions that hold something of that time load everything anew, since the registry gets
        another epoch; revisions go on far above those that were given out since the copy.

        Args:
            cache_id: The cache's id.
            number: The number of the log.

        Returns:
            False if the number was given out here, and nothing was changed.
        """
        behind = (CommitNumberRow.cache_id == cache_id, CommitNumberRow.last < number)
        with self._transaction() as session:
            if session.scalar(select(CommitNumberRow.last).where(*behind)) is None:
                return False
            bump_revision(session)
            session.execute(
                update(RegistryRevisionRow)
                .values(revision=RegistryRevisionRow.revision + GAP, epoch=new_id())
                .execution_options(synchronize_session=False)
            )
            session.execute(
                update(CommitNumberRow)
                .where(*behind)
                .values(last=number)
                .execution_options(synchronize_session=False)
            )
            return True
