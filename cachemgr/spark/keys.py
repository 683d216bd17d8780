"""Which unique keys hold in what a query itself reads, beside the caches.

A cache knows of the joins at its own snapshot (`cachemgr.spark.served`). A table that a rewrite
joins to it is read as the query reads it, so its key counts only if it was found unique in that
very state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cachemgr.metastore.records import JoinRecord, JoinState
from cachemgr.spark.freshness import TableSeen
from matcher.ir import RecordPreservingJoin


def keys_seen(
    joins: Iterable[JoinRecord], seen: Mapping[str, Sequence[TableSeen]]
) -> tuple[RecordPreservingJoin, ...]:
    """The joins whose right side has a unique key in what a query reads: they were validated at
    the very state of it that the query sees, wherever it reads it.

    Args:
        joins: The joins as they are declared now.
        seen: The query's tables by location.
    """
    found = []
    for join in joins:
        place = join.right.location
        states = {(table.table_id, table.version) for table in seen.get(place, ())}
        checked = join.validated_versions.get(place, (None, None))
        if join.state is JoinState.VALID and None not in checked and states == {tuple(checked)}:
            found.append(RecordPreservingJoin(join.name, join.left.location, place, join.keys))
    return tuple(found)


def validated_places(joins: Iterable[JoinRecord]) -> frozenset[str]:
    """The tables of which some key was found unique.

    Args:
        joins: The joins as they are declared now.
    """
    return frozenset(j.right.location for j in joins if j.state is JoinState.VALID)
