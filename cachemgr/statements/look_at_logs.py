"""What became of base tables, told without a Spark: by their Delta logs, where these lie in local
folders. So the service and the CLI say of a cache what SHOW says of it in a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cachemgr.base_state import BaseState, TableAt
from cachemgr.causes import cause_of
from cachemgr.delta.base_columns import kept_columns
from cachemgr.delta.head_lookup import Heads
from cachemgr.delta.local_log import UNREADABLE
from cachemgr.delta.ranges import Ranges
from cachemgr.metastore.records import SnapshotRecord
from cachemgr.statements.status import Looked, Moved


@dataclass(slots=True)
class _Now:
    """Base tables as they are now: those whose logs tell, the places where there is none any more,
    the newest version of those of which no more is told, and why some cannot be asked."""

    tables: dict[str, TableAt] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    newest: dict[str, int] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


class LookAtLogs:
    """Looks at the base tables of snapshots; safe for several threads.

    Args:
        heads: Reads the logs.
    """

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        self._ranges = Ranges(heads.commits)

    def at(
        self, snapshots: Iterable[SnapshotRecord], noted: Iterable[TableAt]
    ) -> Mapping[str, Looked]:
        """What became of the tables of each snapshot, by the id of its refresh.

        Args:
            snapshots: What was read.
            noted: The base tables, each as somebody saw it once. What is not among them, and what
                lies elsewhere, is not looked at.
        """
        now = self._now(noted)
        return {snapshot.run.id: self._since(snapshot, now) for snapshot in snapshots}

    def _now(self, noted: Iterable[TableAt]) -> _Now:
        found = _Now()
        for place, seed in {seed.location: seed for seed in noted}.items():
            try:
                self._ask(found, place, seed)
            except OSError as error:
                found.unread[place] = cause_of(error)
        return found

    def _ask(self, found: _Now, place: str, seed: TableAt) -> None:
        table = self._head(seed)
        if table is not None:
            found.tables[place] = table
        elif (newest := self._heads.newest(place)) is not None:
            found.newest[place] = newest
        elif self._heads.is_gone(place):
            found.gone.add(place)

    def _head(self, seed: TableAt) -> TableAt | None:
        """A table as it is now; None where its log does not tell here."""
        found = self._heads.look_local([seed])
        if found is None:
            return None
        table = found[seed.location]
        try:
            kept_columns(table.columns, ())  # a log that somebody damaged may hold anything
        except UNREADABLE:
            return None
        return table

    def _since(self, snapshot: SnapshotRecord, now: _Now) -> Looked:
        versions: dict[str, BaseState | None] = {}
        moved: dict[str, Moved] = {}
        for then in snapshot.tables:
            table = now.tables.get(then.location)
            if table is not None:
                versions[then.location] = table.state
                if then.table_id == table.table_id and then.version != table.version:
                    changes = self._ranges.changes(table, then.state)
                    moved[then.location] = Moved(table, changes)
            elif then.location in now.gone:
                versions[then.location] = None
        return Looked(versions, moved, now.newest, now.unread)
