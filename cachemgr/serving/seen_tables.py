"""The tables of a query as it sees them: their versions are looked up when somebody asks for them.

Each look lists a log. Most queries that no cache answers are refused for what they compute, and
whether a cache is fresh never comes up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from cachemgr.base_state import BaseState, TableAt

# "managed": a Delta table whose commits are managed by a catalog, so that its log does not tell
TableKind = Literal["delta", "managed", "files", "other"]


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table as a query names it: by name and place, resolved to a version or not.

    No `TableAt`: it may be no Delta table, or one whose version nobody looked at yet or ever will,
    and it says how the query came by it. `by_location` makes a `TableAt` of one with a version.

    Args:
        name: Its name in the catalog.
        location: Where it lies; empty where that is no folder.
        table_id: The id of a Delta table, else empty.
        version: What Spark would read now; None where nobody looked or there are none.
        kind: What Spark reads it as.
        pinned: The query itself asked for that version.
        elsewhere: It is read by a subquery expression, or stood in a part that a cache replaced
            already.
        later: The version matters and nobody looked yet.
        commit: The identity of that version's commit, as in `BaseState`; a version that the query
            itself asked for has none.
        committed_ms: When it was made, in milliseconds since 1970; likewise.
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

    def at(self, state: BaseState) -> TableAt | TableRef:
        """The table in a state; itself where there are no versions or this one is not known."""
        table_id, version, commit, made = state
        if self.kind != "delta" or table_id is None or version is None:
            return self
        return TableAt(self.name, self.location, table_id, version, made, commit)


# what was looked up, by location
Versions = Mapping[str, BaseState]
# the tables of a query by location, each at a version if it has one
Seen = Mapping[str, Sequence[TableAt | TableRef]]


def by_location(
    tables: Iterable[TableRef], versions: Versions = MappingProxyType({})
) -> dict[str, list[TableAt | TableRef]]:
    """The tables of a query by their place; one place may be read at two versions.

    Args:
        tables: The tables.
        versions: What was looked up since: all those of the tables that were to be.
    """
    found: dict[str, list[TableAt | TableRef]] = {}
    for table in tables:
        state = versions[table.location] if table.later else table.state
        found.setdefault(table.location, []).append(table.at(state))
    return found


class SeenTables(Mapping[str, Sequence[TableAt | TableRef]]):
    """The tables by location, looked up when one is asked for.

    Args:
        tables: The tables, some of them without a version.
        look: Gives the versions of those to look at later: all at once, so that they are of one
            moment.
    """

    def __init__(self, tables: Sequence[TableRef], look: Callable[[], Versions]) -> None:
        self._tables = tables
        self._look = look
        self._found: Seen | None = None

    @property
    def places(self) -> frozenset[str]:
        """The locations, without a look."""
        return frozenset(table.location for table in self._tables)

    @property
    def are_looked_up(self) -> bool:
        """Whether asking costs nothing."""
        return self._found is not None or not any(table.later for table in self._tables)

    def __getitem__(self, place: str) -> Sequence[TableAt | TableRef]:
        return self._by_location()[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_location())

    def __len__(self) -> int:
        return len(self.places)

    def _by_location(self) -> Seen:
        if self._found is None:
            versions = {} if self.are_looked_up else self._look()
            self._found = by_location(self._tables, versions)
        return self._found
