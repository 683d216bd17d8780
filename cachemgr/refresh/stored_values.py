"""What a cache's table holds, as far as its layout depends on it: combinations of values, sizes,
and how many files a refresh writes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from cachemgr.delta.own_session import own_session
from cachemgr.delta.tables import TableRead, normalise_location, run_select
from cachemgr.jvm.classes import class_on_path
from cachemgr.metastore.records import CacheRecord, SnapshotRecord
from cachemgr.refresh.full.base import cores
from cachemgr.statements.layouts import StoredValues, Value
from matcher.render.placeholders import TABLE
from matcher.render.select import quote

MOST_COMBINATIONS: Final = 100_000
# Of rows on their way between tasks, what is left when they are compressed; measured.
_COMPRESSED: Final = 0.42
_DAY_SECONDS: Final = 86_400
_ADVISORY: Final = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_LEAST: Final = "spark.sql.adaptive.coalescePartitions.minPartitionSize"
_PARALLEL: Final = "spark.sql.adaptive.coalescePartitions.parallelismFirst"
_PARTITIONS: Final = "spark.sql.shuffle.partitions"


def stored_values(
    spark: SparkSession, cache: CacheRecord, published: SnapshotRecord, columns: Sequence[str]
) -> StoredValues:
    """Look at a cache's published version: two jobs over the columns that are asked for.

    Args:
        spark: Any session of the application.
        cache: The cache.
        published: Its snapshot.
        columns: The stored columns to look at.
    """
    session = own_session(spark, cache.settings)
    version = published.run.cache_version
    assert version is not None
    table = TableRead(normalise_location(session, cache.location), version)
    rows = run_select(session, f"SELECT * FROM {TABLE}", {TABLE: table})
    texts = [f.name for f in rows.schema if isinstance(f.dataType, StringType)]
    values = [_value(quote(name), rows.schema[name].dataType) for name in columns]
    named = [value.alias(f"c{i}") for i, value in enumerate(values)]
    counted = rows.agg(
        F.count(F.lit(1)),
        *[F.approx_count_distinct(value, 0.02) for value in values],
        F.approx_count_distinct(F.struct(*named), 0.05),
        *[F.avg(F.length(F.col(quote(name)))) for name in texts],
    ).collect()[0]
    total, distinct = counted[0], counted[1 : 1 + len(columns)]
    lengths = sum(length or 0.0 for length in counted[2 + len(columns) :])
    every = ceil(counted[1 + len(columns)] / MOST_COMBINATIONS)
    looked = rows.select(*named)
    if every > 1:  # all rows of one combination in so many
        looked = looked.where(F.pmod(F.xxhash64(*looked.columns), F.lit(every)) == 0)
    found = looked.groupBy(*looked.columns).count().limit(2 * MOST_COMBINATIONS).collect()
    return StoredValues(
        tuple(columns),
        [(tuple(map(_ordered, row[:-1])), row[-1]) for row in found],
        dict(zip(columns, distinct, strict=True)),
        total,
        published.run.bytes or 0,
        _files(session, rows.schema, total, lengths, _files_now(cache, rows.inputFiles())),
    )


def _value(name: str, type_: DataType) -> Column:
    """A column as a number, in days where it is a time, or as text."""
    column = F.col(name)
    match type_:
        case DateType():
            return F.unix_date(column).cast("double")
        case TimestampType() | TimestampNTZType():
            return F.unix_micros(column.cast("timestamp")) / F.lit(_DAY_SECONDS * 1e6)
        case DecimalType() | NumericType():
            return column.cast("double")
    return column.cast("string")


def _ordered(value: float | str | None) -> Value:
    """NaN has no place among numbers."""
    return None if value != value else value


def _files_now(cache: CacheRecord, files: Sequence[str]) -> int | None:
    """How many files the table has, where they are as many as another layout would have."""
    return None if cache.spec.partitioned_by else len(files)


def _files(
    session: SparkSession, schema: StructType, rows: int, text: float, now: int | None
) -> int:
    """How many files a refresh writes where no column says how: Spark makes them of about the same
    size, from the rows on their way between its tasks."""
    types = [field.dataType for field in schema]
    decimals = sum(isinstance(each, DecimalType) and each.precision > 18 for each in types)
    width = 8 + 8 * len(schema) + 16 * decimals + text
    moved = rows * width * _COMPRESSED
    target = _bytes(session, _ADVISORY)
    if session.conf.get(_PARALLEL) == "true":
        target = max(_bytes(session, _LEAST), min(target, moved / cores(session)))
    found = max(1, round(moved / max(1.0, target)))
    found = min(found, int(str(session.conf.get(_PARTITIONS))))
    # a refresh of few rows writes one file whatever they take; one by changes adds more
    return found if now is None else min(found, max(1, now))


def _bytes(session: SparkSession, key: str) -> float:
    utils: Any = class_on_path(session._jvm, "org.apache.spark.network.util.JavaUtils")
    return float(utils.byteStringAsBytes(session.conf.get(key)))
