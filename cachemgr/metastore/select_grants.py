"""Which base tables the service may read for whom: it reads with its own rights, so that nobody is
granted anything by default."""

from __future__ import annotations

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from cachemgr.metastore.models import SelectGrantRow
from cachemgr.metastore.statement_records import SelectGrant
from cachemgr.metastore.transactions import Part
from cachemgr.roles import check_principal


class SelectGrants(Part):
    """Look up, grant and take back. Places are spelled as the caches' plans spell them, like those
    of restricted tables."""

    def of(self, principal: str) -> frozenset[str]:
        """The places of the base tables that the service may read for a principal."""
        query = select(SelectGrantRow.place).where(SelectGrantRow.principal == principal)
        with self._session() as session:
            return frozenset(session.scalars(query))

    def all(self) -> tuple[SelectGrant, ...]:
        """All grants, by table and principal."""
        query = select(SelectGrantRow).order_by(
            SelectGrantRow.table_name, SelectGrantRow.place, SelectGrantRow.principal
        )
        with self._session() as session:
            return tuple(
                SelectGrant(row.place, row.principal, row.table_name, row.granted_at)
                for row in session.scalars(query)
            )

    def add(self, place: str, principal: str, table_name: str) -> bool:
        """Let the service read a base table for a principal.

        Args:
            place: Where the table lies.
            principal: For whom.
            table_name: What the table was called by whoever grants it, to be shown.

        Returns:
            False if that was so already; its name stays.

        Raises:
            ConfigurationError: That is no principal.
        """
        name = check_principal(principal)
        with self._transaction() as session:
            if session.get(SelectGrantRow, (place, name)) is not None:
                return False
            row = SelectGrantRow(
                place=place,
                principal=name,
                table_name=table_name,
                granted_at=self._moment(session, None),
            )
            try:
                with session.begin_nested():
                    session.add(row)
            except IntegrityError:  # another replica was quicker
                return False
            return True

    def remove(self, place: str, principal: str) -> bool:
        """Take a grant back.

        Args:
            place: Where the table lies, or lay.
            principal: Whose grant it is.

        Returns:
            False if there was none.
        """
        mine = (SelectGrantRow.place == place, SelectGrantRow.principal == principal.strip())
        with self._transaction() as session:
            gone = session.scalar(
                delete(SelectGrantRow).where(*mine).returning(SelectGrantRow.place)
            )
            return gone is not None
