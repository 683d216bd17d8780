"""One version of each base table, all current at one moment, and what is wrong if that cannot be
had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cachemgr.base_state import TableAt, Unreadable
from cachemgr.delta.base_columns import (
    Fate,
    columns_read,
    retyped_columns,
    table_columns,
    types_read,
)
from cachemgr.delta.changes import Changes
from cachemgr.delta.ranges import changes_between
from cachemgr.delta.tables import (
    TableRead,
    commits_of,
    current_versions,
    past_of,
    run_select,
    with_columns,
)
from cachemgr.delta.widening import from_sql, holds_all_of
from cachemgr.errors import ErrorCode, RefreshError
from cachemgr.metastore.records import CacheRecord, SnapshotRecord
from cachemgr.refresh.failure_texts import storage_unavailable, what_serves
from matcher.model.ir import CachePlan, Relation
from matcher.render.placeholders import TABLE

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
    for relation in plan.tables:
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
                ErrorCode.TABLE_UNREADABLE,
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


def refuse_replaced(session: SparkSession, cache: CacheRecord, tables: Iterable[TableAt]) -> None:
    """Refuse what was read of tables that were replaced meanwhile, so that the version that was
    read is another table's now: a part may be of either.

    Args:
        session: A session of ours.
        cache: The cache.
        tables: The tables as they were pinned.

    Raises:
        RefreshError: Names the table; it is tried again.
    """
    pinned = {table.location: table for table in tables}
    found = current_versions(session, {place: table.name for place, table in pinned.items()})
    for place, then in pinned.items():
        now = found[place]
        if isinstance(now, TableAt) and _holds(session, now, then):
            continue
        raise RefreshError(
            ErrorCode.BASE_TABLES_MOVING,
            f"base table {then.name} of cache {cache.qualified_name} was replaced while a refresh "
            f"read it; {what_serves(cache)}; refresh it again",
        )


def _holds(session: SparkSession, now: TableAt, then: TableAt) -> bool:
    """Whether a table's log still holds the very version that was read."""
    if now.version <= then.version:
        return now.state.is_same(then.state)
    past = past_of(session, now, then.version, columns_then=False)
    if not past.commit or not then.commit:
        return now.table_id == then.table_id
    return past.commit == then.commit


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


@dataclass(frozen=True, slots=True)
class OtherColumn:
    """A column of a base table that is not what a plan reads.

    Args:
        table: The table's name.
        name: The column's name.
        then: Its type in the plan, in SQL's words.
        now: Its type in the table, empty where it is gone.
        schema: What the table has.
    """

    table: str
    name: str
    then: str
    now: str
    schema: StructType


def other_columns(
    session: SparkSession, plan: CachePlan, versions: Mapping[str, int]
) -> Iterator[OtherColumn]:
    """The columns that a plan reads and its tables do not have, or have with another type.

    Args:
        session: Any session.
        plan: The plan.
        versions: The versions that count, by the tables' locations.
    """
    needed: dict[int, tuple[Relation, dict[str, str]]] = {}
    for number, relation, column in table_columns(plan):
        needed.setdefault(number, (relation, {}))[1][column.name] = column.type
    for _, (relation, wanted) in sorted(needed.items()):
        read = TableRead(relation.key, versions[relation.key])
        schema = run_select(session, f"SELECT * FROM {TABLE}", {TABLE: read}).schema
        have = {f.name.lower(): f.dataType.simpleString() for f in schema.fields}
        for name, type_ in sorted(wanted.items()):
            now = have.get(name.lower(), "")
            if now != type_:
                yield OtherColumn(relation.name, name, type_, now, schema)


def check_columns(
    session: SparkSession, cache: CacheRecord, plan: CachePlan, versions: Mapping[str, int]
) -> None:
    """Raise RefreshError if a column that the plan reads is gone or has another type."""
    for other in other_columns(session, plan, versions):
        if not other.now:
            raise column_lost(cache, other)
        raise column_changed(cache, other.table, other.name, other.then, other.now)


def column_lost(cache: CacheRecord, other: OtherColumn) -> RefreshError:
    """That a base table has no column any more that a cache reads.

    Args:
        cache: The cache.
        other: The column.
    """
    return RefreshError(
        ErrorCode.BASE_COLUMN_LOST,
        f"base table {other.table} of cache {cache.qualified_name} has no column {other.name} any "
        f"more; {what_serves(cache)}; add the column again, or drop or replace the cache "
        f"({columns_told(other.schema)})",
    )


def column_changed(cache: CacheRecord, table: str, name: str, then: str, now: str) -> RefreshError:
    """That a column has a type that a cache does not follow by itself.

    Args:
        cache: The cache.
        table: The base table's name.
        name: The column's name.
        then: What it was.
        now: What it is.
    """
    return RefreshError(
        ErrorCode.BASE_COLUMN_CHANGED,
        f"column {name} of base table {table} is {now} now and was {then} when cache "
        f"{cache.qualified_name} last read it, and a cache follows a column by itself only to a "
        f"type that holds all that it held; {what_serves(cache)}; give the column its type back, "
        "or create the cache again with OR REPLACE",
    )


def refuse_narrowed(
    cache: CacheRecord,
    published: SnapshotRecord | None,
    created: CachePlan | None,
    plan: CachePlan,
    tables: Iterable[TableAt],
) -> None:
    """Refuse base columns of a type that does not hold all values of the type that they had.

    Args:
        cache: The cache.
        published: What was read of its tables last; None if nothing was.
        created: The plan of its creation, for tables that were not read yet, or when no release
            stored what their columns were; None where another version stored it.
        plan: What it is to hold now.
        tables: Its tables now; one that took the name of another one counts as that one.

    Raises:
        RefreshError: Names the column, what it was and what it is.
    """
    tables_then = () if published is None else published.tables
    by_place = {t.location: t for t in tables_then}
    by_name = {t.name.lower(): t for t in tables_then}
    read, types = columns_read(plan), types_read(plan)
    before = {} if created is None else types_read(created)
    for table in tables:
        then = by_place.get(table.location) or by_name.get(table.name.lower())
        if then is not None and then.columns is not None:
            for name, change in retyped_columns(then.columns, table.columns).items():
                if change.fate is Fate.RETYPED and name in read[table.location]:
                    raise column_changed(cache, table.name, name, change.then, change.now)
            continue
        for name in sorted(read[table.location]):
            column = (table.name.lower(), name)
            was, now = before.get(column), types.get(column)
            if was and now and not holds_all_of(from_sql(was), from_sql(now)):
                raise column_changed(cache, table.name, name, was, now)
