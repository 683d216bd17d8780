"""The stages of a refresh, carried out one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from cachemgr.causes import in_plain_words
from cachemgr.config.match_options import match_options
from cachemgr.delta.log import head, read_commit, restore
from cachemgr.delta.tables import TableRead, normalise_location
from cachemgr.errors import CacheManagerError
from cachemgr.metastore.records import REASON_PARTS, RefreshRunRecord
from cachemgr.refresh.account import planned
from cachemgr.refresh.by_change.delta_rows import delta_rows
from cachemgr.refresh.by_change.incremental import Delta
from cachemgr.refresh.by_change.measure_delta import (
    joins_that_kept_all_rows,
    measure_delta,
    totals_with,
    watched_set,
)
from cachemgr.refresh.by_change.why_full import FullCode, NotIncremental, WhyFull
from cachemgr.refresh.full.build import Built, build_rows
from cachemgr.refresh.job import Job
from cachemgr.refresh.lease import Heartbeat
from cachemgr.refresh.measure import measure
from cachemgr.refresh.planning.plan import INCREMENTAL, RESTORE, RefreshPlan
from cachemgr.refresh.planning.steps import (
    Adopt,
    CheckJoins,
    Measure,
    MoveOn,
    PinVersions,
    PrepareTable,
    Publish,
    RestorePublished,
    Stage,
    Unchanged,
    ValidateJoins,
    WriteDelta,
    WriteFull,
)
from cachemgr.refresh.progress import Progress, source_json
from cachemgr.refresh.publish import publish, publish_again
from cachemgr.refresh.small import delta_suits_one_task, plan_for_one_task, suits_one_task
from cachemgr.refresh.source import Source
from cachemgr.refresh.totals import Watched, asked_totals
from cachemgr.refresh.validate_snapshot_joins import (
    JoinChecks,
    check_joins,
    check_joins_on_delta,
    declared_joins,
    follow_joins,
    joins_to_follow,
)
from cachemgr.refresh.write import (
    WHOLE,
    Target,
    base_versions,
    check_above,
    check_replaced,
    create_table,
    missing_properties,
    read_back,
    read_versions,
    reshape_clustered,
    schema_differs,
    set_properties,
    write_commit,
)
from cachemgr.sparks import BEFORE, SPARKS
from cachemgr.telemetry import logger
from cachemgr.vocabulary import RefreshMode
from matcher.model.ir import CachePlan
from matcher.model.message import Message
from matcher.model.message_codec import message_data
from matcher.partials.partial_rows import why_not_partials


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
    run = job.metastore.refreshes.update(
        run.id,
        run.fencing_token,
        mode=plan.mode,
        reason=str(plan.reason),
        stages=plan.to_json(),
        facts={
            **planned(plan, job.changes.values()).to_facts(),
            REASON_PARTS: message_data(plan.reason),
        },
    )
    progress = Progress(run, _source(job, plan))
    adopted = next((s for s in plan.stages if isinstance(s, Adopt)), None)
    if adopted is not None:
        job = replace(job, tables=adopted.tables)
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


def _do(job: Job, plan: RefreshPlan, stage: Stage, progress: Progress) -> RefreshRunRecord | None:
    """Carry out one stage; the run's record if it was the last one."""
    match stage:
        case Unchanged():
            run = progress.run
            return job.metastore.refreshes.finish_unchanged(
                run.id, run.fencing_token, now=job.now()
            )
        case MoveOn(version=version):
            progress.version = version
            job.checkpoint("publishing")
            ended = publish_again(job, progress, unchanged=True)
            _follow_joins(job)
            return ended
        case Publish(version=version):
            if version is not None:
                progress.version = version
            ended = publish(job, progress)
            if all(not isinstance(stage, Adopt) for stage in plan.stages):
                _follow_joins(job)
            return ended
    _work(job, plan, stage, progress)
    return None


def _work(job: Job, plan: RefreshPlan, stage: Stage, progress: Progress) -> None:
    location = job.table.location
    match stage:
        case PinVersions():
            pass
        case ValidateJoins():
            joins = declared_joins(job.metastore.joins, job.plan)
            progress.joins, progress.broken = check_joins(_checks(job), joins, job.tables)
        case CheckJoins(delta=delta):
            adopted = any(isinstance(each, Adopt) for each in plan.stages)
            _check_joins(job, delta, progress, adopted=adopted)
        case RestorePublished(version=version, head=parent):
            content = {"kind": RESTORE, "restores": version, **_who(job, progress)}
            restore(job.session, location, version, content)
            restored = read_back(job.session, job.name, location, parent, progress.run.id)
            progress.version = restored.version
        case PrepareTable(create=create):
            _prepare_table(job, progress, create)
        case WriteFull():
            _write_full(job, plan, progress)
        case WriteDelta():
            _write_delta(job, plan, stage, progress)
        case Adopt():
            _adopt(job, stage, progress)
        case Measure():
            _measure(job, progress)


