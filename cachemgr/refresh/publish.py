"""What a refresh publishes: a version, what it holds, and the base versions it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cachemgr.delta.base_columns import columns_read, kept_columns
from cachemgr.delta.log import size_in_bytes
from cachemgr.metastore.column_bounds import BOUNDS, encode_bounds
from cachemgr.metastore.records import (
    BROKEN_JOINS,
    CHECKED_UNDER_SETTINGS,
    READ_AT,
    ColumnRecord,
    Followed,
    GroupingSetRecord,
    Publication,
    RefreshRunRecord,
    SnapshotRecord,
    SnapshotTableRecord,
)
from cachemgr.refresh.account import published
from cachemgr.refresh.by_change.adopt import behind_fact
from cachemgr.refresh.fingerprint import plan_fingerprint
from cachemgr.refresh.job import Job
from cachemgr.refresh.pin import refuse_replaced
from cachemgr.refresh.progress import Progress, source_json
from cachemgr.refresh.validate_snapshot_joins import (
    declared_joins,
    joins_text,
    move_validations,
)
from cachemgr.sparks import SPARKS
from matcher.model.codec import decode_plan, encode_plan
from matcher.model.ir import CachePlan


def publish(job: Job, progress: Progress) -> RefreshRunRecord:
    job.checkpoint("publishing")
    if progress.measured is None:
        return publish_again(job, progress)
    refuse_replaced(job.session, job.cache, job.tables)
    found, version = progress.measured, progress.version
    assert version is not None
    joins = progress.joins or ()
    facts: dict[str, Any] = {
        "spec": job.spec,
        "base_rows": found.base_rows,
        "base_bytes": {t.location: size_in_bytes(job.session, t.location) for t in job.tables},
        "exact_sums": sorted(found.plan.exact_sums),
        "non_null": sorted(found.plan.non_null),
        "totals": dict(found.totals),
        BOUNDS: encode_bounds(found.bounds),
        "groups": _groups(job, found.plan),
        **_join_facts(job, progress),
        **published(progress.run.facts, progress.commit).to_facts(),
        **behind_fact(progress.read_at),
        SPARKS: sorted(progress.sparks),
    }
    if progress.source is not None:
        facts["source"] = source_json(progress.source)
    if progress.built is not None and job.plan.is_cube:
        facts["sets"] = progress.built.sources(job.plan)
    return job.metastore.refreshes.publish(
        progress.run.id,
        progress.run.fencing_token,
        Publication(
            cache_version=version,
            rows=found.rows,
            bytes=found.bytes,
            tables=_snapshot_tables(job),
            sets=_set_records(found.plan),
            facts=facts,
            plan=encode_plan(replace(found.plan, joins=joins)),
            location=job.table.location if job.damage.is_lost else None,
            followed=_followed(job),
        ),
        now=job.now(),
    )


def _followed(job: Job) -> Followed | None:
    """What the cache's record is to say, where its definition stands for another plan by now."""
    before = None
    with suppress(KeyError, TypeError, ValueError):
        before = None if job.cache.plan is None else decode_plan(dict(job.cache.plan))
    if before is not None and plan_fingerprint(before) == plan_fingerprint(job.plan):
        return None
    plan = replace(job.plan, joins=())
    columns = job.cache.columns
    if before is not None:
        columns = _columns_now(columns, before, plan)
    return Followed(encode_plan(plan), columns)


def _columns_now(
    columns: Sequence[ColumnRecord], before: CachePlan, plan: CachePlan
) -> tuple[ColumnRecord, ...]:
    """A cache's columns with the types that they have in another plan than the one that they are
    of."""
    then, now = before.as_shown(), plan.as_shown()
    if not len(columns) == len(then) == len(now):
        return tuple(columns)
    found = []
    for column, was, is_now in zip(columns, then, now, strict=True):
        old, new = was.expr, is_now.expr
        # a type is changed only with the plan's, whose spelling need not be this one
        type_ = column.type if old.type == new.type else new.type
        may_be_null = column.nullable or (new.nullable and not old.nullable)
        found.append(ColumnRecord(column.name, type_, may_be_null))
    return tuple(found)


def _groups(job: Job, plan: CachePlan) -> dict[str, int]:
    """Of the sets that hold partial rows, the groups that they had when they were written whole."""
    if job.stored is None:
        return {}
    stored = job.stored
    found = {number: stored.groups.get(number, stored.rows(number)) for number in plan.partials}
    return {str(number): rows for number, rows in found.items() if rows is not None}


def _join_facts(job: Job, progress: Progress) -> dict[str, Any]:
    return {
        "joins_declared": joins_text(declared_joins(job.metastore.joins, job.plan)),
        CHECKED_UNDER_SETTINGS: True,
        "joins": [j.name for j in progress.joins or ()],
        BROKEN_JOINS: dict(progress.broken),
    }


def publish_again(job: Job, progress: Progress, *, unchanged: bool = False) -> RefreshRunRecord:
    """Publish the same rows under another version, with other joins, or for later versions of the
    base tables: nothing was computed.

    Args:
        job: The cache and where everything is.
        progress: What the stages have found.
        unchanged: No row of a base table has changed: the run counts as UNCHANGED.
    """
    snapshot = job.published
    assert snapshot is not None and snapshot.run.plan is not None
    plan = decode_plan(dict(snapshot.run.plan))
    # what that run says of itself is not what this one does
    facts = {**snapshot.run.facts, **published(progress.run.facts, None).to_facts()}
    facts.pop(READ_AT, None)
    if progress.joins is not None or not declared_joins(job.metastore.joins, job.plan):
        plan = replace(plan, joins=progress.joins or ())
        facts |= _join_facts(job, progress)
    version = progress.version
    assert version is not None
    move_validations(job.metastore, job.plan, snapshot.tables, job.tables)
    return job.metastore.refreshes.publish(
        progress.run.id,
        progress.run.fencing_token,
        Publication(
            cache_version=version,
            rows=snapshot.run.rows,
            bytes=snapshot.run.bytes,
            tables=_still_tables(job, snapshot),
            sets=_set_records(plan),
            facts=facts,
            plan=encode_plan(plan),
            unchanged=unchanged,
        ),
        now=job.now(),
    )


def _snapshot_tables(job: Job) -> list[SnapshotTableRecord]:
    """The pinned tables as they are stored: of their columns what the cache reads."""
    read = columns_read(job.plan)
    return [
        SnapshotTableRecord(
            t.name,
            t.location,
            t.table_id,
            t.version,
            t.timestamp_ms,
            t.commit,
            kept_columns(t.columns, read[t.location]),
        )
        for t in job.tables
    ]


def _still_tables(job: Job, snapshot: SnapshotRecord) -> list[SnapshotTableRecord]:
    """The base tables of a snapshot, whose rows are still those that were read, at their versions
    now; with what one that was stored before commits' identities were did not say."""
    before = {t.location: t for t in snapshot.tables}
    return [
        replace(t, commit_id=before[t.location].commit_id or t.commit_id)
        if before[t.location].version == t.version
        else t
        for t in _snapshot_tables(job)
    ]


def _set_records(plan: CachePlan) -> Sequence[GroupingSetRecord]:
    names = [c.name for c in plan.keys or ()]
    return [
        GroupingSetRecord(s.grouping_id, i, tuple(names[k] for k in s.keys), s.rows, s.bytes)
        for i, s in enumerate(plan.grouping_sets)
    ]
