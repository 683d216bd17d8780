"""The rows of files that were appended to a table between two of its versions, as the later one has
them: mapped columns, partition values, deletion vectors and widened types included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes, DataFile
from cachemgr.jvm.loader import java_class, session_of


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """Files of one table.

    Args:
        location: The table.
        since: The version after which they were added.
        version: The version whose schema they are read by.
        files: The files, in the order of the log.
    """

    location: str
    since: int
    version: int
    files: tuple[DataFile, ...]

    def plan(self, spark: SparkSession) -> Any:
        """A logical plan of the JVM that reads them, as `run_select` takes it.

        Raises:
            py4j.protocol.Py4JJavaError: The log does not hold them any more.
        """
        found = java_class(spark, "AddedFiles")
        return found.rows(
            session_of(spark), self.location, self.since, self.version, self._keys(spark)
        )

    def statistics(self, spark: SparkSession) -> str:
        """What their writers said of their columns; see `cachemgr.refresh.file_stats`."""
        found = java_class(spark, "AddedFiles")
        text: str = found.statistics(
            session_of(spark), self.location, self.since, self.version, self._keys(spark)
        )
        return text

    def _keys(self, spark: SparkSession) -> Any:
        return _strings(spark, ("\n".join(file.key) for file in self.files))


def gone_files(spark: SparkSession, changes: Mapping[str, Changes]) -> tuple[str, ...]:
    """The appended files that are not there any more, as VACUUM leaves it. Only those that are no
    files of the table any more are looked for, one look each.

    Args:
        spark: Any session.
        changes: What happened to tables, by location.
    """
    found: list[str] = []
    for place, changed in changes.items():
        if changed.kind is ChangeKind.APPENDS and changed.code is ChangeCode.RANGE_REWRITTEN:
            paths = _strings(spark, (file.path for file in changed.added))
            found += json.loads(
                java_class(spark, "AddedFiles").missing(session_of(spark), place, paths)
            )
    return tuple(found)


def _strings(spark: SparkSession, texts: Iterable[str]) -> Any:
    jvm: Any = spark._jvm
    found = jvm.java.util.ArrayList()
    for text in texts:
        found.add(text)
    return found
