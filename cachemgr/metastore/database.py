"""Opening databases: which URLs are accepted, how connections are set up, what errors mean."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from cachemgr.errors import ErrorCode, MetastoreError
from cachemgr.extras import require
from cachemgr.secrets import masked

DEFAULT_BUSY_SECONDS = 10.0
_ACCEPTED = "sqlite:///path/to/file.db or postgresql://user:password@host:5432/database"
_WRITES = "cachemgr_writes"
_MIGRATES = "cachemgr_migrates"
# A database has one page or none; SQLite overwrites what is shorter.
_SMALLEST = 512
# A process that is stopped or cut off inside a transaction must not hold its locks for longer than
# the others wait for them.
_LONGEST_PAUSE = 0.8


def metastore_url(text: str) -> URL:
    """Read a metastore URL and bring it to the driver that is used.

    Args:
        text: `sqlite:///file` or `postgresql://…`.

    Returns:
        The URL, with an absolute path for SQLite, so that a later chdir changes nothing.

    Raises:
        MetastoreError: The text is not a URL, or of a database that is not supported.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise MetastoreError(
            ErrorCode.METASTORE_URL, f"{_quoted(text)} is not a metastore URL: give {_ACCEPTED}"
        ) from None
    _refuse_unescaped(text, url)
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise MetastoreError(
            ErrorCode.METASTORE_URL,
            f"a metastore cannot be kept in {url.drivername} ({hidden(url)}): give {_ACCEPTED}",
        )
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise MetastoreError(
            ErrorCode.METASTORE_URL,
            f"{hidden(url)} is not a plain SQLite file, and a metastore is shared by processes: "
            "give sqlite:///path/to/file.db",
        )
    return url.set(drivername="sqlite", database=str(Path(url.database).absolute()))


def _quoted(text: str) -> str:
    """What was given for a URL, unless it may hold a password in a form that nobody knows."""
    if "@" in text or "=" in text:
        return "what was given (not shown, since it may hold a password)"
    return repr(masked(text))


def _refuse_unescaped(text: str, url: URL) -> None:
    """An @ in a password ends it: what follows would be taken for the host, and be told in each
    message as such."""
    if url.get_backend_name() != "sqlite" and text.count("@") > 1:
        raise MetastoreError(
            ErrorCode.METASTORE_URL,
            f"the metastore URL ({url.drivername}://…, the rest is not shown, since it holds a "
            "password) has more than one @: write those in the user, the password and the "
            "parameters as %40",
        )


def hidden(url: URL) -> str:
    """The URL for messages, without its password."""
    return masked(url.render_as_string(hide_password=True))


def check_sqlite_file(url: URL, *, create: bool) -> None:
    """Refuse a path that cannot be or become a SQLite file, before anything touches it.

    Args:
        url: The metastore's URL; other databases than SQLite pass.
        create: Whether a missing file is fine.

    Raises:
        MetastoreError: Says what the path is and what to do.
    """
    if url.get_backend_name() != "sqlite":
        return
    path = Path(str(url.database))
    if path.is_dir():
        raise MetastoreError(
            ErrorCode.METASTORE_UNREADABLE, f"{path} is a folder: name a file inside it in the URL"
        )
    if not path.exists():
        if not path.parent.is_dir():
            raise MetastoreError(
                ErrorCode.METASTORE_UNREADABLE,
                f"the folder of the metastore {path} does not exist: "
                f"create {path.parent}, or give another URL",
            )
        if not create:
            raise MetastoreError(
                ErrorCode.METASTORE_MISSING,
                f"there is no metastore at {path}: {_elsewhere(path)}check the URL, or create it "
                f"with `cachemgr db upgrade --metastore {hidden(url)}`",
            )
        return
    if not os.access(path, os.R_OK):
        raise MetastoreError(
            ErrorCode.METASTORE_UNREADABLE,
            f"the metastore {path} cannot be read (Permission denied): "
            "check its permissions, or give another URL",
        )
    if not _is_database(path):
        raise MetastoreError(
            ErrorCode.NOT_A_METASTORE,
            f"{path} is not a SQLite database, it was left as it is: "
            "give the URL of another file, or move this one away",
        )


def _elsewhere(path: Path) -> str:
    """A word on the folder, where that decides which metastore is meant."""
    here = path.resolve().parent == Path.cwd()
    return "if this is the wrong folder, go to the one where it was made; else " if here else ""


def _is_database(path: Path) -> bool:
    """SQLite is asked: a file that this process opened and closed itself would lose the locks that
    SQLite holds on it (https://sqlite.org/howtocorrupt.html, 2.2), and the next process to close it
    would take it for its own alone, and remove the journal that this one writes."""
    size = path.stat().st_size
    if size < _SMALLEST:
        return size == 0
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as base:
            base.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        # what else is wrong, the one who uses it will be told
        return error.sqlite_errorcode != sqlite3.SQLITE_NOTADB
    return True


