"""Bounds of whole-number columns from what Delta's log says of a version's files: no job, no file.

Only where a checksum lists the files, as it does for tables of few; what one file does not say of a
column is not known of the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from cachemgr.spark.jvm import java_class, session_of
from cachemgr.spark.tables import TableRead

Bounds = tuple[int, int]


def bounds_in_log(
    session: SparkSession, table: TableRead, names: Sequence[str]
) -> dict[str, Bounds] | None:
    """The least and the greatest value of each column; (0, 0) for one without values.

    Args:
        session: Any session.
        table: The table.
        names: The columns, of whole numbers.

    Returns:
        None where the log does not say it of each file and column.
    """
    tables = java_class(session, "Tables")
    text = tables.statistics(session_of(session), table.location, table.version)
    return None if text is None else merged_bounds(json.loads(text), names)


def merged_bounds(
    statistics: Sequence[str | None], names: Sequence[str]
) -> dict[str, Bounds] | None:
    """The same from the statistics of all files.

    >>> one = '{"numRecords":2,"minValues":{"a":1},"maxValues":{"a":5},"nullCount":{"a":0}}'
    >>> two = '{"numRecords":3,"minValues":{},"maxValues":{},"nullCount":{"a":3}}'
    >>> merged_bounds([one, two], ["a"])
    {'a': (1, 5)}
    >>> merged_bounds([one, None], ["a"]) is None
    True
    """
    files = [json.loads(text) if text else {} for text in statistics]
    found: dict[str, Bounds] = {}
    for name in names:
        bounds: list[int] = []
        for file in files:
            of_file = _bounds(file, name)
            if of_file is None:
                return None
            bounds += of_file
        found[name] = (min(bounds), max(bounds)) if bounds else (0, 0)
    return found


def _bounds(file: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    """Of one file; empty where all is NULL."""
    rows = file.get("numRecords")
    nulls = file.get("nullCount", {}).get(name)
    if rows is not None and rows == nulls:
        return ()
    low, high = (file.get(side, {}).get(name) for side in ("minValues", "maxValues"))
    whole = isinstance(low, int) and isinstance(high, int)
    return (low, high) if whole else None
