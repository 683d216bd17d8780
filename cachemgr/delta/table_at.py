"""A Delta table as it is now."""

from __future__ import annotations

from dataclasses import dataclass

from cachemgr.base_state import BaseState
from cachemgr.metastore.records import BaseTableRecord


@dataclass(frozen=True, slots=True)
class TableHead:
    """A Delta table at the version that a look at its log found, as `check_freshness` takes it.

    Args:
        name: Its name in the catalog.
        location: Where it lies.
        table_id: Tells a re-created table from its predecessor.
        version: The version.
        commit: The identity of that version's commit (`BaseState.commit`).
        committed_ms: When it was made, in milliseconds since 1970.
        columns: Its schema, in the JSON of the Delta protocol (`schemaString`).
        kind: Always `delta`.
    """

    name: str
    location: str
    table_id: str
    version: int
    commit: str
    committed_ms: int
    columns: str
    kind: str = "delta"

    @property
    def state(self) -> BaseState:
        """The state that it is in."""
        return BaseState(self.table_id, self.version, self.commit, self.committed_ms)


def head_of(table: BaseTableRecord, commit: str) -> TableHead:
    """The head of a table that was looked at just now, or was there once.

    Args:
        table: The table as it was seen.
        commit: The identity of the commit of its version.
    """
    return TableHead(
        table.name,
        table.location,
        table.table_id,
        table.version,
        commit,
        table.commit_timestamp_ms,
        table.columns,
    )
