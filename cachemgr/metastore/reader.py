"""What may be asked of the metastore. Each method sees one moment and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import func, select

from cachemgr.metastore.base_tables import BaseTableReads
from cachemgr.metastore.dump import DumpReads
from cachemgr.metastore.leases import with_losses
from cachemgr.metastore.models import (
    CacheRow,
    DecisionRow,
    GrantRow,
    GroupingSetRow,
    JoinRow,
    LeaseRow,
    PastGrantRow,
    RefreshRunRow,
)
from cachemgr.metastore.queue_reads import QueueReads
from cachemgr.metastore.record_rows import (
    cache_record,
    decision_record,
    join_record,
    lease_record,
    run_record,
    set_record,
)
from cachemgr.metastore.records import (
    CacheRecord,
    DecisionRecord,
    GroupingSetRecord,
    JoinRecord,
    LeaseRecord,
    RefreshRunRecord,
    SnapshotRecord,
    TableUsage,
    as_utc,
    name_key,
)
from cachemgr.metastore.registry_reads import RegistryReads, all_joins, snapshots_of
from cachemgr.metastore.restricted import RestrictedReads
from cachemgr.metastore.tokens import AccessReads
from cachemgr.vocabulary import Outcome, RunState


def matches_like(pattern: str, name: str) -> bool:
    """Whether a name fits the pattern of SHOW … LIKE, by Spark's rules.

    Args:
        pattern: `*` stands for any characters and `|` separates choices; case does not count.
        name: The name.

    Returns:
        True if one of the choices fits the whole name.
    """
    for choice in pattern.split("|"):
        regex = ".*".join(re.escape(part) for part in choice.strip().split("*"))
        if re.fullmatch(regex, name, re.IGNORECASE | re.DOTALL):
            return True
    return False


class Reader(RegistryReads, QueueReads, AccessReads, RestrictedReads, DumpReads, BaseTableReads):
    """Questions to the metastore; made by `open_metastore`."""

    def caches(self, include_dropped: bool = False) -> tuple[CacheRecord, ...]:
        """All caches by namespace and name; dropped ones last, if asked for."""
        query = select(CacheRow).order_by(
            CacheRow.dropped_at.isnot(None), CacheRow.namespace_key, CacheRow.name_key, CacheRow.id
        )
        if not include_dropped:
            query = query.where(CacheRow.dropped_at.is_(None))
        with self._session() as session:
            return tuple(cache_record(row) for row in session.scalars(query))

    def list_caches(self, like: str | None = None) -> tuple[CacheRecord, ...]:
        """The live caches whose name fits a pattern of SHOW … LIKE."""
        found = self.caches()
        return found if like is None else tuple(c for c in found if matches_like(like, c.name))

    def cache(self, namespace: str, name: str) -> CacheRecord | None:
        """The live cache of a name, whatever its case; None if there is none."""
        query = select(CacheRow).where(
            CacheRow.namespace_key == name_key(namespace),
            CacheRow.name_key == name_key(name),
            CacheRow.dropped_at.is_(None),
        )
        with self._session() as session:
            row = session.scalar(query)
            return cache_record(row) if row else None

    def cache_by_id(self, cache_id: str) -> CacheRecord | None:
        """The cache of an id, dropped or not; None if there is none."""
        with self._session() as session:
            row = session.get(CacheRow, cache_id)
            return cache_record(row) if row else None

    def dependencies(self) -> dict[str, tuple[str, ...]]:
        """For each live cache the ids of those that its definition names."""
        query = select(CacheRow.id, CacheRow.depends_on).where(CacheRow.dropped_at.is_(None))
        with self._session() as session:
            return {i: tuple(over or ()) for i, over in session.execute(query)}

    def cache_names(self) -> tuple[tuple[str, str], ...]:
        """Namespace and name of all caches that are not dropped."""
        query = select(CacheRow.namespace, CacheRow.name).where(CacheRow.dropped_at.is_(None))
        with self._session() as session:
            return tuple((namespace, name) for namespace, name in session.execute(query))

    def names(self, cache_ids: Collection[str]) -> dict[str, str]:
        """The qualified names of caches by id, dropped or not."""
        if not cache_ids:
            return {}
        query = select(CacheRow.id, CacheRow.namespace, CacheRow.name)
        with self._session() as session:
            rows = session.execute(query.where(CacheRow.id.in_(list(cache_ids))))
            return {i: f"{namespace}.{name}" if namespace else name for i, namespace, name in rows}

    def grouping_sets(self, cache_id: str) -> tuple[GroupingSetRecord, ...]:
        """The grouping sets of a cache, in the order of its definition."""
        query = select(GroupingSetRow).where(GroupingSetRow.cache_id == cache_id)
        with self._session() as session:
            rows = session.scalars(query.order_by(GroupingSetRow.ordinal))
            return tuple(set_record(row) for row in rows)

    def refresh(self, refresh_id: str) -> RefreshRunRecord | None:
        """One refresh run; None if there is none."""
        with self._session() as session:
            row = session.get(RefreshRunRow, refresh_id)
            runs = [run_record(row)] if row else []
            return next(iter(with_losses(session, runs)), None)

    def refreshes(
        self, cache_id: str, limit: int = 100, *, state: RunState | None = None
    ) -> tuple[RefreshRunRecord, ...]:
        """The refresh runs of a cache, newest first.

        Args:
            cache_id: The cache's id.
            limit: At most so many.
            state: Only those in this state.
        """
        wanted = [RefreshRunRow.cache_id == cache_id]
        if state is not None:
            wanted.append(RefreshRunRow.state == state.value)
        query = (
            select(RefreshRunRow)
            .where(*wanted)
            .order_by(RefreshRunRow.started_at.desc(), RefreshRunRow.fencing_token.desc())
            .limit(limit)
        )
        with self._session() as session:
            runs = [run_record(row) for row in session.scalars(query)]
            return with_losses(session, runs)

    def usage(self, cache_id: str, since: datetime | int) -> TableUsage:
        """What of a cache's table is or was read, and what refreshes left in it.

        Args:
            cache_id: The cache's id.
            since: What it served from at that moment or later counts as read.
        """
        moment = as_utc(since)
        mine = RefreshRunRow.cache_id == cache_id
        served = (
            mine,
            RefreshRunRow.state.in_((RunState.PUBLISHED.value, RunState.UNCHANGED.value)),
            # one that found nothing to do says none; one that moved its snapshot on does
            RefreshRunRow.cache_version.is_not(None),
        )
        newest = RefreshRunRow.fencing_token.desc()
        version = select(RefreshRunRow.cache_version).where(*served)
        failed = select(RefreshRunRow.id).where(
            mine,
            RefreshRunRow.state.in_(
                [s.value for s in (RunState.FAILED, RunState.SUPERSEDED, RunState.CANCELLED)]
            ),
            RefreshRunRow.finished_at <= moment,
        )
        with self._session() as session:
            then = session.scalar(
                version.where(RefreshRunRow.finished_at <= moment).order_by(newest).limit(1)
            )
            later = session.scalar(
                select(func.min(RefreshRunRow.cache_version)).where(
                    *served, RefreshRunRow.finished_at > moment
                )
            )
            known = [v for v in (then, later) if v is not None]
            return TableUsage(
                oldest=min(known, default=None),
                newest=session.scalar(version.order_by(newest).limit(1)),
                failed=session.scalar(failed.order_by(newest).limit(1)),
            )

    def snapshot(self, refresh_id: str) -> SnapshotRecord | None:
        """A refresh run with the base versions that it read; None if there is none."""
        with self._session() as session:
            return snapshots_of(session, {refresh_id}).get(refresh_id)

    def published(self, cache_id: str) -> SnapshotRecord | None:
        """The snapshot that a cache serves from; None before its first refresh."""
        with self._session() as session:
            row = session.get(CacheRow, cache_id)
            if row is None or row.published_refresh_id is None:
                return None
            return snapshots_of(session, {row.published_refresh_id}).get(row.published_refresh_id)

    def snapshots(self, refresh_ids: Collection[str]) -> dict[str, SnapshotRecord]:
        """Several refresh runs with the base versions that they read, by id."""
        with self._session() as session:
            return snapshots_of(session, set(refresh_ids))

    def lease(self, cache_id: str) -> LeaseRecord | None:
        """Who refreshes a cache now; None if there is no such cache."""
        with self._session() as session:
            row = session.get(LeaseRow, cache_id)
            return lease_record(row) if row else None

    def joins(self) -> tuple[JoinRecord, ...]:
        """All record-preserving joins by name."""
        with self._session() as session:
            return all_joins(session)

    def join(self, name: str) -> JoinRecord | None:
        """The record-preserving join of a name, whatever its case; None if there is none."""
        with self._session() as session:
            row = session.scalar(select(JoinRow).where(JoinRow.name_key == name_key(name)))
            return join_record(row) if row else None

    def grants(self, cache_id: str) -> tuple[str, ...]:
        """The principals granted on a cache, sorted; they count once it is `narrowed`."""
        query = select(GrantRow.principal).where(GrantRow.cache_id == cache_id)
        with self._session() as session:
            return tuple(sorted(session.scalars(query)))

    def past_grants(self, cache_id: str) -> dict[str, datetime]:
        """Until when principals could be answered from a cache who were granted on it once;
        `EVERYBODY` until it was narrowed. What is older than the decisions kept is forgotten."""
        query = select(PastGrantRow).where(PastGrantRow.cache_id == cache_id)
        with self._session() as session:
            return {row.principal: row.until for row in session.scalars(query)}

    def decisions(
        self,
        limit: int = 100,
        *,
        outcome: Outcome | None = None,
        session_id: str | None = None,
        query_hash: str | None = None,
        cache: str | None = None,
        since: datetime | int | None = None,
    ) -> tuple[DecisionRecord, ...]:
        """The latest decisions, newest first.

        Args:
            limit: At most so many.
            outcome: Only these.
            session_id: Only this session's.
            query_hash: Only about this query.
            cache: Only those that name this cache.
            since: Only those made at or after this moment.

        Returns:
            The decisions.
        """
        query = select(DecisionRow).order_by(DecisionRow.at.desc(), DecisionRow.id.desc())
        if outcome is not None:
            query = query.where(DecisionRow.outcome == outcome.value)
        if session_id is not None:
            query = query.where(DecisionRow.session_id == session_id)
        if query_hash is not None:
            query = query.where(DecisionRow.query_hash == query_hash)
        if since is not None:
            query = query.where(DecisionRow.at >= as_utc(since))
        found: list[DecisionRecord] = []
        with self._session() as session:
            for row in session.scalars(query.execution_options(yield_per=500)):
                if len(found) >= limit:
                    break
                if cache is None or cache in row.caches:
                    found.append(decision_record(row))
        return tuple(found)
