"""The rows that an incremental refresh adds and takes away, of files or of the Change Data Feed."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from cachemgr.delta.change_feed import change_rows
from cachemgr.delta.changed_files import ChangedFiles
from cachemgr.refresh.by_change.incremental import Delta


def rows_that_came(session: SparkSession, delta: Delta) -> Any:
    """A relation, as `run_select` takes it, of the rows that came to the changed table.

    Args:
        session: A session of ours.
        delta: What changed.
    """
    table = delta.table
    if delta.by_feed:
        return change_rows(session, table.location, delta.since, table.version, went=False)
    files = delta.changes.added
    return ChangedFiles(table.location, delta.since, table.version, files).plan(session)


def rows_that_went(session: SparkSession, delta: Delta) -> Any:
    """The same of the rows that went from it; None where none did.

    Args:
        session: A session of ours.
        delta: What changed.
    """
    table = delta.table
    if not delta.is_signed:
        return None
    if delta.by_feed:
        return change_rows(session, table.location, delta.since, table.version, went=True)
    files = delta.changes.removed
    return ChangedFiles(table.location, delta.since, table.version, files, True).plan(session)
