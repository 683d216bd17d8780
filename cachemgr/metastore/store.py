"""Opening a metastore: create it if it is empty, refuse it if it is another version's."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from sqlalchemy import Engine

from cachemgr.errors import ErrorCode, MetastoreError
from cachemgr.metastore.database import (
    DEFAULT_BUSY_SECONDS,
    check_sqlite_file,
    hidden,
    make_engine,
    metastore_url,
    translated,
    use_wal,
)
from cachemgr.metastore.file_access import make_private
from cachemgr.metastore.migrate import create_if_empty, is_empty, verify
from cachemgr.metastore.reader import Reader
from cachemgr.metastore.transactions import Transactions
from cachemgr.metastore.writer import Writer


@dataclass(frozen=True)
class Metastore:
    """An open metastore: questions go to `reader`, changes to `writer`."""

    url: str
    reader: Reader
    writer: Writer
    engine: Engine
    transactions: Transactions

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()

    def __enter__(self) -> Metastore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_metastore(
    url: str,
    *,
    create: bool = True,
    busy_seconds: float = DEFAULT_BUSY_SECONDS,
    group: str | None = None,
) -> Metastore:
    """Open a metastore.

    Args:
        url: `sqlite:///file` or `postgresql://…`.
        create: Make a metastore of an empty database or a missing file.
        busy_seconds: How long to wait for another process that writes.
        group: The group that shares a SQLite file; without one its owner alone reads it.

    Returns:
        The metastore; close it when done.

    Raises:
        SchemaVersionError: It has another schema version; names the command, touches nothing.
        MetastoreError: It cannot be opened or is no metastore; says what to do.
    """
    target = metastore_url(url)
    check_sqlite_file(target, create=create)
    make_private(target, group, create=create)
    engine = make_engine(target, busy_seconds)
    try:
        with translated(target):
            # Looked at first and on a connection of its own: what is not ours stays untouched.
            with engine.connect() as connection:
                empty = is_empty(connection)
                if not empty:
                    verify(connection, target)
            if empty and not create:
                raise MetastoreError(
                    ErrorCode.METASTORE_MISSING,
                    f"{hidden(target)} holds no metastore: check the URL, or create it with "
                    f"`cachemgr db upgrade --metastore {hidden(target)}`",
                )
            if empty:
                create_if_empty(engine)
                with engine.connect() as connection:
                    verify(connection, target)
            use_wal(engine, busy_seconds)
    except BaseException:
        engine.dispose()
        raise
    where = target.render_as_string(hide_password=False)
    transactions = Transactions(engine, target)
    return Metastore(where, Reader(transactions), Writer(transactions), engine, transactions)