def make_engine(url: URL, busy_seconds: float = DEFAULT_BUSY_SECONDS) -> Engine:
    """Build an engine; nothing is opened yet.

    Args:
        url: From `metastore_url`.
        busy_seconds: How long to wait for another writer.

    Returns:
        The engine. Its transactions only read, unless taken from `writing(engine)`.

    Raises:
        MissingExtraError: The driver of that database is not installed.
    """
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": busy_seconds}, hide_parameters=True)
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    require(f"the metastore {hidden(url)}", "postgres")
    return create_engine(
        url,
        pool_pre_ping=True,
        # what is stored (names, statements, digests) does not belong into traces
        hide_parameters=True,
        connect_args={
            "connect_timeout": 10,
            "options": f"-c lock_timeout={int(busy_seconds * 1000)} -c timezone=UTC "
            f"-c idle_in_transaction_session_timeout={int(_LONGEST_PAUSE * busy_seconds * 1000)}",
        },
    )


def writing(engine: Engine) -> Engine:
    """The same engine and pool, with transactions that may write."""
    return engine.execution_options(**{_WRITES: True})


def migrating(engine: Engine) -> Engine:
    """The same engine and pool, with transactions that change tables: SQLite makes a table anew to
    change it, and the drop of the old one would take with it all rows that refer to it. Its
    connections are for that alone."""
    return engine.execution_options(**{_WRITES: True, _MIGRATES: True})


def reading(engine: Engine) -> Engine:
    """The same engine and pool, with transactions that see one moment and cannot write."""
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def use_wal(engine: Engine, busy_seconds: float = DEFAULT_BUSY_SECONDS) -> None:
    """Let readers and one writer work at once; only for a file that is known to be ours.

    Args:
        engine: From `make_engine`; other databases than SQLite need nothing.
        busy_seconds: How long to wait for other processes.

    Raises:
        sqlite3.OperationalError: The file stayed in use for that long.
    """
    if engine.dialect.name != "sqlite":
        return
    raw = engine.raw_connection()
    deadline = time.monotonic() + busy_seconds
    try:
        cursor = raw.cursor()
        # SQLite does not wait for its busy timeout here, but fails at once while anybody else
        # reads or switches: several processes that open a new metastore would all but one fail.
        while not _switched_to_wal(cursor):
            if time.monotonic() >= deadline:
                raise sqlite3.OperationalError("database is locked")
            time.sleep(0.01)
        cursor.close()
    finally:
        raw.close()


def _switched_to_wal(cursor: DBAPICursor) -> bool:
    try:
        cursor.execute("PRAGMA journal_mode")
        row = cursor.fetchone()
        if row is not None and str(row[0]).lower() == "wal":
            return True
        # Where the file system cannot do WAL, SQLite says so by keeping the old mode: still sound,
        # only slower, and no reason to refuse.
        cursor.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return False
    return True


def _configure_sqlite(connection: sqlite3.Connection, record: object) -> None:
    # The driver's own transaction handling never sends BEGIN before a SELECT or DDL, so neither
    # a reader's one moment nor a migration's rollback would hold: BEGIN is sent by us instead.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A plain BEGIN takes the write lock at the first write; if another process has written since
    # this one's first read, that fails at once and the busy timeout is not waited for.
    options = connection.get_execution_options()
    if options.get(_MIGRATES, False):
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")  # without effect after BEGIN
    writes = options.get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Turn the database's errors into ours.

    Args:
        url: The metastore's URL, for the message.

    Raises:
        MetastoreError: For every error of the database, with what to do.
    """
    try:
        yield
    except DBAPIError as error:
        raise _meaning(url, error.orig, str(error.orig)) from error
    except SQLAlchemyError as error:
        raise MetastoreError(
            ErrorCode.METASTORE_FAILED, f"the metastore {hidden(url)} failed: {error}"
        ) from error
    except sqlite3.Error as error:
        raise _meaning(url, error, str(error)) from error


def _meaning(url: URL, cause: Any, text: str) -> MetastoreError:
    where = hidden(url)
    sqlstate = getattr(cause, "sqlstate", None)
    lowered = text.lower()
    reason = masked(" ".join(text.split()))
    if "is locked" in lowered or sqlstate in ("55P03", "40P01", "40001"):
        return MetastoreError(
            ErrorCode.METASTORE_BUSY,
            f"another process is writing to the metastore {where} and did not finish in time; "
            "nothing was changed: repeat, or find the process that holds it",
        )
    if "not a database" in lowered or "malformed" in lowered:
        return MetastoreError(
            ErrorCode.NOT_A_METASTORE,
            f"{where} is not a readable SQLite database ({reason}): restore it from a backup, "
            "or give another URL",
        )
    if "readonly" in lowered or "read-only" in lowered or sqlstate == "42501":
        return MetastoreError(
            ErrorCode.METASTORE_READ_ONLY,
            f"the metastore {where} may not be written ({reason}): check its permissions",
        )
    if "disk is full" in lowered or sqlstate == "53100":
        return MetastoreError(
            ErrorCode.METASTORE_FULL,
            f"no room is left for the metastore {where}: free some and repeat",
        )
    if "unable to open" in lowered or "connection" in lowered or sqlstate is None:
        return MetastoreError(
            ErrorCode.METASTORE_UNREADABLE,
            f"the metastore {where} cannot be opened ({reason}): check the URL, "
            "and that the database runs and admits this user",
        )
    return MetastoreError(ErrorCode.METASTORE_FAILED, f"the metastore {where} failed ({reason})")
