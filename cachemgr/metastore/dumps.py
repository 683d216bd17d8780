"""A cache with all that belongs to it as plain JSON, and a metastore built from that again.

What is dumped are the rows themselves, column by column, so that nothing can be forgotten: a column
that a later migration adds is in the dump by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, func, inspect, or_, select, update
from sqlalchemy.orm import Session, defer

from cachemgr.errors import ErrorCode, MetastoreError
from cachemgr.metastore.history import RUNS_KEPT
from cachemgr.metastore.models import (
    Base,
    BaseTableRow,
    CacheRow,
    CommitNumberRow,
    GrantRow,
    GroupingSetRow,
    JoinRow,
    LeaseRow,
    RefreshRunRow,
    RegistryRevisionRow,
    RestrictedTableRow,
    ScheduleRow,
    SnapshotTableRow,
    UtcDateTime,
)
from cachemgr.metastore.registry import registry_mark
from cachemgr.metastore.transactions import Part
from cachemgr.metastore.writes import GAP, bump_revision
from cachemgr.vocabulary import RunState

# Raised with what an older release must refuse: 1 knows no LEFT record-preserving joins, and would
# take each for an INNER one.
FORMAT: Final = 2
# What lies beside the tables stays as an earlier release wrote it until its cache changes.
FORMATS: Final = range(1, FORMAT + 1)
_OF_A_CACHE: Final = (GroupingSetRow, GrantRow, ScheduleRow, LeaseRow, CommitNumberRow)
_SHARED: Final[tuple[type[Base], ...]] = (JoinRow, RestrictedTableRow, BaseTableRow)
# What a base table's row tells of the moment alone; sessions do not hear of it either.
_PASSING: Final = ("version", "commit_timestamp_ms")
_LOST = "the metastore was lost while it ran"

Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class CacheDump:
    """One cache, dropped or not, as of a revision.

    Args:
        revision: The revision of its last change.
        location: Where its table is.
        rows: Its rows by table.
        metastore: The epoch of the metastore that says so; empty where a record does not tell.
    """

    revision: int
    location: str
    rows: Rows
    metastore: str = ""

    @property
    def cache(self) -> dict[str, Any]:
        """The row of the cache itself."""
        return self.rows[CacheRow.__tablename__][0]

    @property
    def published(self) -> dict[str, Any] | None:
        """The row of the refresh that it serves from."""
        wanted = self.cache["published_refresh_id"]
        runs = self.rows[RefreshRunRow.__tablename__]
        return next((r for r in runs if r["id"] == wanted), None) if wanted else None


@dataclass(frozen=True)
class Dumped:
    """What changed since a revision.

    Args:
        epoch: Which metastore's it is.
        revision: The revision that all of it stands at.
        caches: The caches that changed, dropped ones included.
        shared: What belongs to no cache, whole: joins, restricted tables and base tables.
    """

    epoch: str
    revision: int
    caches: tuple[CacheDump, ...]
    shared: Rows

    @property
    def lasting(self) -> Rows:
        """What is shared without the base tables' versions, which move with every refresh."""
        name = BaseTableRow.__tablename__
        tables = [{k: v for k, v in row.items() if k not in _PASSING} for row in self.shared[name]]
        return {**self.shared, name: tables}


class Dumps(Part):
    """Read what a rebuild needs; build a metastore from it."""

    def take(self, since: int = 0, also: Sequence[str] = ()) -> Dumped:
        """The caches that changed after a revision, and all that is shared, as of one moment.

        Args:
            since: The revision.
            also: Ids of caches to dump whenever they changed; some hundreds at most.
        """
        with self._session() as session:
            mark = registry_mark(session)
            wanted = CacheRow.revision > since
            if also:
                wanted = or_(wanted, CacheRow.id.in_(also))
            changed = session.scalars(select(CacheRow).where(wanted))
            caches = tuple(_dump(session, row, mark.epoch) for row in changed.all())
            shared = {m.__tablename__: _rows(session, m) for m in _SHARED}
            return Dumped(mark.epoch, mark.revision, caches, shared)

    def restore(self, caches: Sequence[CacheDump], shared: Rows, revision: int) -> None:
        """Put dumps into a metastore that holds no cache; all of them or nothing.

        Args:
            caches: What to restore; `published_refresh_id` decides what each serves from.
            shared: What belongs to no cache.
            revision: The highest revision that the lost metastore is known to have had.

        Raises:
            MetastoreError: There are caches in it, or a dump is of another release.
        """
        with self._transaction() as session:
            bump_revision(session)
            if session.scalar(select(func.count()).select_from(CacheRow)):
                raise not_empty()
            now = session.scalar(select(RegistryRevisionRow.revision)) or 0
            revision = max(revision, now) + GAP
            session.execute(update(RegistryRevisionRow).values(revision=revision))
            for model in _SHARED:
                _add(session, model, shared.get(model.__tablename__, []))
            for dump in caches:
                _restore(session, dump, revision)

    def go_above(self, revision: int) -> None:
        """Count all caches as changed, at a revision that no record holds yet: what this metastore
        says of them is then the newest.

        Args:
            revision: The highest revision of any record.
        """
        with self._transaction() as session:
            now = max(bump_revision(session), revision + GAP)
            session.execute(update(RegistryRevisionRow).values(revision=now))
            session.execute(update(CacheRow).values(revision=now))


