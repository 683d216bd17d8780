"""The cache's table: made with its properties, written in one commit, and the log read back.

A commit counts only if it stands right above its parent and carries this refresh's stamp. Delta
answers a commit number that it has seen before with success and writes nothing, so success alone
proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, DoubleType, FloatType, StructField, StructType

from cachemgr.base_state import TableAt
from cachemgr.cache_spec import CacheSpec, trigger_json
from cachemgr.config.cache_properties import table_properties
from cachemgr.delta.commits import Commit
from cachemgr.delta.log import head, read_commit, shape, stamp_text
from cachemgr.errors import ErrorCode, RefreshError
from cachemgr.metastore.records import CacheRecord, SnapshotTableRecord
from matcher.model.ir import GROUPING_ID_COLUMN, CachePlan
from matcher.render.select import quote

DAY = 24 * 3600
# How far above the parent a stray commit of ours is looked for, to name it in the error.
LOOK_ABOVE = 20
_ALL_DICTIONARIES = "parquet.enable.dictionary"
_DEFAULT: Final = "spark.databricks.delta.properties.defaults."
# What the application may ask of its own tables, and no cache's table can be.
_NOT_OF_CACHES: Final = ("columnMapping.mode", "appendOnly")
_CHECK_REPLACED: Final = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"


@dataclass(frozen=True, slots=True)
class TableSpec:
    """How the cache's table is laid out."""

    location: str
    partition_by: tuple[str, ...]
    cluster_by: tuple[str, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """Which rows of the table a commit replaces: all of them unless it says otherwise.

    Args:
        replaced: The grouping ids of a cube's sets that are replaced; the rows of others stay.
        is_append: No row is replaced.
    """

    replaced: tuple[int, ...] = ()
    is_append: bool = False


WHOLE: Final = Target()


def table_spec(cache: CacheRecord, plan: CachePlan, drop_grace_seconds: int) -> TableSpec:
    """The table that `cache` should have; a cube is partitioned by its grouping id first.

    Files and log entries stay for as long as something may still read an old version: a query that
    was planned before, the longest staleness promised, two rounds of its schedule.
    """
    trigger = trigger_json(cache.spec.refresh.trigger)
    rhythm = max((int(v) for k, v in trigger.items() if k.endswith("seconds") and v), default=0)
    longest = max(drop_grace_seconds, cache.spec.freshness.max_staleness_seconds or 0, 2 * rhythm)
    properties = {
        "delta.deletedFileRetentionDuration": _interval(max(DAY, longest)),
        "delta.logRetentionDuration": _interval(max(2 * DAY, longest)),
        **table_properties(cache.spec.properties),
    }
    first = (GROUPING_ID_COLUMN,) if plan.is_cube else ()
    partition_by = (*first, *cache.spec.partitioned_by)
    return TableSpec(cache.location, partition_by, clustering(cache.spec, plan), properties)


def clustering(spec: CacheSpec, plan: CachePlan) -> tuple[str, ...]:
    """The columns that a cache's table is clustered by: those of CLUSTER BY, or else what its
    ORDER BY asks for where it is not partitioned.

    Args:
        spec: The clauses.
        plan: What it stores.
    """
    if spec.partitioned_by or spec.cluster_by:
        return spec.cluster_by
    return plan.cluster_by


def _interval(seconds: int) -> str:
    return f"interval {-(-seconds // 3600)} hours"


def missing_properties(session: SparkSession, spec: TableSpec) -> dict[str, str]:
    """Properties that the existing table lacks or has otherwise."""
    have = shape(session, spec.location).properties
    return {k: v for k, v in spec.properties.items() if have.get(k) != v}


def create_table(session: SparkSession, spec: TableSpec, schema: StructType) -> None:
    """Make the empty table. Every column is nullable: a later refresh may store NULL where this one
    could not. None is mapped, and rows can be replaced, whatever is the default of the
    application's own tables.
    """
    for name in _NOT_OF_CACHES:
        session.conf.unset(f"{_DEFAULT}{name}")
    fields = [StructField(f.name, f.dataType, True) for f in schema.fields]
    builder = DeltaTable.createIfNotExists(session).location(spec.location)
    builder = builder.addColumns(StructType(fields))
    if spec.partition_by:
        builder = builder.partitionedBy(*spec.partition_by)
    if spec.cluster_by:
        builder = builder.clusterBy(*map(quote, spec.cluster_by))  # it parses them
    for key, value in spec.properties.items():
        builder = builder.property(key, value)
    builder.execute()


def reshape_clustered(session: SparkSession, spec: TableSpec, rows: DataFrame) -> None:
    """Give a clustered table other columns, and no rows.

    The write that follows replaces rows alone (`write_commit`), so the columns come first. An
    overwrite of the columns forgets the clustering, hence it is set again. Hits go on reading the
    published version meanwhile.
    """
    empty = rows.limit(0).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    empty.save(spec.location)
    columns = ", ".join(map(quote, spec.cluster_by))
    session.sql(f"ALTER TABLE delta.{quote(spec.location)} CLUSTER BY ({columns})")


def set_properties(session: SparkSession, spec: TableSpec, properties: Mapping[str, str]) -> None:
    """Set properties of the existing table, without its name in any catalog."""
    quoted = ", ".join(f"{_literal(k)} = {_literal(v)}" for k, v in properties.items())
    session.sql(f"ALTER TABLE delta.{quote(spec.location)} SET TBLPROPERTIES ({quoted})")


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def write_commit(
    session: SparkSession,
    rows: DataFrame,
    spec: TableSpec,
    *,
    target: Target = WHOLE,
    app_id: str,
    commit_number: int,
    stamp: Mapping[str, Any],
) -> None:
    """Write rows in one commit.

    Args:
        session: The session of ours that `rows` belongs to.
        rows: The rows to write.
        spec: The table.
        target: Which rows they replace.
        app_id: `txnAppId`, the cache's id.
        commit_number: `txnVersion`, given out for this one commit.
        stamp: What the commit says about itself.
    """
    # Options of this one write: as session settings Delta would put them on every write of the
    # session.
    writer = (
        rows.write.format("delta")
        .mode("append" if target.is_append else "overwrite")
        .option("txnAppId", app_id)
        .option("txnVersion", commit_number)
        .option("userMetadata", stamp_text(stamp))
    )
    if spec.partition_by:
        writer = writer.partitionBy(*spec.partition_by)
    for option, value in _replacing(session, spec, target, rows.schema).items():
        writer = writer.option(option, value)
    _keep_zeros_together(session, rows.schema)
    writer.save(spec.location)


def _replacing(
    session: SparkSession, spec: TableSpec, target: Target, schema: StructType
) -> dict[str, str]:
    """The options of a write that say which rows go."""
    if target.is_append:
        return {}
    options = {"partitionOverwriteMode": "static"}
    if target.replaced and GROUPING_ID_COLUMN in spec.partition_by:
        # so that rows of other sets can be appended in the very same commit
        session.conf.set(_CHECK_REPLACED, "false")
        return options | {"replaceWhere": _of_sets(target.replaced)}
    if spec.cluster_by:
        # A plain overwrite replaces the table's definition too, and loses its clustering columns.
        return options | {"replaceWhere": "true"}
    if schema_differs(session, spec, schema):
        return options | {"overwriteSchema": "true"}
    return options


def _of_sets(numbers: Sequence[int]) -> str:
    return f"{quote(GROUPING_ID_COLUMN)} IN ({', '.join(map(str, numbers))})"


def check_replaced(cache: str, plan: CachePlan, target: Target, commit: Commit) -> None:
    """Refuse a commit that removed files of other sets than it was to replace.

    Args:
        cache: Its shown name, for the message.
        plan: What it stores.
        target: What was to be replaced.
        commit: What was written.

    Raises:
        RefreshError: It did: what is stored is not what was computed.
    """
    if target == WHOLE or not (plan.is_cube or target.is_append):
        return
    others = commit.removed_sets - {str(number) for number in target.replaced}
    if others:
        raise RefreshError(
            ErrorCode.COMMIT_MISPLACED,
            f"version {commit.version} of the table of cache {cache} removed files of grouping "
            f"sets {', '.join(sorted(map(str, others)))}, which it was not to replace; nothing was "
            "published; refresh it again with FULL",
        )


def check_above(
    session: SparkSession, cache: str, location: str, version: int, parent: int
) -> None:
    """Refuse to add to a table whose rows are not those of a version any more.

    Args:
        session: A session of ours.
        cache: Its shown name, for the message.
        location: Its table.
        version: The version.
        parent: The newest version, which the write will lie above.

    Raises:
        RefreshError: A commit in between added or removed files: one of a refresh that was thought
            dead, or of somebody else.
    """
    for number in range(version + 1, parent + 1):
        commit = read_commit(session, location, number)
        if commit.added or commit.removed:
            raise RefreshError(
                ErrorCode.COMMIT_MISPLACED,
                f"version {number} of the table of cache {cache} was written while this refresh "
                f"was about to add to version {version}; nothing was written; keep others out of "
                f"{location} and refresh again",
            )


def _keep_zeros_together(session: SparkSession, schema: StructType) -> None:
    """Write FLOAT and DOUBLE columns without dictionaries.

    By its dictionary Parquet passes over a row group that holds -0.0 where 0.0 is asked for, and
    Spark takes the two for equal. A condition that Spark puts above a cache's rows, such as HAVING,
    is pushed into its files; by their statistics alone no zero is lost.
    """
    for path in _floating((), schema):
        # Parquet reads the path apart at its dots, so a name that has one cannot be said
        sayable = not any("." in name for name in path)
        key = f"parquet.enable.dictionary#{'.'.join(path)}" if sayable else _ALL_DICTIONARIES
        session.conf.set(key, "false")


def _floating(path: tuple[str, ...], type: DataType) -> Iterator[tuple[str, ...]]:
    """The Parquet columns, by their path, of which a type's FLOAT and DOUBLE values are made."""
    if isinstance(type, FloatType | DoubleType):
        yield path
    elif isinstance(type, StructType):
        for field in type.fields:
            yield from _floating((*path, field.name), field.dataType)


def schema_differs(session: SparkSession, spec: TableSpec, want: StructType) -> bool:
    """True if the existing table has other columns than the rows to write."""
    have = shape(session, spec.location).schema
    return [(f.name, f.dataType) for f in have] != [(f.name, f.dataType) for f in want]


def read_back(
    session: SparkSession, cache: str, location: str, parent: int, refresh_id: str
) -> Commit:
    """The commit that this refresh just wrote.

    Raises:
        RefreshError: It is not in the log, or not right above its parent.
    """
    newest = head(session, location)
    last = newest.version if newest is not None else -1
    for version in range(parent + 1, min(last, parent + LOOK_ABOVE) + 1):
        commit = read_commit(session, location, version)
        if commit.stamp.get("refresh_id") != refresh_id:
            continue
        if version == parent + 1:
            return commit
        raise RefreshError(
            ErrorCode.COMMIT_MISPLACED,
            f"refresh {refresh_id} of cache {cache} wrote version {version} instead of "
            f"{parent + 1}: something else "
            f"writes to {location}; nothing was published; keep others out of that place and "
            "refresh again",
        )
    raise RefreshError(
        ErrorCode.COMMIT_SKIPPED,
        f"refresh {refresh_id} of cache {cache} is not in the log of {location}, though the write "
        "reported success: "
        f"Delta skips a commit number that it has seen; nothing was published; refresh again",
    )


def base_versions(tables: Sequence[TableAt]) -> list[list[Any]]:
    """Base tables as the stamp holds them."""
    return [list(t.identity) for t in tables]


def read_versions(tables: Sequence[SnapshotTableRecord]) -> list[list[Any]]:
    """The base tables of a snapshot in the same form."""
    return [[t.location, t.table_id, t.version, t.commit_id] for t in tables]
