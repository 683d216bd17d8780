"""The rows of files that came to a table or went from it between two of its versions, as the later
one has them: mapped columns, partition values, deletion vectors and widened types included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cachemgr.base_state import TableAt
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes, DataFile
from cachemgr.jvm.classes import java_list
from cachemgr.jvm.loader import java_class, session_of


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """Files of one table.

    Args:
        location: The table.
        since: The version after which they came or went.
        version: The version whose schema they are read by.
        files: The files.
        removed: They went, and came not.
    """

    location: str
    since: int
    version: int
    files: tuple[DataFile, ...]
    removed: bool = False

    def plan(self, spark: SparkSession) -> Any:
        """A logical plan of the JVM that reads them, as `run_select` takes it.

        Raises:
            py4j.protocol.Py4JJavaError: The log does not hold them any more.
        """
        found = java_class(spark, "ChangedFiles")
        place, since, version = self.location, self.since, self.version
        keys = self._keys(spark)
        return found.rows(session_of(spark), place, since, version, keys, self.removed)

    def statistics(self, spark: SparkSession) -> str:
        """What the writers of files that came said of their columns; see
        `cachemgr.refresh.file_stats`."""
        found = java_class(spark, "ChangedFiles")
        keys = self._keys(spark)
        text: str = found.statistics(
            session_of(spark), self.location, self.since, self.version, keys
        )
        return text

    def _keys(self, spark: SparkSession) -> Any:
        return java_list(spark._jvm, ("\n".join(file.key) for file in self.files))


# Where more files changed, everything is computed anyway.
MOST_FILES: Final = 10_000


def gone_files(spark: SparkSession, changes: Mapping[str, Changes]) -> tuple[str, ...]:
    """The files that came or went and are not there any more, as VACUUM leaves it. Files that are
    surely part of the table still are not looked for; of the others each, once.

    Args:
        spark: Any session.
        changes: What happened to tables, by location.
    """
    found: list[str] = []
    for place, changed in changes.items():
        files: tuple[DataFile, ...] = ()
        if changed.kind is ChangeKind.SIGNED:
            files = (*changed.added, *changed.removed)
        elif changed.kind is ChangeKind.APPENDS and changed.code is ChangeCode.RANGE_REWRITTEN:
            files = changed.added
        if 0 < len(files) <= MOST_FILES:
            found += missing_files(spark, place, files)
    return tuple(found)


def missing_files(spark: SparkSession, location: str, files: Iterable[DataFile]) -> list[str]:
    """The paths of those files of a table that are not there any more; each is asked for once.

    Args:
        spark: Any session.
        location: The table.
        files: The files.
    """
    paths = java_list(spark._jvm, dict.fromkeys(file.path for file in files))
    missing: list[str] = json.loads(
        java_class(spark, "ChangedFiles").missing(session_of(spark), location, paths)
    )
    return missing


def repartitioned(
    spark: SparkSession,
    tables: Iterable[TableAt],
    changes: Mapping[str, Changes],
    before: Mapping[str, int | None],
) -> frozenset[str]:
    """The tables of which files went that were partitioned otherwise than the tables are now: by
    the schema of now their partition columns are read as NULL.

    Args:
        spark: Any session.
        tables: The tables as they are now.
        changes: What happened to those that moved, by location.
        before: The versions that they moved from, by location.
    """
    found = set()
    for table in tables:
        changed = changes.get(table.location)
        if changed is None or changed.kind is not ChangeKind.SIGNED:
            continue
        columns = _partition_columns(spark, table.location, table.version)
        named = {frozenset(file.partition) for file in (*changed.added, *changed.removed)}
        if all(names == columns for names in named):
            continue
        # Delta leaves out a value that is NULL where a file goes
        left_out = all(names <= columns for names in named)
        then = before.get(table.location)
        if not left_out or then is None or _columns_then(spark, table, then) != columns:
            found.add(table.location)
    return frozenset(found)


def _columns_then(spark: SparkSession, table: TableAt, version: int) -> frozenset[str] | None:
    try:
        return _partition_columns(spark, table.location, version)
    except (Py4JJavaError, PySparkException):  # the log does not go back so far
        return None


def _partition_columns(spark: SparkSession, location: str, version: int) -> frozenset[str]:
    java = java_class(spark, "ChangedFiles")
    return frozenset(json.loads(java.partitionColumns(session_of(spark), location, version)))
