"""Settings outside of Spark's registries: those that it no longer has, vendors', and Hadoop's."""

from __future__ import annotations

from typing import Final

# Spark takes each of them with its old default alone, and then ignores it.
REMOVED: Final[tuple[tuple[str, str], ...]] = tuple(
    (name, "Spark has it no more, and ignores it")
    for name in (
        "spark.sql.ansi.strictIndexOperator",
        "spark.sql.fromJsonForceNullableSchema",
        "spark.sql.hive.verifyPartitionPath",
        "spark.sql.legacy.allowCreatingManagedTableUsingNonemptyLocation",
        "spark.sql.legacy.avro.datetimeRebaseModeInRead",
        "spark.sql.legacy.avro.datetimeRebaseModeInWrite",
        "spark.sql.legacy.compareDateTimestampInTimestamp",
        "spark.sql.legacy.parquet.datetimeRebaseModeInWrite",
        "spark.sql.legacy.parquet.int96RebaseModeInRead",
        "spark.sql.legacy.parquet.int96RebaseModeInWrite",
        "spark.sql.optimizer.planChangeLog.batches",
        "spark.sql.optimizer.planChangeLog.level",
        "spark.sql.optimizer.planChangeLog.rules",
        "spark.sql.optimizer.runtimeFilter.semiJoinReduction.enabled",
        "spark.sql.execution.pandas.respectSessionTimeZone",
        "spark.sql.parquet.int64AsTimestampMillis",
    )
)

VENDORS: Final[tuple[tuple[str, str], ...]] = (
    (
        "spark.sql.parquet.fs.optimized.committer.optimization-enabled",
        "Amazon EMR: how written files are committed",
    ),
    ("spark.databricks.delta.formatCheck.enabled", "Databricks: what a write refuses"),
    ("spark.databricks.delta.preview.enabled", "Databricks: nothing in Delta Lake"),
)

# Of Hadoop's settings only these are looked at by the reader of Delta's files, Parquet's, and can
# take rows away. Each counts by this name and, from Spark's configuration, behind `spark.hadoop.`.
HADOOP_PREFIX: Final = "spark.hadoop."
# Of these, those that name a class or hold an object of the user's, which Parquet's reader makes:
# whoever sets one is not answered, and it is never set in a session of ours.
HADOOP_CODE: Final = frozenset({"parquet.private.read.filter.predicate", "parquet.read.filter"})
HADOOP_RESULTS: Final[tuple[tuple[str, str], ...]] = (
    ("parquet.private.read.filter.predicate", "rows that Parquet's reader leaves out"),
    ("parquet.read.filter", "rows that Parquet's reader leaves out"),
    (
        "parquet.strings.signed-min-max.enabled",
        "groups of rows that are passed over by wrong bounds of older files",
    ),
)
