"""What sessions match against: the whole registry, or what one principal may use of it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sqlalchemy import Select, and_, or_, select
from sqlalchemy.orm import Session, defer

from cachemgr.metastore.joins import all_joins
from cachemgr.metastore.models import CacheRow, GrantRow, GroupingSetRow, RegistryRevisionRow
from cachemgr.metastore.record_rows import cache_record, set_record
from cachemgr.metastore.records import GroupingSetRecord, SnapshotRecord
from cachemgr.metastore.registry_records import (
    CatalogPage,
    RegistryEntry,
    RegistryMark,
    RegistryState,
)
from cachemgr.metastore.snapshots import snapshots_of
from cachemgr.metastore.tables import restricted_tables
from cachemgr.metastore.transactions import Part

_LIVE = CacheRow.dropped_at.is_(None)


class Registry(Part):
    """The caches with all that matching needs."""

    def revision(self) -> int:
        """The counter that moves with every change to what sessions match."""
        return self.mark().revision

    def mark(self) -> RegistryMark:
        """Where the registry stands."""
        with self._session() as session:
            return registry_mark(session)

    def state(self, since: int = 0) -> RegistryState:
        """What a session needs to match, as of one moment and in a fixed number of queries.

        Args:
            since: The revision that the session stands at; 0 asks for everything.

        Returns:
            The live caches changed since, and all joins.
        """
        with self._session() as session:
            revision = registry_mark(session).revision
            live_ids = frozenset(session.scalars(select(CacheRow.id).where(_LIVE)))
            changed = select(CacheRow.id).where(_LIVE, CacheRow.revision > since)
            return RegistryState(
                revision,
                _entries(session, changed),
                live_ids,
                all_joins(session),
                restricted_tables(session),
            )

    def changed_at(self, revision: int) -> tuple[str, ...]:
        """The ids of the caches that changed last at a revision, dropped ones among them."""
        with self._session() as session:
            found = select(CacheRow.id).where(CacheRow.revision == revision)
            return tuple(session.scalars(found))

    def page(self, principal: str, since: int, after: str | None, limit: int) -> CatalogPage:
        """One portion of what was granted to a principal or to everybody, in the order of the
        caches' last changes. What a restricted base table forbids is left to
        `cachemgr.access.grants`.

        Pages may be read while caches change: what changes moves to a later page, so whoever has
        read to the end stands at the mark of the last page.

        Args:
            principal: Who.
            since: Leave out what changed last at an earlier revision than this.
            after: And at this one, the caches with lesser or equal ids; None leaves out all.
            limit: How many caches to look at.

        Returns:
            The page.
        """
        beyond = CacheRow.revision > since
        if after is not None:
            beyond = or_(beyond, and_(CacheRow.revision == since, CacheRow.id > after))
        with self._session() as session:
            mark = registry_mark(session)
            granted = frozenset(
                session.scalars(select(GrantRow.cache_id).where(GrantRow.principal == principal))
            )
            every = select(CacheRow.id, CacheRow.revision, CacheRow.narrowed).where(_LIVE)
            live = {
                row.id: row.revision
                for row in session.execute(every)
                if not row.narrowed or row.id in granted
            }
            portion = (
                select(CacheRow.id, CacheRow.revision)
                .where(beyond)
                .order_by(CacheRow.revision, CacheRow.id)
                .limit(limit)
            )
            looked_at = [(row.revision, row.id) for row in session.execute(portion)]
            mine = [cache_id for _, cache_id in looked_at if cache_id in live]
            found = _entries(session, select(CacheRow.id).where(CacheRow.id.in_(mine)))
            return CatalogPage(
                mark=mark,
                entries=tuple(sorted(found, key=lambda e: (e.cache.revision, e.cache.id))),
                changed=tuple(cache_id for _, cache_id in looked_at),
                end=looked_at[-1] if len(looked_at) == limit else None,
                live=live,
                granted=granted,
                joins=all_joins(session),
            )


def registry_mark(session: Session) -> RegistryMark:
    """Which metastore this is, and the revision it stands at."""
    row = session.execute(select(RegistryRevisionRow.epoch, RegistryRevisionRow.revision)).first()
    return RegistryMark("", 0) if row is None else RegistryMark(row.epoch, row.revision)


def _entries(session: Session, ids: Select[Any]) -> tuple[RegistryEntry, ...]:
    published = CacheRow.published_refresh_id.is_not(None)
    wanted = select(CacheRow).where(CacheRow.id.in_(ids))
    rows = [
        *session.scalars(wanted.where(~published)),
        # what counts is the plan of their refresh: theirs would be parsed for nothing
        *session.scalars(wanted.where(published).options(defer(CacheRow.plan))),
    ]
    sets: dict[str, list[GroupingSetRecord]] = defaultdict(list)
    for set_row in session.scalars(
        select(GroupingSetRow)
        .where(GroupingSetRow.cache_id.in_(ids))
        .order_by(GroupingSetRow.cache_id, GroupingSetRow.ordinal)
    ):
        sets[set_row.cache_id].append(set_record(set_row))
    grants: dict[str, set[str]] = defaultdict(set)
    for grant in session.scalars(select(GrantRow).where(GrantRow.cache_id.in_(ids))):
        grants[grant.cache_id].add(grant.principal)
    snapshots = snapshots_of(
        session, {r.published_refresh_id for r in rows if r.published_refresh_id}
    )
    return tuple(
        _entry(
            row,
            tuple(sets[row.id]),
            snapshots.get(row.published_refresh_id or ""),
            frozenset(grants[row.id]),
        )
        for row in rows
    )


def _entry(
    row: CacheRow,
    sets: tuple[GroupingSetRecord, ...],
    published: SnapshotRecord | None,
    grants: frozenset[str],
) -> RegistryEntry:
    planned = published is not None and published.run.plan is not None
    return RegistryEntry(cache_record(row, with_plan=not planned), sets, published, grants)
