"""Changes to caches and to who may use them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import eq
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cachemgr.errors import (
    AlreadyExistsError,
    ConflictError,
    ErrorCode,
    MetastoreError,
    NotFoundError,
)
from cachemgr.metastore.dependants import (
    Alike,
    refuse_broken_order,
    refuse_with_dependants,
    take_over,
)
from cachemgr.metastore.models import (
    CacheRow,
    CommitNumberRow,
    GrantRow,
    LeaseRow,
    PastGrantRow,
    RefreshRequestRow,
    RefreshRunRow,
    ScheduleRow,
)
from cachemgr.metastore.record_rows import cache_record, cache_row, cache_values, set_rows
from cachemgr.metastore.records import EVERYBODY, CacheRecord, GroupingSetRecord, as_utc, name_key
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import bump_revision, change_schedule, live_cache
from cachemgr.roles import check_principal
from cachemgr.vocabulary import RunState


class CacheWrites(Part):
    """Create, change, rename and drop caches; grant and revoke."""

    def create_cache(
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
                for principal in _principals(session, old.id):
                    session.add(GrantRow(cache_id=record.id, principal=principal))
            session.flush()
            return cache_record(row)

    def update_cache(
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

    def rename_cache(
        self,
        cache_id: str,
        expected_version: int,
        name: str,
        *,
        namespace: str | None = None,
        now: datetime | int,
    ) -> CacheRecord:
        """Give a cache another name; see `update_cache` for what is raised."""
        changed = {"name": name} | ({} if namespace is None else {"namespace": namespace})
        return self.update_cache(cache_id, expected_version, now=now, **changed)

    def drop_cache(self, cache_id: str, *, now: datetime | int) -> CacheRecord:
        """Drop a cache: sessions forget it, a running refresh cannot publish any more.

        Its row and files stay until `purge_cache`, for queries already planned.

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

    def purge_cache(self, cache_id: str) -> None:
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

    def grant(self, cache_id: str, principal: str) -> bool:
        """Let a principal use a cache; from its first grant on, nobody else may.

        Args:
            cache_id: The cache's id.
            principal: Who.

        Returns:
            False if that was so already.

        Raises:
            ConfigurationError: That is no principal.
            NotFoundError: There is no such cache.
        """
        name = check_principal(principal)
        with self._transaction() as session:
            bump_revision(session, cache_id)
            row = live_cache(session, cache_id)
            if name in _principals(session, cache_id):
                return False
            _narrow(session, row, self._moment(session, None))
            session.add(GrantRow(cache_id=cache_id, principal=name))
            return True

    def set_grants(self, cache_id: str, principals: Iterable[str]) -> None:
        """Let exactly these principals use a cache; with none it is open to nobody.

        Args:
            cache_id: The cache's id.
            principals: Who.

        Raises:
            NotFoundError: There is no such cache.
        """
        with self._transaction() as session:
            bump_revision(session, cache_id)
            row = live_cache(session, cache_id)
            moment = self._moment(session, None)
            _narrow(session, row, moment)
            for gone in _principals(session, cache_id).difference(principals):
                session.merge(PastGrantRow(cache_id=cache_id, principal=gone, until=moment))
            session.execute(delete(GrantRow).where(GrantRow.cache_id == cache_id))
            session.add_all(
                GrantRow(cache_id=cache_id, principal=p) for p in sorted(set(principals))
            )

    def revoke(self, cache_id: str, principal: str) -> None:
        """Take a grant back. A cache whose last grant is gone stays narrowed: open to nobody.

        Args:
            cache_id: The cache's id.
            principal: Who.

        Raises:
            NotFoundError: There is no such cache, or no such grant.
        """
        with self._transaction() as session:
            bump_revision(session, cache_id)
            row = live_cache(session, cache_id)
            principals = _principals(session, cache_id)
            if principal not in principals:
                granted = ", ".join(sorted(principals)) or "nobody"
                raise NotFoundError(
                    ErrorCode.GRANT_NOT_FOUND,
                    f"{principal} has no grant on the relational cache {row.namespace}.{row.name}: "
                    f"granted are {granted}",
                )
            moment = self._moment(session, None)
            session.merge(PastGrantRow(cache_id=cache_id, principal=principal, until=moment))
            session.execute(
                delete(GrantRow).where(
                    GrantRow.cache_id == cache_id, GrantRow.principal == principal
                )
            )


def _live_named(namespace: str, name: str) -> Any:
    return select(CacheRow).where(
        CacheRow.namespace_key == name_key(namespace),
        CacheRow.name_key == name_key(name),
        CacheRow.dropped_at.is_(None),
    )


def _principals(session: Session, cache_id: str) -> set[str]:
    return set(session.scalars(select(GrantRow.principal).where(GrantRow.cache_id == cache_id)))


def _narrow(session: Session, row: CacheRow, moment: datetime) -> None:
    if not row.narrowed:
        row.narrowed = True
        session.merge(PastGrantRow(cache_id=row.id, principal=EVERYBODY, until=moment))


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
