"""The tables of a query as it sees them: their versions are looked up when somebody asks for them.

Each look lists a log. Most queries that no cache answers are refused for what they compute, and
whether a cache is fresh never comes up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cachemgr.base_state import BaseState
from cachemgr.delta.table_at import TableSeen
from cachemgr.serving.freshness import by_location

if TYPE_CHECKING:
    from cachemgr.delta.table_at import TableRef

# what was looked up, by location
Versions = Mapping[str, BaseState]


class SeenTables(Mapping[str, list[TableSeen]]):
    """The tables by location; one place may be read at two versions.

    Args:
        tables: The tables, some of them without a version.
        look: Gives the versions of those to look at later: all at once, so that they are of one
            moment.
    """

    def __init__(self, tables: Sequence[TableRef], look: Callable[[], Versions]) -> None:
        self._tables = tables
        self._look = look
        self._found: dict[str, list[TableSeen]] | None = None

    @property
    def places(self) -> frozenset[str]:
        """The locations, without a look."""
        return frozenset(table.location for table in self._tables)

    @property
    def are_looked_up(self) -> bool:
        """Whether asking costs nothing."""
        return self._found is not None or not any(table.later for table in self._tables)

    def __getitem__(self, place: str) -> list[TableSeen]:
        return self._by_location()[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_location())

    def __len__(self) -> int:
        return len(self.places)

    def _by_location(self) -> dict[str, list[TableSeen]]:
        if self._found is None:
            versions = {} if self.are_looked_up else self._look()
            self._found = by_location(_at(table, versions) for table in self._tables)
        return self._found


def _at(table: TableRef, versions: Versions) -> TableRef:
    if not table.later:
        return table
    found = versions[table.location]
    return replace(table, **found._asdict(), later=False)
