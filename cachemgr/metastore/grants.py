"""Who may use a cache, and who could."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cachemgr.errors import ErrorCode, NotFoundError
from cachemgr.metastore.models import CacheRow, GrantRow, PastGrantRow
from cachemgr.metastore.records import EVERYBODY
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import bump_revision, live_cache
from cachemgr.roles import check_principal


class Grants(Part):
    """Look up, grant and revoke."""

    def of(self, cache_id: str) -> tuple[str, ...]:
        """The principals granted on a cache, sorted; they count once it is `narrowed`."""
        query = select(GrantRow.principal).where(GrantRow.cache_id == cache_id)
        with self._session() as session:
            return tuple(sorted(session.scalars(query)))

    def past(self, cache_id: str) -> dict[str, datetime]:
        """Until when principals could be answered from a cache who were granted on it once;
        `EVERYBODY` until it was narrowed. What is older than the decisions kept is forgotten."""
        query = select(PastGrantRow).where(PastGrantRow.cache_id == cache_id)
        with self._session() as session:
            return {row.principal: row.until for row in session.scalars(query)}

    def add(self, cache_id: str, principal: str) -> bool:
        """Let a principal use a cache; from its first grant on, nobody else may.

        Args:
            cache_id: The cache's id.
            principal: Who.

        Returns:
            False if that was so already.

        Raises:
            ConfigurationError: That is no principal.
            NotFoundError: There is no such cache.
        """
        name = check_principal(principal)
        with self._transaction() as session:
            bump_revision(session, cache_id)
            row = live_cache(session, cache_id)
            if name in principals_of(session, cache_id):
                return False
            _narrow(session, row, self._moment(session, None))
            session.add(GrantRow(cache_id=cache_id, principal=name))
            return True

    def replace(self, cache_id: str, principals: Iterable[str]) -> None:
        """Let exactly these principals use a cache; with none it is open to nobody.

        Args:
            cache_id: The cache's id.
            principals: Who.

        Raises:
            NotFoundError: There is no such cache.
        """
        with self._transaction() as session:
            bump_revision(session, cache_id)
            row = live_cache(session, cache_id)
            moment = self._moment(session, None)
            _narrow(session, row, moment)
            for gone in principals_of(session, cache_id).difference(principals):
                session.merge(PastGrantRow(cache_id=cache_id, principal=gone, until=moment))
            session.execute(delete(GrantRow).where(GrantRow.cache_id == cache_id))
            session.add_all(
                GrantRow(cache_id=cache_id, principal=p) for p in sorted(set(principals))
            )

    def revoke(self, cache_id: str, principal: str) -> None:
        """Take a grant back. A cache whose last grant is gone stays narrowed: open to nobody.

        Args:
            cache_id: The cache's id.
            principal: Who.

        Raises:
            NotFoundError: There is no such cache, or no such grant.
        """
        with self._transaction() as session:
            bump_revision(session, cache_id)
            row = live_cache(session, cache_id)
            principals = principals_of(session, cache_id)
            if principal not in principals:
                granted = ", ".join(sorted(principals)) or "nobody"
                raise NotFoundError(
                    ErrorCode.GRANT_NOT_FOUND,
                    f"{principal} has no grant on the relational cache {row.namespace}.{row.name}: "
                    f"granted are {granted}",
                )
            moment = self._moment(session, None)
            session.merge(PastGrantRow(cache_id=cache_id, principal=principal, until=moment))
            session.execute(
                delete(GrantRow).where(
                    GrantRow.cache_id == cache_id, GrantRow.principal == principal
                )
            )


def principals_of(session: Session, cache_id: str) -> set[str]:
    return set(session.scalars(select(GrantRow.principal).where(GrantRow.cache_id == cache_id)))


def _narrow(session: Session, row: CacheRow, moment: datetime) -> None:
    if not row.narrowed:
        row.narrowed = True
        session.merge(PastGrantRow(cache_id=row.id, principal=EVERYBODY, until=moment))
