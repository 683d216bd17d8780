"""One version of each base table, all current at one moment, and what is wrong if that cannot be
had.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from cachemgr.base_columns import columns_read, expressions_of, kept_columns
from cachemgr.errors import RefreshError
from cachemgr.refresh.steps import BaseVersion
from cachemgr.spark.tables import (
    TableRead,
    Unreadable,
    current_versions,
    run_select,
    schema_at,
)
from matcher.expr import Col, walk
from matcher.ir import CachePlan

MAX_READS = 20


def pin_versions(spark: SparkSession, cache: str, plan: CachePlan) -> tuple[BaseVersion, ...]:
    """Read all versions, and read again until none moved in between.

    Args:
        spark: Any session.
        cache: Shown name, for messages.
        plan: The plan whose relations are pinned.

    Returns:
        One entry for each place, in order of first appearance.

    Raises:
        RefreshError: A table is gone or no Delta table, or they never stood still.
    """
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
            "BASE_TABLES_MOVING",
            f"the base tables of cache {cache} were written to all the time, in {MAX_READS} looks "
            "no two were "
            f"alike; its last snapshot keeps serving; refresh it when fewer commits are made",
        )
    pinned = []
    read = columns_read(plan)
    for location, name in names.items():
        found = before[location]
        if isinstance(found, Unreadable):
            raise RefreshError(
                "BASE_TABLE_UNREADABLE",
                f"base table {name} of cache {cache} cannot be read: {found.why}; the last "
                f"snapshot is kept; mend the log at {location}, or drop or replace the cache",
            )
        if found is None:
            raise RefreshError(
                "BASE_TABLE_LOST",
                f"base table {name} of cache {cache} is gone: there is no Delta table at "
                f"{location}; the last "
                "snapshot is kept; if no job makes it anew within `lost_table_seconds`, restore "
                "the table, or drop or replace the cache",
            )
        pinned.append(
            BaseVersion(
                name,
                location,
                found.table_id,
                found.version,
                found.timestamp_ms,
                found.commit,
                kept_columns(schema_at(spark, location, found.version), read[location]),
            )
        )
    return tuple(pinned)


def check_columns(
    session: SparkSession, cache: str, plan: CachePlan, versions: Mapping[str, int]
) -> None:
    """Raise RefreshError if a column that the plan reads is gone or has another type."""
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
                    "BASE_COLUMN_LOST",
                    f"base table {relation.name} of cache {cache} has no column {name} any more; "
                    "the last snapshot "
                    f"is kept; add the column again, or drop or replace the cache "
                    f"(the table has {', '.join(f.name for f in schema.fields)})",
                )
            if have[name.lower()] != type_:
                raise RefreshError(
                    "BASE_COLUMN_CHANGED",
                    f"column {name} of base table {relation.name} is {have[name.lower()]} now and "
                    f"was {type_} when "
                    f"cache {cache} was created; the last snapshot is kept; create the cache "
                    "again with OR REPLACE",
                )
