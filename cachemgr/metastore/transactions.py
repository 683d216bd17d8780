"""The transactions of a metastore: those that read see one moment, those that write are whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import URL, Engine, func, select
from sqlalchemy.orm import Session

from cachemgr.metastore.database import reading, translated, writing
from cachemgr.metastore.records import as_utc

CHANGED: Final = "registry changed"
"""Noted in a session whose transaction changes what sessions match."""


def _nothing() -> None:
    pass


class Transactions:
    """Opens transactions; the parts of a metastore share one.

    Args:
        engine: The database.
        url: Where it is, for messages.
    """

    def __init__(self, engine: Engine, url: URL) -> None:
        self._reading = reading(engine)
        self._writing = writing(engine)
        self._url = url
        # Called when what sessions match has changed, and is stored.
        self.after_change: Callable[[], None] = _nothing

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One that sees one moment and changes nothing."""
        with translated(self._url), Session(self._reading) as session, session.begin():
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One that writes: all of it is stored, or nothing is."""
        with translated(self._url), Session(self._writing) as session:
            with session.begin():
                yield session
            changed = session.info.get(CHANGED, False)
        if changed:
            self.after_change()


class Part:
    """A part of a metastore: each method is one transaction.

    Args:
        transactions: Those of the metastore.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def _session(self) -> AbstractContextManager[Session]:
        return self._transactions.read()

    def _transaction(self) -> AbstractContextManager[Session]:
        return self._transactions.write()

    @staticmethod
    def _moment(session: Session, now: datetime | int | None) -> datetime:
        """`now`, or this moment by the database's clock: the one that all replicas share."""
        return database_moment(session) if now is None else as_utc(now)


def database_moment(session: Session) -> datetime:
    """This moment by the database's clock, the one that all replicas share.

    Args:
        session: A transaction; its own moment may be earlier.
    """
    if session.get_bind().dialect.name == "sqlite":  # one machine, one clock
        return datetime.now(UTC)
    return as_utc(session.scalars(select(func.clock_timestamp())).one())
