"""The stages of a refresh, carried out one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from cachemgr.delta.base_columns import columns_read, kept_columns
from cachemgr.delta.commits import Commit
from cachemgr.delta.log import head, read_commit, restore, size_in_bytes
from cachemgr.delta.tables import TableRead, normalise_location
from cachemgr.metastore.records import (
    GroupingSetRecord,
    Publication,
    RefreshRunRecord,
    SnapshotRecord,
    SnapshotTableRecord,
)
from cachemgr.refresh.build import Built, build_rows
from cachemgr.refresh.job import Job
from cachemgr.refresh.lease import Heartbeat
from cachemgr.refresh.measure import Measured, measure
from cachemgr.refresh.plan import RESTORE, RefreshPlan
from cachemgr.refresh.small import plan_for_one_task, suits_one_task
from cachemgr.refresh.source import Source
from cachemgr.refresh.steps import (
    Adopt,
    Measure,
    MoveOn,
    PinVersions,
    PrepareTable,
    Publish,
    RestorePublished,
    Stage,
    Unchanged,
    ValidateJoins,
    WriteFull,
)
from cachemgr.refresh.totals import Watched
from cachemgr.refresh.validate_snapshot_joins import (
    check_joins,
    declared_joins,
    joins_text,
    move_validations,
)
from cachemgr.refresh.write import (
    base_versions,
    create_table,
    missing_properties,
    read_back,
    reshape_clustered,
    schema_differs,
    set_properties,
    write_commit,
)
from cachemgr.vocabulary import RefreshMode
from matcher.model.codec import decode_plan, encode_plan
from matcher.model.ir import CachePlan, RecordPreservingJoin


@dataclass
class _Progress:
    """What the stages so far have found."""

    run: RefreshRunRecord
    source: Source | None = None
    joins: tuple[RecordPreservingJoin, ...] | None = None
    broken: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    built: Built | None = None
    commit: Commit | None = None
    totals: Mapping[str, int] | None = None
    measured: Measured | None = None


def carry_out(
    job: Job, plan: RefreshPlan, run: RefreshRunRecord, beat: Heartbeat
) -> RefreshRunRecord:
    """Do what `plan` says.

    Args:
        job: The cache and where everything is.
        plan: The stages.
        run: The open run.
        beat: The lease's keeper; asked before each stage.

    Returns:
        The run as it ended.

    Raises:
        LeaseLostError: The lease was taken over; nothing was published.
        RefreshError: A stage failed.
    """
    run = job.metastore.writer.update_refresh(
        run.id, run.fencing_token, mode=plan.mode, reason=plan.reason, stages=plan.to_json()
    )
    progress = _Progress(run, _source(job, plan))
    try:
        for stage in plan.stages:
            beat.check()
            ended = _do(job, plan, stage, progress)
            if ended is not None:
                return ended
            job.checkpoint(stage.name)
    finally:
        if progress.built is not None:
            progress.built.release()
    raise AssertionError("a plan ends with Publish, MoveOn or Unchanged")


def _source(job: Job, plan: RefreshPlan) -> Source | None:
    """What the plan reads instead of the base tables."""
    wanted = [s.source for s in plan.stages if isinstance(s, WriteFull) and s.source is not None]
    found = [s for s in job.sources if isinstance(s, Source) and s.offer in wanted]
    return found[0] if found else None


def _do(job: Job, plan: RefreshPlan, stage: Stage, progress: _Progress) -> RefreshRunRecord | None:
    """Carry out one stage; the run's record if it was the last one."""
    location = job.table.location
    match stage:
        case Unchanged():
            run = progress.run
            return job.metastore.writer.finish_unchanged(run.id, run.fencing_token, now=job.now())
        case MoveOn(version=version):
            progress.version = version
            job.checkpoint("publishing")
            return _publish_again(job, progress, unchanged=True)
        case PinVersions():
            pass
        case ValidateJoins():
            joins = declared_joins(job.metastore, job.plan)
            progress.joins, progress.broken = check_joins(
                job.session, job.metastore, joins, job.tables, job.now() or datetime.now(UTC)
            )
        case RestorePublished(version=version, head=parent):
            content = {"kind": RESTORE, "restores": version, **_who(job, progress)}
            restore(job.session, location, version, content)
            restored = read_back(job.session, job.name, location, parent, progress.run.id)
            progress.version = restored.version
        case PrepareTable(create=create):
            _prepare_table(job, progress, create)
        case WriteFull():
            _write_full(job, plan, progress)
        case Adopt(version=version):
            progress.commit = read_commit(job.session, location, version)
            progress.version = version
        case Measure():
            _measure(job, progress)
        case Publish(version=version):
            if version is not None:
                progress.version = version
            return _publish(job, progress)
    return None


def _who(job: Job, progress: _Progress) -> dict[str, Any]:
    return {
        "cache_id": job.cache.id,
        "cache": job.name,
        "refresh_id": progress.run.id,
        "fencing_token": progress.run.fencing_token,
    }


