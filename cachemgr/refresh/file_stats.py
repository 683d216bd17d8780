"""What Delta's log says of the files of a table of few, without reading one: their size, rows and
bounds of whole-number columns. What one file does not say is not known of the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from cachemgr.delta.tables import TableRead
from cachemgr.jvm.loader import java_class, session_of
from matcher.model.integer_bounds import Bounds

_ANY_SIZE: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file of a table: its length, and what its writer said of its columns."""

    bytes: int
    statistics: Mapping[str, Any]

    @property
    def rows(self) -> int | None:
        """How many it holds, deleted ones among them; None if its writer did not say."""
        found = self.statistics.get("numRecords")
        return found if isinstance(found, int) else None


def files_listed(
    session: SparkSession, table: TableRead, most_bytes: int = _ANY_SIZE
) -> tuple[ListedFile, ...] | None:
    """A table's files; None where its checksum does not say that they are few. One job, once for
    each version of the table.

    Args:
        session: Any session.
        table: The table.
        most_bytes: None too where its checksum says that it is larger.
    """
    tables = java_class(session, "Tables")
    text = tables.filesListed(session_of(session), table.location, table.version, most_bytes)
    return None if text is None else read_files(text)


def of_few_files(session: SparkSession, table: TableRead) -> Any:
    """A table's rows as a plan that lists its files once, where they are few: no job of a query
    over it has to look for them.

    Args:
        session: Any session.
        table: The table.
    """
    tables = java_class(session, "Tables")
    return tables.fewFiles(session_of(session), table.location, table.version)


def read_files(text: str) -> tuple[ListedFile, ...]:
    """Files as `Tables.java` and `ChangedFiles.java` tell of them.

    Args:
        text: A line of JSON: whether columns are mapped, and the bytes and statistics of each file.

    >>> text = json.dumps([False, [[10, '{"numRecords":3}'], [20, None]]])
    >>> [file.rows for file in read_files(text)]
    [3, None]
    """
    mapped, files = json.loads(text)
    return tuple(ListedFile(size, _statistics(said, mapped)) for size, said in files)


def _statistics(text: str | None, mapped: bool) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text or "{}")
    return {k: v for k, v in found.items() if k == "numRecords"} if mapped else found


def bounds_listed(files: Sequence[ListedFile], names: Sequence[str]) -> dict[str, Bounds] | None:
    """The least and the greatest value of each column; (0, 0) for one without values.

    Args:
        files: All files of the table.
        names: The columns, of whole numbers.

    Returns:
        None where the statistics do not say it of each file and column.

    >>> of = lambda text: ListedFile(1, json.loads(text))
    >>> one = of('{"numRecords":2,"minValues":{"a":1},"maxValues":{"a":5},"nullCount":{"a":0}}')
    >>> two = of('{"numRecords":3,"minValues":{},"maxValues":{},"nullCount":{"a":3}}')
    >>> bounds_listed([one, two], ["a"])
    {'a': (1, 5)}
    >>> bounds_listed([one, of("{}")], ["a"]) is None
    True
    """
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


def _bounds(file: ListedFile, name: str) -> tuple[int, ...] | None:
    """Of one file; empty where all is NULL."""
    said = file.statistics
    nulls = said.get("nullCount", {}).get(name)
    if file.rows is not None and file.rows == nulls:
        return ()
    low, high = (said.get(side, {}).get(name) for side in ("minValues", "maxValues"))
    whole = isinstance(low, int) and isinstance(high, int)
    return (low, high) if whole else None
