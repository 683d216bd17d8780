"""Where the base tables stand now: local ones by their logs, others by a Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from cachemgr.base_state import TableAt
from cachemgr.delta.base_commits import CommitRange, unreadable
from cachemgr.delta.local_log import UNREADABLE, LocalLog
from cachemgr.delta.past import UNKNOWN_PAST, Past
from cachemgr.telemetry import Telemetry

_LOCAL: Final = "file:"


class RemoteHeads(Protocol):
    """What reads the logs that this process cannot read by itself."""

    def look(self, seeds: Iterable[TableAt]) -> Mapping[str, TableAt]:
        """The tables at these places as they are now; those that are gone, and all while nothing
        can be asked, are left out."""
        ...

    def past(self, table: TableAt, version: int, *, columns_then: bool) -> Past:
        """A version that a table is past; see `cachemgr.serving.freshness.PastOf`."""
        ...

    def commits(self, table: TableAt, version: int) -> CommitRange:
        """The commits after a version; see `cachemgr.delta.base_commits.CommitsOf`."""
        ...


class Heads:
    """Looks at base tables.

    Args:
        remote: Reads logs that are not in local folders, or cut off there; None leaves these
            unknown.
        telemetry: Where trouble is counted and logged.
    """

    def __init__(self, remote: RemoteHeads | None = None, telemetry: Telemetry | None = None):
        self._remote = remote
        self._telemetry = telemetry or Telemetry()
        self._logs: dict[str, LocalLog] = {}

    def look(self, seeds: Iterable[TableAt]) -> dict[str, TableAt]:
        """The tables as they are now, by location; those that cannot be read are left out.

        Args:
            seeds: The tables as somebody saw them once.
        """
        found: dict[str, TableAt] = {}
        rest: list[TableAt] = []
        for seed in seeds:
            head = self._local(seed)
            if head is None:
                rest.append(seed)
            else:
                found[seed.location] = head
        if rest and self._remote is not None:
            found.update(self._remote.look(rest))
        return found

    def look_local(self, seeds: Iterable[TableAt]) -> dict[str, TableAt] | None:
        """The tables as they are now, by location; None where this process cannot tell of all of
        them by itself.

        Args:
            seeds: As for `look`.
        """
        found: dict[str, TableAt] = {}
        for seed in seeds:
            head = self._local(seed)
            if head is None:
                return None
            found[seed.location] = head
        return found

    def newest(self, location: str) -> int | None:
        """The number of the newest version of a table whose log need not say more than that: cut
        off by a checkpoint, or damaged. None where this process cannot tell.

        Args:
            location: Where it lies.

        Raises:
            OSError: The storage cannot be asked.
        """
        return self._log(location).newest() if location.startswith(_LOCAL) else None

    def is_gone(self, location: str) -> bool:
        """Whether there is no table any more in a local folder, as far as this process can tell:
        what held its folder is there still.

        Args:
            location: Where it lay.

        Raises:
            OSError: The storage cannot be asked.
        """
        return location.startswith(_LOCAL) and self._log(location).is_gone()

    def past(self, table: TableAt, version: int, *, columns_then: bool) -> Past:
        """A version that a table is past; see `cachemgr.serving.freshness.PastOf`."""
        if table.location.startswith(_LOCAL):
            return self._log(table.location).past(table, version, columns_then=columns_then)
        if self._remote is None:
            return UNKNOWN_PAST
        return self._remote.past(table, version, columns_then=columns_then)

    def commits(self, table: TableAt, version: int) -> CommitRange:
        """The commits after a version; see `cachemgr.delta.base_commits.CommitsOf`."""
        if table.location.startswith(_LOCAL):
            return self._log(table.location).commits(table, version)
        if self._remote is None:
            return unreadable("no Spark is asked here")
        return self._remote.commits(table, version)

    def _local(self, seed: TableAt) -> TableAt | None:
        """The table as its log says; None where that is not a local one, or says nothing."""
        if not seed.location.startswith(_LOCAL):
            return None
        try:
            return self._log(seed.location).head(seed)
        except UNREADABLE as error:
            self._telemetry.warn_once(
                f"log {seed.location}", f"the Delta log of {seed.name} cannot be read: {error}"
            )
            return None

    def _log(self, location: str) -> LocalLog:
        found = self._logs.get(location)
        if found is None:
            found = self._logs.setdefault(location, LocalLog(location))
        return found
