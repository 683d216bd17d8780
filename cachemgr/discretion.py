"""What is told of rows that not everybody may see: neither values nor counts.

A definition is chosen by whoever writes it, so the number of rows under `WHERE name LIKE 'A%'`
answers a question about the table, and so does an error that quotes a value. Both are for those
who may be answered from the cache (`cachemgr.access.may_use`), whatever their role.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from cachemgr.access import keys_of, may_use, reads_of, restricted_keys
from cachemgr.metastore.records import (
    CacheRecord,
    GroupingSetRecord,
    JoinRecord,
    RefreshRunRecord,
    RestrictedTable,
    SnapshotRecord,
)
from cachemgr.metastore.store import Metastore

_CODE: Final = re.compile(r"\[[A-Z0-9_]+(?:\.[A-Z0-9_]+)*\]")


class Discretion:
    """What one principal may be told, as the metastore stands when this is made.

    Args:
        metastore: Where grants and restricted tables are.
        principal: Who is told.
    """

    def __init__(self, metastore: Metastore, principal: str) -> None:
        self._reader = metastore.reader
        self._principal = principal
        marks = metastore.reader.restricted_tables()
        self._marked = marked_keys(marks)
        self._reads: Mapping[str, frozenset[str]] = {}
        self._restricted: Mapping[str, str] = {}
        if marks:
            entries = metastore.reader.registry().entries
            self._reads = {entry.cache.id: reads_of(entry) for entry in entries}
            self._restricted = restricted_keys(marks, self._reads.items())

    def may_know(self, cache: CacheRecord) -> bool:
        """Whether he may know how many rows a cache has, and what its refreshes stumbled over."""
        if not cache.narrowed and not self._restricted:
            return True
        grants = self._reader.grants(cache.id) if cache.narrowed else None
        # one that is dropped, or came since, is not among those that were read
        reads = self._reads.get(cache.id)
        if reads is None and self._restricted:
            return False
        reason = may_use(self._principal, cache.name, grants, reads or (), self._restricted)
        return reason is None

    def run(self, run: RefreshRunRecord, cache: CacheRecord) -> RefreshRunRecord:
        """A refresh as he may be told of it."""
        if self.may_know(cache):
            return run
        return replace(run, rows=None, bytes=None, error=_code_of(run.error))

    def snapshot(self, snapshot: SnapshotRecord, cache: CacheRecord) -> SnapshotRecord:
        """A published snapshot as he may be told of it."""
        return replace(snapshot, run=self.run(snapshot.run, cache))

    def sets(
        self, sets: tuple[GroupingSetRecord, ...], cache: CacheRecord
    ) -> tuple[GroupingSetRecord, ...]:
        """The stored grouping sets as he may be told of them."""
        if self.may_know(cache):
            return sets
        return tuple(replace(one, rows=None, bytes=None) for one in sets)

    def join(self, join: JoinRecord) -> JoinRecord:
        """A join as anybody may be told of it: grants are on caches, so nobody has one here."""
        if join.message is None or not is_marked(join, self._marked):
            return join
        return replace(join, message=untold(join.name))


def marked_keys(marks: tuple[RestrictedTable, ...]) -> frozenset[str]:
    """The places and table ids of restricted base tables."""
    return frozenset(restricted_keys(marks, ()))


def is_marked(join: JoinRecord, marked: frozenset[str]) -> bool:
    """Whether one of a join's tables is restricted.

    Args:
        join: The join.
        marked: From `marked_keys`.
    """
    keys = {key for side in (join.left, join.right) for key in keys_of(side.location)}
    keys |= {side.table_id for side in (join.left, join.right) if side.table_id is not None}
    return not marked.isdisjoint(keys)


def untold(join: str) -> str:
    """What is said where a restricted table contradicts a join.

    Args:
        join: Its name.
    """
    return (
        f"record-preserving join {join} does not hold; what contradicts it is not told, since a "
        f"table of it is restricted: correct the data and run VALIDATE RECORD PRESERVING JOIN "
        f"{join}"
    )


def _code_of(error: str | None) -> str | None:
    """The code of an error whose text may quote rows."""
    if error is None:
        return None
    code = _CODE.match(error)
    told = "the refresh failed; why is told to those granted on the cache"
    return f"{code[0]} {told}" if code else told
