"""The caches: what people declared, and the grouping sets of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime
from operator import eq
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cachemgr.errors import AlreadyExistsError, ConflictError, ErrorCode, MetastoreError
from cachemgr.metastore.dependants import (
    Alike,
    refuse_broken_order,
    refuse_with_dependants,
    take_over,
)
from cachemgr.metastore.grants import principals_of
from cachemgr.metastore.models import (
    CacheRow,
    CommitNumberRow,
    GrantRow,
    GroupingSetRow,
    LeaseRow,
    RefreshRequestRow,
    RefreshRunRow,
    ScheduleRow,
)
from cachemgr.metastore.record_rows import (
    cache_record,
    cache_row,
    cache_values,
    set_record,
    set_rows,
)
from cachemgr.metastore.records import CacheRecord, GroupingSetRecord, as_utc, name_key
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import bump_revision, change_schedule, live_cache
from cachemgr.vocabulary import RunState


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


class Caches(Part):
    """Look caches up; create, change, rename and drop them."""

    def all(self, include_dropped: bool = False) -> tuple[CacheRecord, ...]:
        """All caches by namespace and name; dropped ones last, if asked for."""
        query = select(CacheRow).order_by(
            CacheRow.dropped_at.isnot(None), CacheRow.namespace_key, CacheRow.name_key, CacheRow.id
        )
        if not include_dropped:
            query = query.where(CacheRow.dropped_at.is_(None))
        with self._session() as session:
            return tuple(cache_record(row) for row in session.scalars(query))

    def matching(self, like: str | None = None) -> tuple[CacheRecord, ...]:
        """The live caches whose name fits a pattern of SHOW … LIKE."""
        found = self.all()
        return found if like is None else tuple(c for c in found if matches_like(like, c.name))

    def named(self, namespace: str, name: str) -> CacheRecord | None:
        """The live cache of a name, whatever its case; None if there is none."""
        query = select(CacheRow).where(
            CacheRow.namespace_key == name_key(namespace),
            CacheRow.name_key == name_key(name),
            CacheRow.dropped_at.is_(None),
        )
        with self._session() as session:
            row = session.scalar(query)
            return cache_record(row) if row else None

    def get(self, cache_id: str) -> CacheRecord | None:
        """The cache of an id, dropped or not; None if there is none."""
        with self._session() as session:
            row = session.get(CacheRow, cache_id)
            return cache_record(row) if row else None

    def dependencies(self) -> dict[str, tuple[str, ...]]:
        """For each live cache the ids of those that its definition names."""
        query = select(CacheRow.id, CacheRow.depends_on).where(CacheRow.dropped_at.is_(None))
        with self._session() as session:
            return {i: tuple(over or ()) for i, over in session.execute(query)}

    def live_names(self) -> tuple[tuple[str, str], ...]:
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

    def create(
        self,
        record: CacheRecord,
        sets: Iterable[GroupingSetRecord] = (),
        *,
        now: datetime | int,
        replace: bool = False,
        alike: Alike = eq,
    ) -> CacheRecord:
        """Store a new cache.

        Args:
            record: The cache; its `id` must be new, also when it replaces another.
            sets: Its grouping sets, none if it has no GROUPING SETS.
            now: The moment of creation.
            replace: Drop the live cache of that name in the same transaction; grants pass on to
                the new one, since a replaced definition must not open it to more people.
            alike: Whether the settings of the one and of the other mean the same.

        Returns:
            The cache as stored.

        Raises:
            AlreadyExistsError: A live cache has that name, and `replace` is not set.
            DefinitionError: It would depend on itself; the circle is printed.
            ConflictError: A cache that it depends on is gone by now, or others are defined over the
                one that it replaces and this one holds something else.
        """
        moment = as_utc(now)
        with self._transaction() as session:
            revision = bump_revision(session)
            old = session.scalar(_live_named(record.namespace, record.name))
            if old is not None and not replace:
                raise _taken(record.qualified_name)
            refuse_broken_order(session, record, None if old is None else old.id)
            if old is not None:
                take_over(session, old, record, revision, alike)
                _drop(session, old, moment, revision)
                session.flush()
            row = cache_row(record, moment, revision)
            row.narrowed = old is not None and old.narrowed
            session.add(row)
            _flush_name(session, record.qualified_name)
            session.add_all(set_rows(record.id, sets))
            session.add(LeaseRow(cache_id=record.id, holder=None, token=0, expires_at=None))
            session.add(CommitNumberRow(cache_id=record.id, last=0))
            session.add(ScheduleRow(cache_id=record.id, epoch=0, failures=0))
            if old is not None:
                for principal in principals_of(session, old.id):
                    session.add(GrantRow(cache_id=record.id, principal=principal))
            session.flush()
            return cache_record(row)

    def update(
        self, cache_id: str, expected_version: int, *, now: datetime | int, **changed: Any
    ) -> CacheRecord:
        """Change fields of a cache, if nobody else has changed it since it was read.

        Args:
            cache_id: Its id.
            expected_version: The `version` of the record that the change is based on.
            now: The moment of the change.
            changed: Field to value, as in `CacheRecord`.

        Returns:
            The cache as stored, with its version raised by one.

        Raises:
            NotFoundError: There is no such cache.
            ConflictError: It has another version by now, or it would be renamed and others name it
                in their definitions; nothing was changed.
            AlreadyExistsError: A live cache has the new name.
            TypeError: A field cannot be set.
        """
        values = cache_values(changed)
        with self._transaction() as session:
            revision = bump_revision(session)
            row = live_cache(session, cache_id)
            if {"name", "namespace"} & changed.keys():
                refuse_with_dependants(session, row, "renamed")
            # A compare-and-set in one statement, not a look first: two writers may both have
            # seen the expected version.
            statement = (
                update(CacheRow)
                .where(CacheRow.id == cache_id, CacheRow.version == expected_version)
                .values(
                    version=expected_version + 1,
                    updated_at=as_utc(now),
                    revision=revision,
                    **values,
                )
                .returning(CacheRow.id)
                .execution_options(synchronize_session=False)
            )
            wanted = changed.get("name", row.name)
            try:
                done = session.scalar(statement)
            except IntegrityError as error:
                name = f"{changed.get('namespace', row.namespace)}.{wanted}"
                raise _taken(name, "give another name, or drop it first") from error
            if done is None:
                raise ConflictError(
                    ErrorCode.CACHE_CHANGED,
                    f"the relational cache {row.namespace}.{row.name} was changed by someone else "
                    f"(version {expected_version} was expected, it has {row.version}): repeat",
                )
            if changed.get("paused") is False:
                # whatever it was paused for counts no more
                change_schedule(session, cache_id, failures=0, retry_at=None, paused_because=None)
            elif changed.get("paused"):
                # who pauses it by hand goes first: nothing but RESUME has it go on
                change_schedule(session, cache_id, paused_because=None)
            return cache_record(live_cache(session, cache_id))

    def rename(
        self,
        cache_id: str,
        expected_version: int,
        name: str,
        *,
        namespace: str | None = None,
        now: datetime | int,
    ) -> CacheRecord:
        """Give a cache another name; see `update` for what is raised."""
        changed = {"name": name} | ({} if namespace is None else {"namespace": namespace})
        return self.update(cache_id, expected_version, now=now, **changed)

    def drop(self, cache_id: str, *, now: datetime | int) -> CacheRecord:
        """Drop a cache: sessions forget it, a running refresh cannot publish any more.

        Its row and files stay until `purge`, for queries already planned.

        Args:
            cache_id: Its id.
            now: The moment of the drop.

        Returns:
            The cache as dropped.

        Raises:
            NotFoundError: There is no such cache, or it is dropped already.
            ConflictError: Others are defined over it.
        """
        with self._transaction() as session:
            revision = bump_revision(session)
            row = live_cache(session, cache_id)
            refuse_with_dependants(session, row, "dropped")
            _drop(session, row, as_utc(now), revision)
            session.flush()
            return cache_record(row)

    def purge(self, cache_id: str) -> None:
        """Forget a dropped cache for good, with its runs and snapshots.

        Args:
            cache_id: Its id.

        Raises:
            MetastoreError: It is not dropped.
        """
        with self._transaction() as session:
            row = session.get(CacheRow, cache_id)
            if row is None:
                return
            if row.dropped_at is None:
                raise MetastoreError(
                    ErrorCode.CACHE_IN_USE,
                    f"the relational cache {row.namespace}.{row.name} is not dropped: "
                    "DROP RELATIONAL CACHE comes first",
                )
            session.execute(delete(CacheRow).where(CacheRow.id == cache_id))


def _live_named(namespace: str, name: str) -> Any:
    return select(CacheRow).where(
        CacheRow.namespace_key == name_key(namespace),
        CacheRow.name_key == name_key(name),
        CacheRow.dropped_at.is_(None),
    )


def _taken(
    name: str, instead: str = "use CREATE OR REPLACE, IF NOT EXISTS, or another name"
) -> AlreadyExistsError:
    return AlreadyExistsError(
        ErrorCode.CACHE_EXISTS, f"the relational cache {name} exists already: {instead}"
    )


def _flush_name(session: Session, name: str) -> None:
    try:
        session.flush()
    except IntegrityError as error:
        raise _taken(name) from error


def _drop(session: Session, row: CacheRow, moment: datetime, revision: int) -> None:
    row.dropped_at = moment
    row.updated_at = moment
    row.version += 1
    row.revision = revision
    # The token moves on, so that a refresh that runs now finds its lease lost.
    session.execute(
        update(LeaseRow)
        .where(LeaseRow.cache_id == row.id)
        .values(holder=None, expires_at=None, token=LeaseRow.token + 1)
        .execution_options(synchronize_session=False)
    )
    session.execute(delete(RefreshRequestRow).where(RefreshRequestRow.cache_id == row.id))
    session.execute(
        update(RefreshRunRow)
        .where(RefreshRunRow.cache_id == row.id, RefreshRunRow.state == RunState.RUNNING.value)
        .values(state=RunState.SUPERSEDED.value, finished_at=moment, error="the cache was dropped")
        .execution_options(synchronize_session=False)
    )
