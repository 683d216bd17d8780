"""Records as the answers that clients see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal
from urllib.parse import quote

from cachemgr.access.grants import hashed_id, redacted_location
from cachemgr.access.redaction import Discretion
from cachemgr.api import models
from cachemgr.api.dependencies import Principal
from cachemgr.cache_spec import SPEC_FIELDS, trigger_json
from cachemgr.ddl.render import render
from cachemgr.metastore.masked import masked_cache, masked_join
from cachemgr.metastore.records import (
    CacheRecord,
    JoinRecord,
    RefreshRequestRecord,
    RefreshRunRecord,
    ScheduleRecord,
    SnapshotRecord,
)
from cachemgr.metastore.store import Metastore
from cachemgr.roles import Role
from cachemgr.secrets import masked, masked_sql
from cachemgr.statements.convert import create_statement
from cachemgr.statements.look_at_logs import LookAtLogs
from cachemgr.statements.status import Looked, Status, status_of
from cachemgr.vocabulary import RunState
from cachemgr.worker.schedule import status_of as schedule_status
from scheduler.due import next_due


def path_of(prefix: str, name: str) -> str:
    """Where something is found by its name, as a header or a client can carry it.

    Args:
        prefix: The path of its kind.
        name: Its name.

    >>> path_of("/api/v1/caches", "s.Größe 1")
    '/api/v1/caches/s.Gr%C3%B6%C3%9Fe%201'
    """
    return f"{prefix}/{quote(name, safe='')}"


def caches(
    metastore: Metastore, logs: LookAtLogs, found: Sequence[CacheRecord], reader: Principal
) -> list[models.Cache]:
    """Caches with their schedules and snapshots, in a fixed number of questions.

    Args:
        metastore: Where they are.
        logs: Looks at their base tables.
        found: The caches.
        reader: Who is shown them: admins are told who was granted on them, viewers no ids of
            caches, which name the folders of their files, and whoever may not be answered from one
            no count of its rows.
    """
    role, discretion = reader.role, Discretion(metastore, reader.name)
    schedules = {s.cache.id: s for s in metastore.schedules.all([c.id for c in found])}
    ids = {c.published_refresh_id for c in found if c.published_refresh_id}
    snapshots = metastore.snapshots.by_ids(ids)
    places = {table.location for s in snapshots.values() for table in s.tables}
    looked = logs.at(snapshots.values(), metastore.tables.noted(places))
    names = metastore.caches.names({i for c in found for i in c.depends_on})
    shown = []
    for cache in found:
        snapshot = snapshots.get(cache.published_refresh_id or "")
        told = None if snapshot is None else discretion.snapshot(snapshot, cache)
        seen = looked.get(cache.published_refresh_id or "", Looked())
        shown.append(_cache(cache, schedules.get(cache.id), told, seen, names))
    if role.covers(Role.ADMIN):
        for one in shown:
            one.grants = list(metastore.grants.of(one.id)) if one.narrowed else None
    if not role.covers(Role.OPERATOR):
        for one in shown:
            one.id = hashed_id(one.id)
            for table in one.published.tables if one.published is not None else ():
                table.location = redacted_location(table.location)
    return shown


def _cache(
    cache: CacheRecord,
    schedule: ScheduleRecord | None,
    published: SnapshotRecord | None,
    looked: Looked,
    names: Mapping[str, str],
) -> models.Cache:
    cache = masked_cache(cache)
    behind = schedule is not None and schedule.behind_since is not None
    last = None if schedule is None else schedule.last
    status: Status = status_of(cache, last, published, looked, behind=behind)
    known = None if schedule is None else schedule_status(schedule)
    due = None if known is None else next_due(known)
    return models.Cache(
        id=cache.id,
        name=cache.name,
        namespace=cache.namespace,
        definition=cache.definition,
        ddl=render(create_statement(cache)),
        depends_on=[names.get(i, i) for i in cache.depends_on],
        owner=cache.owner,
        version=cache.version,
        created_at=cache.created_at,
        updated_at=cache.updated_at,
        paused=cache.paused,
        paused_because=None if schedule is None else _masked(schedule.paused_because),
        trigger=models.Trigger.model_validate(trigger_json(cache.spec.refresh.trigger)),
        refresh_mode=cache.spec.refresh.mode.value,
        freshness=cache.spec.freshness.kind.value,
        max_staleness_seconds=cache.spec.freshness.max_staleness_seconds,
        status=models.Status.model_validate(status),
        damaged=cache.damaged,
        published=None if published is None else _published(published),
        last_run=None if last is None else models.LastRun.model_validate(last),
        refreshing=None if schedule is None else _refreshing(schedule),
        next_due_at=None if due is None else due.at,
        narrowed=cache.narrowed,
        **{name: getattr(cache.spec, name) for name in _AS_DECLARED},
    )


# Clauses that are shown as they were declared; freshness is spelled in two fields.
_AS_DECLARED: Final = (models.Cache.model_fields.keys() & set(SPEC_FIELDS)) - {"freshness"}


def _refreshing(schedule: ScheduleRecord) -> Literal["PENDING", "RUNNING"] | None:
    if not schedule.busy:
        return None
    last = schedule.last
    # one whose process is gone waits for another worker
    runs = last is not None and last.state is RunState.RUNNING and not last.is_lost
    return "RUNNING" if runs else "PENDING"


def _published(snapshot: SnapshotRecord) -> models.Published:
    run = snapshot.run
    return models.Published(
        refresh_id=run.id,
        cache_version=run.cache_version,
        rows=run.rows,
        bytes=run.bytes,
        finished_at=run.finished_at,
        sparks=sorted(run.sparks),
        tables=[
            models.SnapshotTable.model_validate(
                replace(t, name=masked_sql(t.name), location=masked(t.location))
            )
            for t in snapshot.tables
        ],
    )


def waiting(request: RefreshRequestRecord, cache: str) -> models.Refresh:
    """A refresh that waits for a worker."""
    return models.Refresh(
        id=request.id,
        cache=cache,
        state="PENDING",
        mode=request.mode,
        reason=request.why,
        origin=request.origin.value,
        requested_by=request.requested_by,
        requested_at=request.requested_at,
        started_at=None,
        finished_at=None,
        holder=None,
        cancel_requested=False,
        cache_version=None,
        rows=None,
        bytes=None,
        error=None,
    )


def refresh(run: RefreshRunRecord, cache: str) -> models.Refresh:
    """A refresh that runs or is over."""
    began, account = run.fencing_token > 0, run.account
    return models.Refresh(
        id=run.id,
        cache=cache,
        state=run.state.value,
        mode=run.mode,
        reason=masked(run.reason),
        origin=run.origin.value,
        requested_by=run.requested_by,
        requested_at=run.requested_at or run.started_at,
        started_at=run.started_at if began else None,
        finished_at=run.finished_at,
        holder=run.holder or None,
        cancel_requested=run.cancel_requested,
        cache_version=run.cache_version,
        rows=run.rows,
        bytes=run.bytes,
        error=_masked(run.error),
        way=account.way,
        code=account.code,
        detail=_masked(str(account.detail)) or None,
        cure=account.cure or None,
        seconds=run.seconds,
        rows_written=account.rows_written,
        bytes_written=account.bytes_written,
        changed_rows=account.changed_rows,
        changed_bytes=account.changed_bytes,
        change_estimate=account.change_estimate,
        full_estimate=account.full_estimate,
        change_seconds=account.change_seconds,
        full_seconds=account.full_seconds,
    )


def join(record: JoinRecord) -> models.Join:
    """A record-preserving join."""
    record = masked_join(record)
    return models.Join(
        name=record.name,
        kind=record.kind,
        definition=record.definition,
        state=record.state.value,
        validated=record.validated,
        message=record.message,
        validated_at=record.validated_at,
    )


def _masked(text: str | None) -> str | None:
    return None if text is None else masked(text)
