"""An open metastore. One that is empty is created, one of another version refused."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from sqlalchemy import Engine

from cachemgr.errors import ErrorCode, MetastoreError
from cachemgr.metastore.caches import Caches
from cachemgr.metastore.clock import Clock
from cachemgr.metastore.commit_numbers import CommitNumbers
from cachemgr.metastore.database import (
    DEFAULT_BUSY_SECONDS,
    check_sqlite_file,
    hidden,
    make_engine,
    metastore_url,
    translated,
    use_wal,
)
from cachemgr.metastore.decisions import Decisions
from cachemgr.metastore.dumps import Dumps
from cachemgr.metastore.file_access import make_private
from cachemgr.metastore.grants import Grants
from cachemgr.metastore.idempotency import Idempotency
from cachemgr.metastore.joins import Joins
from cachemgr.metastore.migrate import create_if_empty, is_empty, verify
from cachemgr.metastore.queue import Queue
from cachemgr.metastore.refreshes import Refreshes
from cachemgr.metastore.registry import Registry
from cachemgr.metastore.schedules import Schedules
from cachemgr.metastore.select_grants import SelectGrants
from cachemgr.metastore.snapshots import Snapshots
from cachemgr.metastore.statements import Statements
from cachemgr.metastore.tables import Tables
from cachemgr.metastore.tokens import Tokens
from cachemgr.metastore.transactions import Transactions
from cachemgr.telemetry import logger


@dataclass(frozen=True)
class Metastore:
    """An open metastore, by its parts. Each method of a part is one transaction.

    Attributes:
        url: Where it is, with its password.
        engine: The database.
        transactions: Those of all parts.
        caches: The caches with their grouping sets.
        grants: Who may use a cache.
        refreshes: Refresh runs and their leases.
        commit_numbers: The numbers of commits to the caches' tables.
        snapshots: What refreshes read, and what caches serve from.
        queue: Refreshes that wait for a worker.
        schedules: What the scheduler knows of each cache.
        joins: The record-preserving joins.
        tables: Base tables, and which of them are restricted.
        registry: All that matching needs, at one revision.
        decisions: The log of decisions about queries.
        tokens: Bearer tokens of the service.
        idempotency: Answers to repeated requests.
        statements: Statements that the service runs, and their results.
        select_grants: Which base tables the service may read for whom.
        dumps: What a rebuild needs, and the rebuild.
        clock: The database's clock.
    """

    url: str
    engine: Engine
    transactions: Transactions
    caches: Caches
    grants: Grants
    refreshes: Refreshes
    commit_numbers: CommitNumbers
    snapshots: Snapshots
    queue: Queue
    schedules: Schedules
    joins: Joins
    tables: Tables
    registry: Registry
    decisions: Decisions
    tokens: Tokens
    idempotency: Idempotency
    statements: Statements
    select_grants: SelectGrants
    dumps: Dumps
    clock: Clock

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
                logger.warning(
                    "made a new metastore, %s, which has no caches yet: if it should have some, "
                    "check the URL, or the folder that was started in",
                    hidden(target),
                )
                with engine.connect() as connection:
                    verify(connection, target)
            use_wal(engine, busy_seconds)
    except BaseException:
        engine.dispose()
        raise
    transactions = Transactions(engine, target)
    return Metastore(
        url=target.render_as_string(hide_password=False),
        engine=engine,
        transactions=transactions,
        caches=Caches(transactions),
        grants=Grants(transactions),
        refreshes=Refreshes(transactions),
        commit_numbers=CommitNumbers(transactions),
        snapshots=Snapshots(transactions),
        queue=Queue(transactions),
        schedules=Schedules(transactions),
        joins=Joins(transactions),
        tables=Tables(transactions),
        registry=Registry(transactions),
        decisions=Decisions(transactions),
        tokens=Tokens(transactions),
        idempotency=Idempotency(transactions),
        statements=Statements(transactions),
        select_grants=SelectGrants(transactions),
        dumps=Dumps(transactions),
        clock=Clock(transactions),
    )
