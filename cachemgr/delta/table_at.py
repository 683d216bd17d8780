"""A base table as a query reads it, as a look at its log finds it, and what came before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from cachemgr.base_state import BaseState
from cachemgr.metastore.records import BaseTableRecord

TableKind = Literal["delta", "files", "other"]


class TableSeen(Protocol):
    """A base table as Spark resolved it for a query."""

    @property
    def name(self) -> str: ...
    @property
    def location(self) -> str: ...
    @property
    def table_id(self) -> str | None: ...
    @property
    def version(self) -> int | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def state(self) -> BaseState: ...


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table that a query reads.

    `version` is what Spark would read now (None where nobody looked or there are none), `pinned`
    says that the query itself asked for that version, `elsewhere` that the table is read by a
    subquery expression or stood in a part that a cache replaced already, `later` that the version
    matters and nobody looked yet. `commit` and `committed_ms` are those of `version`, as in
    `BaseState`; a version that the query itself asked for has none.
    """

    name: str
    location: str
    table_id: str
    version: int | None
    kind: TableKind
    pinned: bool
    elsewhere: bool = False
    later: bool = False
    commit: str = ""
    committed_ms: int | None = None

    @property
    def state(self) -> BaseState:
        """The state that Spark would read now."""
        return BaseState(self.table_id, self.version, self.commit, self.committed_ms)


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


@dataclass(frozen=True, slots=True)
class Past:
    """A version that a table is past, as the table's history has it now.

    Args:
        commit: The identity of its commit; empty if the file is gone from the log.
        committed_ms: When that commit was made; None likewise.
        next_ms: When the first commit after it was made, in milliseconds since 1970; 0 if that file
            is gone, so that a lag computed from it is never too small.
        columns: The table's schema now (`schemaString`).
        columns_then: The schema at that version, if that was asked for and is still known.
    """

    commit: str
    committed_ms: int | None
    next_ms: int
    columns: str
    columns_then: str | None = None


UNKNOWN_PAST: Final = Past("", None, 0, '{"fields":[]}')
"""What is said where nobody can look now; never remembered."""