def _follow_joins(job: Job) -> None:
    """Joins by which queries join more than the cache has. The rows are published: what goes wrong
    here costs hits of such queries, until the joins are validated."""
    if job.published is None:
        return
    checks = _checks(job)
    joins = joins_to_follow(checks, job.published.tables, job.changes)
    if not joins:
        return
    try:
        follow_joins(checks, joins, job.tables, job.changes)
    except (PySparkException, Py4JJavaError, CacheManagerError) as error:
        logger.warning(
            "cache %s was refreshed, but whether its new rows keep %s was not looked at: %s; "
            "queries that rely on that are not answered before the next refresh, or VALIDATE "
            "RECORD PRESERVING JOIN %s",
            job.name,
            ", ".join(join.name for join in joins),
            in_plain_words(str(error).splitlines()),
            joins[0].name,
        )


def _checks(job: Job) -> JoinChecks:
    now = job.now() or datetime.now(UTC)
    return JoinChecks(job.session, job.metastore, job.cache.settings, now)


def _check_joins(job: Job, delta: Delta, progress: Progress, *, adopted: bool) -> None:
    assert job.stored is not None and job.published is not None
    assert progress.measured is not None
    facts, before = job.published.run.facts, job.stored.plan
    held = [j for j in before.joins if j.validated]
    progress.joins, progress.broken = check_joins_on_delta(
        _checks(job),
        declared_joins(job.metastore.joins, job.plan),
        held,
        job.tables,
        delta,
        kept=joins_that_kept_all_rows(job.plan, held, facts, delta, progress.measured),
        before=job.published.tables,
        # what happened to the tables of an adopted commit nobody has looked at
        changes={} if adopted else job.changes,
    )


def _who(job: Job, progress: Progress) -> dict[str, Any]:
    return {
        "cache_id": job.cache.id,
        "cache": job.name,
        "refresh_id": progress.run.id,
        "fencing_token": progress.run.fencing_token,
    }


def _build(job: Job, progress: Progress, plain: bool = False) -> Built:
    if progress.built is None:
        # here and not before: most refreshes find that nothing is to be built
        small = suits_one_task(job.session, job.plan, job.reads)
        if small:
            plan_for_one_task(job.session)
        progress.built = build_rows(
            job.session,
            job.plan,
            job.reads,
            job.cache.spec.partitioned_by,
            job.table.cluster_by,
            source=None if progress.source is None else progress.source.rows(job.session),
            small=small,
            before=None if job.stored is None else job.stored.plan,
            plain=plain,
        )
    return progress.built


def _prepare_table(job: Job, progress: Progress, create: bool) -> None:
    if create:
        create_table(job.session, job.table, _build(job, progress).rows.schema)
    else:
        set_properties(job.session, job.table, missing_properties(job.session, job.table))


def _write_full(job: Job, plan: RefreshPlan, progress: Progress) -> None:
    built = _build(job, progress)
    try:
        _write_built(job, plan, progress, built)
    except (PySparkException, Py4JJavaError) as error:
        if not built.is_regrouped or "ARITHMETIC_OVERFLOW" not in str(error):
            raise
        # a part of a sum may overflow where the whole does not
        built.release()
        progress.built = None
        _write_built(job, plan, progress, _build(job, progress, plain=True))


def _write_built(job: Job, plan: RefreshPlan, progress: Progress, built: Built) -> None:
    if job.table.cluster_by and schema_differs(job.session, job.table, built.rows.schema):
        reshape_clustered(job.session, job.table, built.rows)
    stages = plan.to_json()
    if job.plan.is_cube and progress.source is None:
        stages.append({"stage": "Sets", "detail": _sets_text(job.plan, built)})
    watched = Watched(built.rows, job.plan)
    source = None if progress.source is None else source_json(progress.source)
    progress.sparks = frozenset({job.spark})
    if progress.source is not None:
        progress.sparks |= progress.source.sparks
    _write(job, plan, progress, watched, stages, WHOLE, {"source": source})