def not_empty() -> MetastoreError:
    """Why a metastore takes no dumps."""
    return MetastoreError(
        ErrorCode.METASTORE_NOT_EMPTY,
        "the metastore holds caches: give an empty one, nothing was changed",
    )


def _dump(session: Session, row: CacheRow, epoch: str) -> CacheDump:
    runs = (
        select(RefreshRunRow)
        .where(RefreshRunRow.cache_id == row.id)
        .order_by(RefreshRunRow.started_at.desc(), RefreshRunRow.fencing_token.desc())
        .limit(RUNS_KEPT)
        .options(defer(RefreshRunRow.plan))
    )
    kept = {run.id: _values(run) for run in session.scalars(runs)}
    served = row.published_refresh_id and session.get(
        RefreshRunRow, row.published_refresh_id, populate_existing=True
    )
    if served:
        kept[served.id] = _values(served)
    rows: Rows = {
        CacheRow.__tablename__: [_values(row)],
        RefreshRunRow.__tablename__: list(kept.values()),
        SnapshotTableRow.__tablename__: _rows(
            session, SnapshotTableRow, SnapshotTableRow.refresh_id.in_(list(kept))
        ),
    }
    for model in _OF_A_CACHE:
        rows[model.__tablename__] = _rows(session, model, model.cache_id == row.id)
    return CacheDump(row.revision, row.location, rows, epoch)


def _rows(session: Session, model: type[Base], *where: ColumnElement[bool]) -> list[dict[str, Any]]:
    keys = inspect(model).primary_key
    query = select(model).where(*where).order_by(*keys)
    return [_values(row) for row in session.scalars(query)]


def _values(row: Base) -> dict[str, Any]:
    unloaded = inspect(row).unloaded
    found = {a.key: getattr(row, a.key) for a in inspect(type(row)).column_attrs
             if a.key not in unloaded}  # fmt: skip
    return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in found.items()}


def _restore(session: Session, dump: CacheDump, revision: int) -> None:
    rows = dump.rows
    _add(session, CacheRow, [{**dump.cache, "revision": revision}])
    session.flush()
    runs = rows[RefreshRunRow.__tablename__]
    _add(session, RefreshRunRow, [_ended(run) for run in runs])
    session.flush()
    _add(session, SnapshotTableRow, rows[SnapshotTableRow.__tablename__])
    token = max((r["fencing_token"] for r in runs), default=0)
    number = max((r["commit_number"] or 0 for r in runs), default=0)
    for model in _OF_A_CACHE:
        found = rows.get(model.__tablename__, [])
        if model is LeaseRow:
            token = max([token, *(r["token"] for r in found)]) + GAP
            found = [{"cache_id": dump.cache["id"], "token": token}]
        elif model is CommitNumberRow:
            number = max([number, *(r["last"] for r in found)]) + GAP
            found = [{"cache_id": dump.cache["id"], "last": number}]
        _add(session, model, found)


def _ended(run: Mapping[str, Any]) -> dict[str, Any]:
    if run["state"] != RunState.RUNNING.value:
        return dict(run)
    state = RunState.SUPERSEDED.value
    return {**run, "state": state, "error": _LOST, "finished_at": run["started_at"]}


def _add(session: Session, model: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    known = {a.key: a.columns[0] for a in inspect(model).column_attrs}
    for row in rows:
        values = {k: _value(known[k], v) for k, v in row.items() if k in known}
        lacking = [
            k
            for k, c in known.items()
            if k not in values and not c.nullable and c.server_default is None and c.default is None
        ]
        if lacking:
            raise MetastoreError(
                ErrorCode.DUMP_OF_ANOTHER_RELEASE,
                f"a record has no {', '.join(lacking)} for {model.__tablename__}: it was written "
                "by another release, which can rebuild it; nothing was changed",
            )
        session.add(model(**values))


def _value(column: ColumnElement[Any], value: Any) -> Any:
    is_moment = isinstance(column.type, UtcDateTime) and value is not None
    return datetime.fromisoformat(value) if is_moment else value
