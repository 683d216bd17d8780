"""What refreshes have read, what caches serve from, and the damage to its files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from cachemgr.metastore.models import CacheRow, RefreshRunRow, SnapshotTableRow
from cachemgr.metastore.record_rows import TABLE_COLUMNS, run_record, table_record
from cachemgr.metastore.records import (
    RefreshRunRecord,
    SnapshotRecord,
    SnapshotTableRecord,
    TableUsage,
    as_utc,
)
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import bump_revision
from cachemgr.vocabulary import RunState


class Snapshots(Part):
    """Look snapshots up; note damage to the files of those that are served."""

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

    def get(self, refresh_id: str) -> SnapshotRecord | None:
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

    def by_ids(self, refresh_ids: Collection[str]) -> dict[str, SnapshotRecord]:
        """Several refresh runs with the base versions that they read, by id."""
        with self._session() as session:
            return snapshots_of(session, set(refresh_ids))

    def note_damage(self, cache_id: str, refresh_id: str, what: str) -> bool:
        """Note down that files of a cache are gone: it answers nothing until it is refreshed.

        Args:
            cache_id: The cache's id.
            refresh_id: The refresh whose files were looked for; where another one is published by
                now, nothing is noted.
            what: What is wrong, for people.

        Returns:
            Whether that was news.
        """
        return self._change_damage(cache_id, refresh_id, CacheRow.damaged.is_(None), what)

    def lift_damage(self, cache_id: str, refresh_id: str, what: str) -> bool:
        """Take back what was noted of a cache's files: a look found them whole.

        Args:
            cache_id: The cache's id.
            refresh_id: The refresh whose files were looked at; where another one is published by
                now, nothing is changed.
            what: What was noted; where it is something else by now, nothing is changed.

        Returns:
            Whether it was taken back.
        """
        return self._change_damage(cache_id, refresh_id, CacheRow.damaged == what, None)

    def _change_damage(
        self, cache_id: str, refresh_id: str, before: ColumnElement[bool], after: str | None
    ) -> bool:
        """What is noted of the files of a published refresh, where `before` holds of it; True if
        that was so."""
        with self._transaction() as session:
            meant = (
                CacheRow.id == cache_id,
                CacheRow.published_refresh_id == refresh_id,
                CacheRow.dropped_at.is_(None),
                before,
            )
            if session.scalar(select(CacheRow.id).where(*meant)) is None:
                return False
            revision = bump_revision(session)
            changed = session.scalar(
                update(CacheRow)
                .where(*meant)
                .values(damaged=after, revision=revision)
                .returning(CacheRow.id)
                .execution_options(synchronize_session=False)
            )
            return changed is not None


def snapshots_of(session: Session, refresh_ids: Collection[str]) -> dict[str, SnapshotRecord]:
    """Refresh runs with the base versions that they read, by id."""
    ids = sorted(refresh_ids)
    runs: dict[str, RefreshRunRecord] = {}
    tables: dict[str, list[SnapshotTableRecord]] = defaultdict(list)
    # In portions: databases bound the number of parameters of one statement.
    for start in range(0, len(ids), 500):
        portion = ids[start : start + 500]
        for run in session.scalars(select(RefreshRunRow).where(RefreshRunRow.id.in_(portion))):
            runs[run.id] = run_record(run)
        read = select(SnapshotTableRow.refresh_id, *TABLE_COLUMNS)
        for refresh_id, *table in session.execute(
            read.where(SnapshotTableRow.refresh_id.in_(portion)).order_by(
                SnapshotTableRow.refresh_id, SnapshotTableRow.ordinal
            )
        ):
            tables[refresh_id].append(table_record(table))
    return {run_id: SnapshotRecord(run, tuple(tables[run_id])) for run_id, run in runs.items()}
