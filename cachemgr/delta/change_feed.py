"""A table's Change Data Feed between two of its versions: the rows that came and those that went.

An update that is scattered over a table's files changes few rows of each, and the files that came
and went hold all of them; the feed holds the changed rows alone. It is used where the log says that
it was switched on all the while and its files are there; rows that came and went again stand in it
twice, and cancel out as they are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cachemgr.base_state import TableAt
from cachemgr.delta.changed_files import MOST_FILES, missing_files
from cachemgr.delta.changes import ChangeKind, Changes
from cachemgr.delta.places import as_path
from cachemgr.jvm.loader import java_class, session_of
from matcher.render.select import quote

CHANGE: Final = "_change_type"
"""1 for a row that came, -1 for one that went. The table itself has no column of this name: Delta
keeps it for the feed's own, which says the same by `insert`, `update_postimage`, `delete` and
`update_preimage`."""

_META: Final = (CHANGE, "_commit_version", "_commit_timestamp")
_WENT: Final = ("delete", "update_preimage")


def change_rows(spark: SparkSession, location: str, since: int, version: int) -> DataFrame:
    """The rows that came to a table and those that went from it, with its columns and `CHANGE`, in
    one scan.

    Args:
        spark: A session of ours.
        location: The table.
        since: The version after which they came or went.
        version: The version until which.

    Raises:
        pyspark.errors.PySparkException: The feed cannot be read.
    """
    java_class(spark, "Tables").readLocally(session_of(spark), location)
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    rows = reader.option("startingVersion", since + 1).option("endingVersion", version)
    found = rows.load(as_path(location))
    went = ", ".join(f"'{kind}'" for kind in _WENT)
    # as it is, Delta tries to push a condition on it into the files, cannot, and logs an error
    sign = F.expr(f"IF(concat({CHANGE}, '') IN ({went}), -1, 1)").alias(CHANGE)
    return found.select(*(quote(name) for name in found.columns if name not in _META), sign)


def feeds_kept(
    spark: SparkSession, tables: Iterable[TableAt], changes: Mapping[str, Changes]
) -> frozenset[str]:
    """The tables whose feed tells what changed: it was switched on all the while, and each of its
    files is there.

    Args:
        spark: A session of ours.
        tables: The tables as they are now.
        changes: What happened to those that moved, by location.
    """
    found = set()
    for table in tables:
        changed = changes.get(table.location)
        if changed is None or changed.kind is not ChangeKind.SIGNED or not changed.change_rows:
            continue
        if _is_kept(spark, table, changed):
            found.add(table.location)
    return frozenset(found)


def _is_kept(spark: SparkSession, table: TableAt, changed: Changes) -> bool:
    java, place = java_class(spark, "ChangedFiles"), table.location
    if not java.keepsFeed(session_of(spark), place, table.version):
        return False
    files = changed.change_rows or ()
    if len({file.path for file in files}) > MOST_FILES:
        return False
    return not missing_files(spark, place, files)
