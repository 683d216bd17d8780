"""A Delta table as it is now."""

from __future__ import annotations

from dataclasses import dataclass

from cachemgr.metastore.records import BaseTableRecord


@dataclass(frozen=True, slots=True)
class TableHead:
    """A Delta table at the version that a look at its log found, as `check_freshness` takes it.

    Args:
        name: Its name in the catalog.
        location: Where it lies.
        table_id: Tells a re-created table from its predecessor.
        version: The version.
        columns: Its schema, in the JSON of the Delta protocol (`schemaString`).
        kind: Always `delta`.
    """

    name: str
    location: str
    table_id: str
    version: int
    columns: str
    kind: str = "delta"


def head_of(table: BaseTableRecord) -> TableHead:
    """The head of a table that was looked at just now, or was there once."""
    return TableHead(table.name, table.location, table.table_id, table.version, table.columns)
