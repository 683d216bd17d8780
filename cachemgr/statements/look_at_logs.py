"""What became of base tables, told without a Spark: by their Delta logs, where these lie in local
folders. So the service and the CLI say of a cache what SHOW says of it in a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cachemgr.base_state import BaseState, TableAt
from cachemgr.delta.head_lookup import Heads
from cachemgr.delta.ranges import Ranges
from cachemgr.metastore.records import SnapshotRecord
from cachemgr.statements.status import Looked, Moved


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

    def _now(self, noted: Iterable[TableAt]) -> Mapping[str, TableAt | None]:
        """The tables as they are now, None for those that are gone."""
        found: dict[str, TableAt | None] = {}
        for seed in noted:
            if seed.location in found:  # another name of it
                continue
            head = self._heads.look_local([seed])
            if head is not None:
                found[seed.location] = head[seed.location]
            elif self._heads.is_gone(seed.location):
                found[seed.location] = None
        return found

    def _since(self, snapshot: SnapshotRecord, now: Mapping[str, TableAt | None]) -> Looked:
        versions: dict[str, BaseState | None] = {}
        moved: dict[str, Moved] = {}
        for then in snapshot.tables:
            if then.location not in now:
                continue
            table = now[then.location]
            versions[then.location] = None if table is None else table.state
            if table is not None and then.table_id == table.table_id:
                if then.version != table.version:
                    changes = self._ranges.changes(table, then.state)
                    moved[then.location] = Moved(table, changes)
        return Looked(versions, moved)
