"""Refreshes of little data: one task reads, joins and groups all of it.

Each exchange between tasks is a job of its own under adaptive execution, and so is each table that
is sent round for a join. Over a few megabytes they cost more than they save, and one task needs
none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.refresh.file_stats import files_listed
from cachemgr.spark.jvm import java_class, session_of
from cachemgr.spark.tables import TableRead, run_select

# All base tables together, as stored; rows of one value take next to no bytes.
SMALL_BYTES: Final = 2 << 20
SMALL_ROWS: Final = 100_000
# None of them can change a row.
_SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
}


def is_small(session: SparkSession, tables: Iterable[TableRead]) -> bool:
    """Whether one task is enough. Runs no job: a size that the log does not tell counts as large.

    Args:
        session: Any session.
        tables: The base tables.
    """
    size = rows = 0
    for table in tables:
        files = files_listed(session, table)
        if files is None or any(file.rows is None for file in files):
            return False
        size += sum(file.bytes for file in files)
        rows += sum(file.rows or 0 for file in files)
    return size <= SMALL_BYTES and rows <= SMALL_ROWS


def plan_for_one_task(session: SparkSession) -> None:
    """Have a session of ours plan without exchanges where it can.

    Args:
        session: The session.
    """
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)


def in_one_task(session: SparkSession, table: TableRead) -> DataFrame:
    """A table's rows as one partition, so that nothing above has to bring them together.

    Args:
        session: A session of ours.
        table: The table.
    """
    tables = java_class(session, "Tables")
    plan = tables.fewFiles(session_of(session), table.location, table.version)
    return run_select(session, "SELECT * FROM __t", {"__t": plan}).coalesce(1)
