"""All that decides how a refresh is done, gathered for `plan_refresh`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cachemgr.base_state import TableAt
from cachemgr.config.match_options import match_options
from cachemgr.delta.changes import ChangeKind
from cachemgr.delta.commits import Head
from cachemgr.delta.log import head, size_in_bytes
from cachemgr.errors import ErrorCode
from cachemgr.metastore.records import CHECKED_UNDER_SETTINGS, JoinRecord, RefreshRunRecord
from cachemgr.refresh.by_change.adopt import Written, find_written
from cachemgr.refresh.by_change.past_runs import REMEMBERED, PastRun, past_runs
from cachemgr.refresh.job import Job
from cachemgr.refresh.planning.plan import ADOPT, DELTA_WAYS, Published, RefreshRequest
from cachemgr.refresh.source import Source
from cachemgr.refresh.validate_snapshot_joins import declared_joins, is_checked, joins_text
from cachemgr.refresh.write import missing_properties
from cachemgr.vocabulary import RunState

_RECENT: Final = 10


def request_of(job: Job, mode: str, run: RefreshRunRecord | None) -> RefreshRequest:
    """What a refresh is asked for, and how everything stands.

    Args:
        job: The cache and where everything is.
        mode: What was asked for: a `RefreshMode`.
        run: The open run; None where the refresh is only explained.
    """
    newest = head(job.session, job.table.location)
    adoptable = _adoptable(job, run)
    joins = declared_joins(job.metastore.joins, job.plan)
    wanted = tuple(j.as_fact(validated=is_checked(j)) for j in joins)
    return RefreshRequest(
        cache=job.name,
        mode=mode,
        plan=replace(job.plan, joins=wanted),
        spec=job.spec,
        tables=job.tables,
        published=_published(job),
        head=newest,
        adoptable=adoptable,
        written=_written(job, newest, adoptable),
        properties_changed=newest is not None and bool(missing_properties(job.session, job.table)),
        joins_known=_joins_known(job, joins),
        sources=tuple(s.offer if isinstance(s, Source) else s for s in job.sources),
        damage=job.damage.what,
        changes=job.changes,
        gone=job.gone,
        feeds=job.feeds,
        repartitioned=job.repartitioned,
        sizes=_sizes(job),
        options=match_options(job.cache.settings),
        has_failed=_has_failed(job, run),
        past=_past(job),
        spark=job.spark,
    )


def _sizes(job: Job) -> dict[str, int]:
    """The bytes of the base tables, where some change is to be weighed against them: without a
    checksum each of them is a job."""
    if all(found.kind is ChangeKind.SAME for found in job.changes.values()):
        return {}
    return {t.location: size_in_bytes(job.session, t.location) for t in job.tables}


def _past(job: Job) -> tuple[PastRun, ...]:
    """What past refreshes took, where some change is to be weighed against everything."""
    if all(found.kind is ChangeKind.SAME for found in job.changes.values()):
        return ()
    records = job.metastore.refreshes.of(job.cache.id, limit=REMEMBERED, state=RunState.PUBLISHED)
    return past_runs(records, DELTA_WAYS)


def _has_failed(job: Job, run: RefreshRunRecord | None) -> bool:
    """Whether the refresh before this one added a delta, or found one written, and failed; a
    storage that could not be asked meanwhile says nothing of that way."""
    recent = job.metastore.refreshes.of(job.cache.id, limit=_RECENT)
    others = (r for r in recent if run is None or r.id != run.id)
    away = f"[{ErrorCode.STORAGE_UNAVAILABLE}]"
    before = next((r for r in others if not (r.error or "").startswith(away)), None)
    return (
        before is not None
        and before.state is RunState.FAILED
        and before.mode in (*DELTA_WAYS, ADOPT)
    )


def _published(job: Job) -> Published | None:
    snapshot = job.published
    version = None if snapshot is None else snapshot.run.cache_version
    if snapshot is None or version is None:
        return None
    run = snapshot.run
    spec = str(run.facts.get("spec", ""))
    return Published(run.id, version, spec, snapshot.tables, job.stored, run.sparks)


def _adoptable(job: Job, run: RefreshRunRecord | None) -> str | None:
    """The refresh before this one, if it ended without publishing and nobody was fenced in
    between.
    """
    recent = job.metastore.refreshes.of(job.cache.id, limit=_RECENT)
    # one cancelled before it began never held the lease
    before = [r for r in recent if r.fencing_token and (run is None or r.id != run.id)]
    if not before or before[0].state not in (
        RunState.CANCELLED,
        RunState.FAILED,
        RunState.SUPERSEDED,
        RunState.RUNNING,
    ):
        return None
    if run is not None and before[0].fencing_token != run.fencing_token - 1:
        return None
    return before[0].id


def _written(job: Job, newest: Head | None, adoptable: str | None) -> Written | None:
    """The base tables of the newest commit, if the run before this one left it."""
    if newest is None or adoptable is None or newest.stamp.get("refresh_id") != adoptable:
        return None
    return find_written(job.session, newest.stamp, job.published, job.tables)


def _joins_known(job: Job, joins: tuple[JoinRecord, ...]) -> bool:
    if job.published is None:
        return True
    if any(_checked_before(join, job.tables) for join in joins):
        return False
    facts = job.published.run.facts
    if joins and not facts.get(CHECKED_UNDER_SETTINGS):
        return False
    return facts.get("joins_declared") == joins_text(joins)


def _checked_before(join: JoinRecord, tables: Sequence[TableAt]) -> bool:
    """Whether a join was last validated before commits' identities were stored, so that nobody can
    tell that it was in this state of its tables."""
    states = {t.location: t.state for t in tables}
    return any(
        checked.is_put_back(states[place])
        for place, checked in join.validated_versions.items()
        if place in states and not checked.commit
    )