def _adopt(job: Job, stage: Adopt, progress: Progress) -> None:
    commit = read_commit(job.session, job.table.location, stage.version)
    if stage.delta is not None:
        # the run that wrote it may have ended before it looked
        check_replaced(job.name, job.plan, _target(stage.delta), commit)
    progress.commit, progress.version = commit, stage.version
    progress.delta = stage.delta
    progress.sparks = frozenset(commit.stamp.get(SPARKS) or (BEFORE,))
    if stage.is_behind:
        wrote = job.metastore.refreshes.get(stage.refresh_id)
        assert wrote is not None, "it is the run before this one"
        progress.read_at = wrote.started_at


def _target(delta: Delta) -> Target:
    return Target(delta.replaced, is_append=not delta.replaced)


def _write_delta(job: Job, plan: RefreshPlan, stage: WriteDelta, progress: Progress) -> None:
    delta = stage.delta
    published, before = job.published, job.stored
    assert published is not None and published.run.cache_version is not None
    assert before is not None
    small = delta_suits_one_task(job.session, job.plan, job.reads, delta)
    if small:
        plan_for_one_task(job.session)
    rows = delta_rows(
        job.session,
        replace(job.plan, exact_sums=before.plan.exact_sums),
        delta,
        job.reads,
        TableRead(job.table.location, published.run.cache_version),
        match_options(job.cache.settings),
        job.cache.spec.partitioned_by,
        job.table.cluster_by,
        small=small,
    )
    watched = Watched(rows, job.plan, watched_set(delta) if job.plan.is_cube else None)
    said = {
        "kind": INCREMENTAL,
        "since": read_versions(published.tables),
        "sets": {"replaced": delta.replaced, "appended": delta.appended},
    }
    progress.delta = delta
    progress.sparks = published.run.sparks | {job.spark}
    above = stage.head if progress.version is None else progress.version
    try:
        _write(job, plan, progress, watched, plan.to_json(), _target(delta), said, above)
    except (PySparkException, Py4JJavaError) as error:
        if not any(code in str(error) for code in ("CAST_OVERFLOW", "ARITHMETIC_OVERFLOW")):
            raise
        # that of all rows may fit; if it does not, computing everything says so
        why = Message("a sum of the changed rows alone does not fit its column")
        raise NotIncremental(job.name, WhyFull(FullCode.NOT_MERGEABLE, why)) from error


def _write(
    job: Job,
    plan: RefreshPlan,
    progress: Progress,
    watched: Watched,
    stages: list[dict[str, str]],
    target: Target,
    said: Mapping[str, Any],
    above: int | None = None,
) -> None:
    """Write the rows in one commit, and read it back. What is added to the rows of version `above`
    must not come to lie above other ones."""
    run = progress.run
    parent = _head_version(job)
    if above is not None:
        check_above(job.session, job.name, job.table.location, above, parent)
    number = job.metastore.commit_numbers.next(job.cache.id)
    progress.run = job.metastore.refreshes.update(
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
        SPARKS: sorted(progress.sparks),
        **said,
    }
    job.checkpoint("writing")
    write_commit(
        job.session,
        watched.rows,
        job.table,
        target=target,
        app_id=job.cache.id,
        commit_number=number,
        stamp=stamp,
    )
    job.checkpoint("written")
    commit = read_back(job.session, job.name, job.table.location, parent, run.id)
    check_replaced(job.name, job.plan, target, commit)
    progress.commit, progress.version = commit, commit.version
    progress.totals = watched.totals(commit)


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


def _measure(job: Job, progress: Progress) -> None:
    commit = progress.commit
    assert commit is not None
    written = TableRead(normalise_location(job.session, job.table.location), commit.version)
    delta = progress.delta
    if delta is None:
        progress.measured = measure(
            job.session, job.plan, commit, written, job.reads, progress.totals
        )
        return
    assert job.stored is not None and job.published is not None
    facts = job.published.run.facts
    totals = None if progress.totals is None else totals_with(facts, delta, progress.totals)
    if totals is None:
        # partial rows add up as well; a cache without groups stores no counts
        grouped = job.plan.keys is not None
        totals = asked_totals(job.session, job.stored.plan, written) if grouped else {}
    found = measure_delta(job.session, job.plan, job.stored, facts, delta, commit, totals)
    _refuse_inexact(job, found.plan)
    progress.measured = found


def _refuse_inexact(job: Job, measured: CachePlan) -> None:
    """Refuse what can no longer be added up with the rows that came: sums that an AVG is computed
    from have left 2^53.

    Raises:
        NotIncremental: Everything has to be computed.
    """
    reason = why_not_partials(measured, match_options(job.cache.settings), signed=False)
    if reason is not None:
        raise NotIncremental(job.name, WhyFull(FullCode.NOT_MERGEABLE, reason.fault))
