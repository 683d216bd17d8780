"""The clock that all replicas share."""

from __future__ import annotations

from datetime import datetime

from cachemgr.metastore.transactions import Part, database_moment


class Clock(Part):
    """The database's clock."""

    def now(self) -> datetime:
        """This moment by the database's clock, which all replicas share."""
        with self._session() as session:
            return database_moment(session)
