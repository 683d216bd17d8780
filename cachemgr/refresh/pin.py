"""One version of each base table, all current at one moment, and what is wrong if that cannot be
had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cachemgr.base_state import TableAt, Unreadable
from cachemgr.delta.base_columns import expressions_of
from cachemgr.delta.changes import Changes
from cachemgr.delta.ranges import changes_between
from cachemgr.delta.tables import (
    TableRead,
    commits_of,
    current_versions,
    run_select,
    with_columns,
)
from cachemgr.errors import ErrorCode, RefreshError
from cachemgr.metastore.records import CacheRecord, SnapshotRecord
from cachemgr.refresh.failure_texts import storage_unavailable, what_serves
from matcher.model.expr import Col, walk
from matcher.model.ir import CachePlan

MAX_READS = 20


def columns_told(schema: StructType) -> str:
    """The columns that a table has, for a message that one is missing."""
    names = ", ".join(field.name for field in schema.fields)
    return f"the table has {names or 'no column at all'}"


def pin_versions(spark: SparkSession, cache: CacheRecord, plan: CachePlan) -> tuple[TableAt, ...]:
    """Read all versions, and read again until none moved in between.

    Args:
        spark: Any session.
        cache: Whose tables they are, for messages.
        plan: The plan whose relations are pinned.

    Returns:
        One table for each place, with its columns, in order of first appearance.

    Raises:
        RefreshError: A table is gone or no Delta table, its storage cannot be asked, or they never
            stood still.
    """
    shown, serves = cache.qualified_name, what_serves(cache)
    names: dict[str, str] = {}
    for relation in plan.relations:
        names.setdefault(relation.key, relation.name)
    before = current_versions(spark, names)
    for _ in range(MAX_READS):
        after = current_versions(spark, names)
        if after == before:
            break
        before = after
    else:
        raise RefreshError(
            ErrorCode.BASE_TABLES_MOVING,
            f"the base tables of cache {shown} were written to all the time, in {MAX_READS} looks "
            f"no two were alike; {serves}; refresh it when fewer commits are made",
        )
    pinned = []
    for location, name in names.items():
        found = before[location]
        if isinstance(found, Unreadable) and found.is_away:
            raise storage_unavailable(cache, found.why, f"base table {name} at {location}")
        if isinstance(found, Unreadable):
            raise RefreshError(
                ErrorCode.BASE_TABLE_UNREADABLE,
                f"base table {name} of cache {shown} cannot be read: {found.why}; {serves}; "
                f"repair the log at {location}, or drop or replace the cache",
            )
        if found is None:
            raise RefreshError(
                ErrorCode.BASE_TABLE_LOST,
                f"base table {name} of cache {shown} is gone: there is no Delta table at "
                f"{location}, and queries that read it fail; restore the table, or drop or replace "
                "the cache, unless a job is about to make it anew",
            )
        pinned.append(with_columns(spark, found))
    return tuple(pinned)


def changes_since(
    session: SparkSession, published: SnapshotRecord | None, tables: Iterable[TableAt]
) -> dict[str, Changes]:
    """What happened to the rows of tables since a snapshot, by location; nothing of those that did
    not move or were created again.

    Args:
        session: A session of ours.
        published: The snapshot; None for none.
        tables: The tables, as they are or were later.
    """
    then = {} if published is None else {t.location: t for t in published.tables}
    # a storage that is away for a moment is no reason to compute everything
    read = partial(commits_of, session, must_answer=True)
    return {
        table.location: changes_between(table, old.state, read)
        for table in tables
        if (old := then.get(table.location)) is not None
        and old.table_id == table.table_id
        and old.version != table.version
    }


def check_columns(
    session: SparkSession, cache: CacheRecord, plan: CachePlan, versions: Mapping[str, int]
) -> None:
    """Raise RefreshError if a column that the plan reads is gone or has another type."""
    shown, serves = cache.qualified_name, what_serves(cache)
    needed: dict[int, dict[str, str]] = {}
    for expr in expressions_of(plan):
        for node in walk(expr):
            if isinstance(node, Col):
                needed.setdefault(node.rel, {})[node.name] = node.type
    for rel, wanted in sorted(needed.items()):
        relation = plan.relations[rel]
        read = TableRead(relation.key, versions[relation.key])
        schema = run_select(session, "SELECT * FROM __t", {"__t": read}).schema
        have = {f.name.lower(): f.dataType.simpleString() for f in schema.fields}
        for name, type_ in sorted(wanted.items()):
            if name.lower() not in have:
                raise RefreshError(
                    ErrorCode.BASE_COLUMN_LOST,
                    f"base table {relation.name} of cache {shown} has no column {name} any more; "
                    f"{serves}; add the column again, or drop or replace the cache "
                    f"({columns_told(schema)})",
                )
            if have[name.lower()] != type_:
                raise RefreshError(
                    ErrorCode.BASE_COLUMN_CHANGED,
                    f"column {name} of base table {relation.name} is {have[name.lower()]} now and "
                    f"was {type_} when "
                    f"cache {shown} was created; {serves}; create the cache "
                    "again with OR REPLACE",
                )
