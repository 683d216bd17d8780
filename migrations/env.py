"""Runs migrations on the connection that the caller gives, or on the URL of alembic.ini."""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy import Connection, create_engine, pool

from cachemgr.metastore.models import VERSION_TABLE, Base


def _ours(name: str | None, kind: str, parents: Any) -> bool:
    # A PostgreSQL database may hold other applications' tables: they are none of our business.
    return kind != "table" or name in Base.metadata.tables


def _migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        version_table=VERSION_TABLE,
        include_name=_ours,
        compare_type=True,
        render_as_batch=True,
        # SQLite's DDL is transactional where BEGIN is sent, as our engine does.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def _run() -> None:
    given = context.config.attributes.get("connection")
    if isinstance(given, Connection):
        _migrate(given)
        return
    url = context.config.get_main_option("sqlalchemy.url")
    if not url:
        raise SystemExit("name the metastore in alembic.ini: sqlalchemy.url is not set")
    engine = create_engine(url, poolclass=pool.NullPool)
    with engine.begin() as connection:
        _migrate(connection)


_run()
