"""What the readers of the metastore share: a transaction that sees one moment and cannot write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import URL, Engine, func, select
from sqlalchemy.orm import Session

from cachemgr.metastore.database import reading, translated
from cachemgr.metastore.records import as_utc


class Reads:
    """Opens transactions that read; made by `open_metastore`."""

    def __init__(self, engine: Engine, url: URL) -> None:
        self._engine = reading(engine)
        self._url = url

    @contextmanager
    def _session(self) -> Iterator[Session]:
        with translated(self._url), Session(self._engine) as session, session.begin():
            yield session


def database_moment(session: Session) -> datetime:
    """This moment by the database's clock, the one that all replicas share.

    Args:
        session: A transaction; its own moment may be earlier.
    """
    if session.get_bind().dialect.name == "sqlite":  # one machine, one clock
        return datetime.now(UTC)
    return as_utc(session.scalars(select(func.clock_timestamp())).one())
