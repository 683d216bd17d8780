"""What sessions match against, as the metastore hands it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cachemgr.metastore.records import (
    CacheRecord,
    GroupingSetRecord,
    JoinRecord,
    RestrictedTable,
    SnapshotRecord,
)


@dataclass(frozen=True)
class RegistryEntry:
    """All that a session needs of one cache to match against it.

    A published cache comes without the plan of its definition: that of its refresh counts.
    """

    cache: CacheRecord
    grouping_sets: tuple[GroupingSetRecord, ...]
    published: SnapshotRecord | None
    grants: frozenset[str]


@dataclass(frozen=True)
class RegistryState:
    """The caches that changed after a revision, and the whole of the joins, as of one moment.

    Args:
        revision: The revision this state stands at.
        entries: Live caches changed since the revision asked for.
        live_ids: Every live cache: what a session holds besides them is to be forgotten.
        joins: All record-preserving joins.
        restricted: All restricted base tables.
        principal: Whom the service told it to; None of a metastore, which does not know.
    """

    revision: int
    entries: tuple[RegistryEntry, ...]
    live_ids: frozenset[str]
    joins: tuple[JoinRecord, ...]
    restricted: tuple[RestrictedTable, ...] = ()
    principal: str | None = None


@dataclass(frozen=True)
class RegistryMark:
    """Where a registry stands.

    Args:
        epoch: Which metastore's it is; revisions of two do not compare.
        revision: The counter that moves with each change.
    """

    epoch: str
    revision: int


@dataclass(frozen=True)
class CatalogPage:
    """A portion of what was granted to one principal or to everybody, as of one moment.

    Args:
        mark: That moment.
        entries: The live caches of this page that are so, by last change.
        changed: The ids of all caches of this page, dropped ones and those of others included.
        end: (revision, id) of the last of them, where the next page begins; None if this page
            reaches `mark`.
        live: All live caches that are so, on this page or not, and the revisions of their last
            changes.
        granted: The ids of the caches that the principal has a grant on.
        joins: All record-preserving joins.
    """

    mark: RegistryMark
    entries: tuple[RegistryEntry, ...]
    changed: tuple[str, ...]
    end: tuple[int, str] | None
    live: Mapping[str, int]
    granted: frozenset[str]
    joins: tuple[JoinRecord, ...]
