"""The rows that an incremental refresh adds and takes away, of files or of the Change Data Feed."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cachemgr.delta.change_feed import CHANGE, change_rows
from cachemgr.delta.changed_files import ChangedFiles
from cachemgr.refresh.by_change.incremental import Delta


def rows_that_came(session: SparkSession, delta: Delta) -> Any:
    """A relation, as `run_select` takes it, of the rows that came to the changed table.

    Args:
        session: A session of ours.
        delta: What changed.
    """
    if delta.by_feed:
        return rows_by_feed(session, delta).where(f"{CHANGE} > 0").drop(CHANGE)
    table, files = delta.table, delta.changes.added
    return ChangedFiles(table.location, delta.since, table.version, files).plan(session)


def rows_that_went(session: SparkSession, delta: Delta) -> Any:
    """The same of the rows that went from it, by its files.

    Args:
        session: A session of ours.
        delta: What changed.
    """
    table, files = delta.table, delta.changes.removed
    return ChangedFiles(table.location, delta.since, table.version, files, True).plan(session)


def rows_by_feed(session: SparkSession, delta: Delta) -> DataFrame:
    """Those that came and those that went, told apart by `change_feed.CHANGE`.

    Args:
        session: A session of ours.
        delta: What changed.
    """
    table = delta.table
    return change_rows(session, table.location, delta.since, table.version)