def _build(job: Job, progress: _Progress) -> Built:
    if progress.built is None:
        # here and not before: most refreshes find that nothing is to be built
        small = suits_one_task(job.session, job.plan, job.reads)
        if small:
            plan_for_one_task(job.session)
        progress.built = build_rows(
            job.session,
            job.plan,
            job.reads,
            job.cache.partition_by,
            job.cache.cluster_by,
            source=None if progress.source is None else progress.source.rows(job.session),
            small=small,
        )
    return progress.built


def _prepare_table(job: Job, progress: _Progress, create: bool) -> None:
    if create:
        create_table(job.session, job.table, _build(job, progress).rows.schema)
    else:
        set_properties(job.session, job.table, missing_properties(job.session, job.table))


def _write_full(job: Job, plan: RefreshPlan, progress: _Progress) -> None:
    run, writer = progress.run, job.metastore.writer
    built = _build(job, progress)
    if job.table.cluster_by and schema_differs(job.session, job.table, built.rows.schema):
        reshape_clustered(job.session, job.table, built.rows)
    parent = _head_version(job)
    number = writer.next_commit_number(job.cache.id)
    stages = plan.to_json()
    if job.plan.is_cube and progress.source is None:
        stages.append({"stage": "Sets", "detail": _sets_text(job.plan, built)})
    progress.run = writer.update_refresh(
        run.id, run.fencing_token, commit_number=number, parent_version=parent, stages=stages
    )
    stamp = {
        "kind": RefreshMode.FULL.value,
        **_who(job, progress),
        "commit_number": number,
        "parent_version": parent,
        "base_versions": base_versions(job.tables),
        "base_names": [t.name for t in job.tables],
        "base_timestamps_ms": [t.timestamp_ms for t in job.tables],
        "definition": job.cache.definition,
        "definition_hash": job.cache.definition_hash,
        "spec": job.spec,
        "mode": plan.mode,
        "source": None if progress.source is None else _source_json(progress.source),
    }
    job.checkpoint("writing")
    watched = Watched(built.rows, job.plan)
    write_commit(
        job.session,
        watched.rows,
        job.table,
        app_id=job.cache.id,
        commit_number=number,
        stamp=stamp,
    )
    job.checkpoint("written")
    commit = read_back(job.session, job.name, job.table.location, parent, run.id)
    progress.commit, progress.version = commit, commit.version
    progress.totals = watched.totals(commit)


def _source_json(source: Source) -> dict[str, Any]:
    offer = source.offer
    return {"cache_id": offer.cache_id, "cache": offer.cache, "version": offer.version}


def _head_version(job: Job) -> int:
    found = head(job.session, job.table.location)
    return -1 if found is None else found.version


def _sets_text(plan: CachePlan, built: Built) -> str:
    reason = built.lattice.reason if built.lattice is not None else "few rows: one base pass"
    names = [c.name for c in plan.keys or ()]
    lines = [
        f"({', '.join(names[i] for i in s.keys)}): {source['source']}"
        for s, source in zip(plan.grouping_sets, built.sources(plan), strict=True)
    ]
    return "; ".join([reason, *lines])


def _measure(job: Job, progress: _Progress) -> None:
    commit = progress.commit
    assert commit is not None
    written = TableRead(normalise_location(job.session, job.table.location), commit.version)
    progress.measured = measure(job.session, job.plan, commit, written, job.reads, progress.totals)


def _publish(job: Job, progress: _Progress) -> RefreshRunRecord:
    job.checkpoint("publishing")
    if progress.measured is None:
        return _publish_again(job, progress)
    found, version = progress.measured, progress.version
    assert version is not None
    joins = progress.joins or ()
    facts: dict[str, Any] = {
        "spec": job.spec,
        "base_rows": found.base_rows,
        "base_bytes": {t.location: size_in_bytes(job.session, t.location) for t in job.tables},
        "exact_sums": sorted(found.plan.exact_sums),
        "non_null": sorted(found.plan.non_null),
        **_join_facts(job, progress),
    }
    if progress.source is not None:
        facts["source"] = _source_json(progress.source)
    if progress.built is not None and job.plan.is_cube:
        facts["sets"] = progress.built.sources(job.plan)
    return job.metastore.writer.publish_refresh(
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
        ),
        now=job.now(),
    )


def _join_facts(job: Job, progress: _Progress) -> dict[str, Any]:
    return {
        "joins_declared": joins_text(declared_joins(job.metastore, job.plan)),
        "joins": [j.name for j in progress.joins or ()],
        "joins_broken": dict(progress.broken),
    }


def _publish_again(job: Job, progress: _Progress, *, unchanged: bool = False) -> RefreshRunRecord:
    """The same rows under another version, with other joins, or for later versions of the base
    tables: nothing was computed."""
    snapshot = job.published
    assert snapshot is not None and snapshot.run.plan is not None
    plan = decode_plan(dict(snapshot.run.plan))
    facts = dict(snapshot.run.facts)
    if progress.joins is not None or not declared_joins(job.metastore, job.plan):
        plan = replace(plan, joins=progress.joins or ())
        facts |= _join_facts(job, progress)
    version = progress.version
    assert version is not None
    move_validations(job.metastore, job.plan, snapshot.tables, job.tables)
    return job.metastore.writer.publish_refresh(
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
