"""The cache's own Delta log: its head, what one commit says, and putting an older version back.

Commits are read as the JSON that Delta wrote: that is what other readers will believe, and one
commit of a full refresh lists every file with its rows, bytes and column statistics, so nothing has
to be computed to know them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cachemgr.delta.base_columns import names_by_physical
from cachemgr.delta.commits import Commit, Head, parse_commit
from cachemgr.jvm.classes import class_on_path
from cachemgr.jvm.loader import java_class, session_of

# Between two commits of rows stand few others: restores, properties.
LOOK_BACK = 20
METADATA_KEY = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True, slots=True)
class TableShape:
    """What a Delta table looks like now."""

    schema: StructType
    properties: Mapping[str, str]
    partition_by: tuple[str, ...]


def _log(spark: SparkSession, location: str) -> Any:
    logs = class_on_path(spark._jvm, "org.apache.spark.sql.delta.DeltaLog")
    return logs.forTable(spark._jsparkSession, location)


def _snapshot(spark: SparkSession, location: str) -> Any:
    none = class_on_path(spark._jvm, "scala.Option").empty()
    return _log(spark, location).update(False, none, none)


def head(spark: SparkSession, location: str) -> Head | None:
    """The newest commit at `location`, None if there is no Delta table."""
    version = int(_snapshot(spark, location).version())
    if version < 0:
        return None
    return Head(version, read_commit(spark, location, version).stamp)


def shape(spark: SparkSession, location: str) -> TableShape:
    """Schema, properties and partition columns of the newest version."""
    metadata = _snapshot(spark, location).metadata()
    properties: dict[str, str] = {}
    entries = metadata.configuration().iterator()
    while entries.hasNext():
        pair = entries.next()
        properties[pair._1()] = pair._2()
    partition_by = []
    columns = metadata.partitionColumns().iterator()
    while columns.hasNext():
        partition_by.append(str(columns.next()))
    return TableShape(
        StructType.fromJson(json.loads(metadata.schemaString())), properties, tuple(partition_by)
    )


def size_in_bytes(spark: SparkSession, location: str) -> int:
    """Bytes of the newest version at `location`, 0 if there is none."""
    return int(java_class(spark, "Tables").bytes(session_of(spark), location))


def read_ahead(spark: SparkSession, location: str) -> None:
    """Have Delta compute the state of the newest version, on a thread of its own: it needs it
    before it writes under a transaction number. Nothing is waited for, nothing fails here.

    Args:
        spark: The session of ours that is about to write; the job carries its thread's tags.
        location: The table.
    """
    java_class(spark, "Tables").readAhead(session_of(spark), location)


def read_commit(spark: SparkSession, location: str, version: int) -> Commit:
    """What commit `version` wrote.

    A commit that is not ours, or whose file was cleaned up, has an empty stamp: it can then be
    neither published nor adopted.
    """
    log = _log(spark, location)
    names = class_on_path(spark._jvm, "org.apache.spark.sql.delta.util.FileNames")
    path = names.unsafeDeltaFile(log.logPath(), version)
    conf = log.newDeltaHadoopConf()
    if not path.getFileSystem(conf).exists(path):
        return Commit(version, {}, None, ())
    text: str = log.store().read(path, conf).mkString("\n")
    # a table of ours is mapped by an earlier release, or by a property such as UniForm's
    schema = log.unsafeVolatileSnapshot().metadata().schemaString()
    return parse_commit(version, text, names_by_physical(schema))


def last_number(spark: SparkSession, location: str, app_id: str, head: int) -> int:
    """The number of the last commit that an application made, as far as the last commits tell.

    Args:
        spark: Any session.
        location: The table.
        app_id: The application: a cache's id.
        head: The newest version.

    Returns:
        The number, 0 if none of the last commits is the application's. Numbers only grow, so the
        newest one is the greatest.
    """
    for version in range(head, max(-1, head - LOOK_BACK), -1):
        txn = read_commit(spark, location, version).txn
        if txn is not None and txn[0] == app_id:
            return txn[1]
    return 0


def stamp_text(content: Mapping[str, Any]) -> str:
    """`content` as the userMetadata of a commit of ours."""
    return json.dumps({"by": "relational-cache", **content}, sort_keys=True)


def restore(session: SparkSession, location: str, version: int, content: Mapping[str, Any]) -> None:
    """Put `version` back on top, in a session of our own.

    Args:
        session: A session of ours; RESTORE takes its metadata from a setting only, which in a
            user's session would end up in the history of the user's own tables.
        location: The cache's table.
        version: The version whose rows the table shall have.
        content: What the commit says about itself.
    """
    session.conf.set(METADATA_KEY, stamp_text(content))
    try:
        DeltaTable.forPath(session, location).restoreToVersion(version)
    finally:
        session.conf.unset(METADATA_KEY)
