"""One refresh, from the lease to publishing; the stages come from `plan`.

Order is what keeps a crash harmless: the commit is written, read back and measured before the
metastore learns of it, and hits read the published version alone. Whatever happens before
`Refreshes.publish` leaves the last snapshot serving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cachemgr.base_state import TableAt, versions_of
from cachemgr.causes import cause_of, is_storage_trouble, were_jobs_cancelled
from cachemgr.delta.change_feed import feeds_kept
from cachemgr.delta.changed_files import gone_files, repartitioned
from cachemgr.delta.changes import ChangeKind
from cachemgr.delta.log import head, last_number, read_ahead
from cachemgr.delta.own_session import own_session, refuse_readers_filter
from cachemgr.delta.tables import refuse_inside_table
from cachemgr.errors import (
    CacheManagerError,
    DefinitionError,
    ErrorCode,
    NotFoundError,
    RefreshError,
)
from cachemgr.jvm.alive import jvm_is_gone
from cachemgr.metastore.caches import Caches
from cachemgr.metastore.records import CacheRecord, RefreshRunRecord, SnapshotRecord
from cachemgr.metastore.store import Metastore
from cachemgr.refresh.account import refused
from cachemgr.refresh.by_change.adopt import has_more_to_do
from cachemgr.refresh.by_change.incremental import stored_of
from cachemgr.refresh.by_change.why_full import NotIncremental
from cachemgr.refresh.damage import damage_of, placed
from cachemgr.refresh.failure_texts import storage_unavailable, what_serves
from cachemgr.refresh.fingerprint import spec_hash
from cachemgr.refresh.follow import follow_tables
from cachemgr.refresh.job import Checkpoint, Clock, Job, Replan
from cachemgr.refresh.lease import Heartbeat
from cachemgr.refresh.other_spark import is_of_another_spark, left_to_another
from cachemgr.refresh.pin import (
    changes_since,
    check_columns,
    column_lost,
    other_columns,
    pin_versions,
    refuse_narrowed,
)
from cachemgr.refresh.planning.plan import RefreshPlan
from cachemgr.refresh.planning.planner import plan_refresh
from cachemgr.refresh.request import request_of
from cachemgr.refresh.source import find_sources
from cachemgr.refresh.stages import carry_out
from cachemgr.refresh.write import table_spec
from cachemgr.telemetry import logger
from cachemgr.vocabulary import NOT_PLANNED, RefreshMode
from matcher.model.codec import decode_plan
from matcher.model.errors import MatcherError
from matcher.model.ir import CachePlan
from matcher.model.message import NOTHING, Message, joined

DEFAULT_LEASE_SECONDS = 60.0
DEFAULT_DROP_GRACE = 24 * 3600
# A table that is replaced between two looks is looked at again, so often at most.
_LOOKS: Final = 3
_OTHER_TABLE: Final = frozenset(
    {
        ErrorCode.BASE_COLUMN_CHANGED,
        ErrorCode.BASE_COLUMN_LOST,
        ErrorCode.COLUMNS_CHANGED,
        ErrorCode.DEFINITION_BROKEN,
    }
)
# What says by itself what is wrong with a definition. A storage that does not answer, or a commit
# that was taken back while it was read, may pass by itself, unlike a name that is gone.
_TOLD: Final = frozenset(
    {ErrorCode.TABLE_UNREADABLE, ErrorCode.COLUMNS_CHANGED, ErrorCode.OTHER_SPARK}
)


def run_refresh(
    spark: SparkSession,
    metastore: Metastore,
    cache_id: str,
    *,
    mode: str | None = None,
    now: Clock,
    holder: str,
    replan: Replan | None = None,
    lease_seconds: float = DEFAULT_LEASE_SECONDS,
    drop_grace_seconds: int = DEFAULT_DROP_GRACE,
    checkpoint: Checkpoint = lambda step: None,
) -> RefreshRunRecord:
    """Refresh a cache, to the versions of now: in two runs if the first one publishes what a run
    that died has written of earlier ones.

    Args:
        spark: Any session of the application; the work is done in one of our own.
        metastore: Where the cache, its runs and its lease are kept.
        cache_id: The cache's id.
        mode: `AUTO`, `FULL`, `INCREMENTAL` or `INCREMENTAL_ONLY`; None takes the cache's own.
        now: The clock.
        holder: Who refreshes, for messages.
        replan: Expands the definition again with what its names stand for now; None takes the
            stored plan.
        lease_seconds: How long the lease lasts without being renewed; it is renewed meanwhile.
        drop_grace_seconds: How long files of old versions stay for queries planned before.
        checkpoint: Called with a step's name when it is done; what it raises ends the refresh
            there, as tests do to see what a crash leaves behind.

    Returns:
        The last run as stored: PUBLISHED or UNCHANGED.

    Raises:
        NotFoundError: There is no such cache.
        ConflictError: Another refresh of it is running.
        LeaseLostError: The lease was taken over; nothing was published.
        RefreshError: It failed; the snapshot before keeps serving.
    """
    cache = _cache(metastore.caches, cache_id)

    def once() -> RefreshRunRecord:
        run = metastore.refreshes.start(
            cache_id,
            holder,
            now=now(),
            lease_seconds=lease_seconds,
            mode=mode or cache.spec.refresh.mode.value,
            reason=NOT_PLANNED,
        )
        return run_claimed(
            spark,
            metastore,
            run,
            mode=mode,
            now=now,
            replan=replan,
            lease_seconds=lease_seconds,
            drop_grace_seconds=drop_grace_seconds,
            checkpoint=checkpoint,
        )

    done = once()
    return once() if has_more_to_do(done) else done


def run_claimed(
    spark: SparkSession,
    metastore: Metastore,
    run: RefreshRunRecord,
    *,
    mode: str | None = None,
    now: Clock,
    replan: Replan | None = None,
    lease_seconds: float = DEFAULT_LEASE_SECONDS,
    drop_grace_seconds: int = DEFAULT_DROP_GRACE,
    checkpoint: Checkpoint = lambda step: None,
    failing: Callable[[CacheManagerError], None] = lambda error: None,
    may_leave: bool = False,
) -> RefreshRunRecord:
    """Carry out one run whose lease is held already; see `run_refresh` for the rest, and
    `has_more_to_do` for whether another one is to follow.

    Args:
        run: The run, RUNNING.
        failing: Called with what went wrong while the lease is still held, so that what follows
            from it is known before anybody may try again.
        may_leave: Whether another worker may carry it out: then a definition that this Spark
            cannot read ends nothing.

    Raises:
        RefreshError: Also `REFRESH_CANCELLED`, if somebody cancelled it, and `OTHER_SPARK`, where
            it is left to a worker of another minor of Spark and still RUNNING.
    """
    cache = _cache(metastore.caches, run.cache_id)
    tag = f"cachemgr-refresh-{run.id}"
    beat = Heartbeat(
        metastore.refreshes,
        run,
        now=now,
        lease_seconds=lease_seconds,
        interrupt=lambda: _interrupt(spark, tag),
    )
    with beat, _tagged(spark, tag):
        try:
            checkpoint("started")
            job = _prepare(
                spark, metastore, cache, now, replan, drop_grace_seconds, checkpoint, run
            )
            # for those who match texts without a Spark
            metastore.tables.note(job.tables)
            follow_tables(job.session, metastore, cache, job.published, job.tables)
            put_back = _catch_up(job)
            asked = mode or cache.spec.refresh.mode.value
            plan = plan_refresh(request_of(job, asked, run))
            plan = replace(plan, reason=joined((plan.reason, put_back)))
            try:
                return carry_out(job, plan, run, beat)
            except NotIncremental as error:
                # found out by what was written: the same run computes everything
                if asked == RefreshMode.INCREMENTAL_ONLY:
                    raise
                request = replace(request_of(job, asked, run), refused=error.why)
                return carry_out(job, plan_refresh(request), run, beat)
        except KeyboardInterrupt:
            # Ctrl-C over a REFRESH: whoever types it again must not wait for the lease's end
            _interrupt(spark, tag)
            why = f"[{ErrorCode.REFRESH_CANCELLED}] interrupted, as by Ctrl-C"
            with suppress(CacheManagerError):  # the lease may be lost
                metastore.refreshes.fail(run.id, run.fencing_token, why, now=now(), cancelled=True)
            raise
        except Exception as error:
            if jvm_is_gone(spark, error):
                raise RefreshError(
                    ErrorCode.SPARK_LOST,
                    f"the Spark of this process ended during the refresh of cache "
                    f"{cache.qualified_name}: another worker takes it; its last snapshot keeps "
                    "serving",
                ) from error
            if may_leave and is_of_another_spark(spark, cache, error):
                raise left_to_another(spark, cache, error) from error
            # What Spark says of jobs that were stopped is not what happened.
            told = beat.stopped or (
                error if isinstance(error, CacheManagerError) else _told(cache, error)
            )
            failing(told)
            if isinstance(told, NotIncremental):
                with suppress(CacheManagerError):  # the lease may be lost
                    facts = refused(told.why).to_facts()
                    metastore.refreshes.update(run.id, run.fencing_token, facts=facts)
            metastore.refreshes.fail(
                run.id, run.fencing_token, str(told), now=now(), cancelled=_is_cancelled(told)
            )
            if told is error:
                raise
            raise told from error


def _is_cancelled(error: CacheManagerError) -> bool:
    return error.code == ErrorCode.REFRESH_CANCELLED


@contextmanager
def _tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    """The jobs of this thread carry a tag, by which another thread can stop them."""
    context = spark.sparkContext
    context.addJobTag(tag)
    try:
        yield
    finally:
        with suppress(Exception):  # Spark may be gone
            context.removeJobTag(tag)


def _interrupt(spark: SparkSession, tag: str) -> None:
    with suppress(Exception):  # Spark may be gone
        spark.sparkContext.cancelJobsWithTag(tag)


def explain_refresh(
    spark: SparkSession,
    metastore: Metastore,
    cache_id: str,
    *,
    mode: str | None = None,
    now: Clock,
    replan: Replan | None = None,
    drop_grace_seconds: int = DEFAULT_DROP_GRACE,
) -> RefreshPlan:
    """What `run_refresh` would do now. Reads logs and the metastore, changes nothing.

    Args:
        spark: Any session of the application.
        metastore: Where the cache is kept.
        cache_id: The cache's id.
        mode: As for `run_refresh`.
        now: The clock.
        replan: As for `run_refresh`.
        drop_grace_seconds: As for `run_refresh`.

    Returns:
        The way, its reason and its stages; `describe()` gives rows.

    Raises:
        NotFoundError: There is no such cache.
        RefreshError: It could not be refreshed, with the reason.
    """
    cache = _cache(metastore.caches, cache_id)
    try:
        job = _prepare(spark, metastore, cache, now, replan, drop_grace_seconds, lambda step: None)
    except CacheManagerError:
        raise
    except Exception as error:
        raise _told(cache, error) from error
    return plan_refresh(request_of(job, mode or cache.spec.refresh.mode.value, None))


def _cache(caches: Caches, cache_id: str) -> CacheRecord:
    cache = caches.get(cache_id)
    if cache is None or cache.dropped_at is not None:
        raise NotFoundError(
            ErrorCode.CACHE_NOT_FOUND,
            f"there is no relational cache with the id {cache_id}: SHOW RELATIONAL CACHES lists "
            "those that exist",
        )
    return cache


def _told(cache: CacheRecord, error: Exception) -> RefreshError:
    if were_jobs_cancelled(error):
        return RefreshError(
            ErrorCode.REFRESH_CANCELLED,
            f"the refresh of cache {cache.qualified_name} was cancelled, as by Ctrl-C: "
            f"{what_serves(cache)}; refresh it again when you like",
        )
    if is_storage_trouble(error):
        return storage_unavailable(cache, cause_of(error))
    return RefreshError(
        ErrorCode.REFRESH_FAILED,
        f"the refresh of cache {cache.qualified_name} failed: {cause_of(error)}; "
        f"{what_serves(cache)}; remove the cause and refresh again",
    )


def _prepare(
    spark: SparkSession,
    metastore: Metastore,
    cache: CacheRecord,
    now: Clock,
    replan: Replan | None,
    drop_grace_seconds: int,
    checkpoint: Checkpoint,
    run: RefreshRunRecord | None = None,
) -> Job:
    session = own_session(spark, cache.settings)
    refuse_readers_filter(session)
    published = metastore.snapshots.published(cache.id)
    damage = damage_of(session, cache, published)
    if run is not None and published is not None and cache.damaged and not damage.what:
        metastore.snapshots.lift_damage(cache.id, published.run.id, cache.damaged)
    cache = placed(cache, damage, None if run is None else run.fencing_token)
    _check_place(session, cache)
    plan, tables = _pinned(session, cache, published, replan)
    changes = changes_since(session, published, tables)
    if run is not None and any(c.kind is not ChangeKind.SAME for c in changes.values()):
        # there is enough to do until the write that needs it
        read_ahead(session, cache.location)
    before = {} if published is None else {t.location: t.version for t in published.tables}
    checkpoint("pinned")
    return Job(
        metastore=metastore,
        session=session,
        cache=cache,
        plan=plan,
        spec=spec_hash(plan, cache.settings, cache.spec.partitioned_by, cache.spec.cluster_by),
        table=table_spec(cache, plan, drop_grace_seconds),
        tables=tables,
        sources=find_sources(session, metastore, cache, plan, tables),
        published=published,
        stored=stored_of(published),
        changes=changes,
        gone=gone_files(session, changes),
        feeds=feeds_kept(session, tables, changes),
        repartitioned=repartitioned(session, tables, changes, before),
        damage=damage,
        now=now,
        checkpoint=checkpoint,
    )


def _pinned(
    session: SparkSession,
    cache: CacheRecord,
    published: SnapshotRecord | None,
    replan: Replan | None,
) -> tuple[CachePlan, tuple[TableAt, ...]]:
    """What the definition means now, and the versions of its tables: of one moment, also where a
    table is replaced between one look and the other."""
    stored = None if cache.plan is None else _decoded(cache.plan)
    for left in reversed(range(_LOOKS)):
        try:
            plan = _current_plan(session, cache, stored, replan)
            tables = pin_versions(session, cache, plan)
            check_columns(session, cache, plan, versions_of(tables))
            break
        except RefreshError as error:
            if not left or replan is None or error.code not in _OTHER_TABLE:
                raise
    refuse_narrowed(cache, published, stored, plan, tables)
    return plan, tables


def _check_place(session: SparkSession, cache: CacheRecord) -> None:
    """A table may have come to lie around the cache's since it was created."""
    folder = cache.location.rstrip("/").rpartition("/")[0]
    try:
        refuse_inside_table(session, folder, f"cache {cache.qualified_name}")
    except DefinitionError as error:
        raise RefreshError(
            error.code, f"{error.message}; create the cache again at another LOCATION"
        ) from error


def _catch_up(job: Job) -> Message:
    """Look, before anything is computed, whether the log is ahead of the metastore; for the reason.

    Delta skips a commit whose number it has seen, with success. What the log holds of the time
    that the metastore forgot stays unpublished: it is undone, or replaced.
    """
    newest = head(job.session, job.table.location)
    if newest is None:
        return NOTHING
    number = last_number(job.session, job.table.location, job.cache.id, newest.version)
    if not job.metastore.commit_numbers.catch_up(job.cache.id, number):
        return NOTHING
    said = (
        f"the log at {job.table.location} holds commit {number}, which this metastore never gave "
        "out: it was put back from a copy"
    )
    logger.warning("cache %s: %s", job.name, said)
    return Message("the metastore was put back from a copy, what was published since is not served")


def _current_plan(
    session: SparkSession, cache: CacheRecord, stored: CachePlan | None, replan: Replan | None
) -> CachePlan:
    """The plan to compute: the definition as its names resolve now, so that a redefined view is
    followed.
    """
    if replan is not None:
        try:
            return replan()
        except (CacheManagerError, MatcherError, PySparkException) as error:
            _blame_base_table(session, cache, stored)
            if is_storage_trouble(error):
                why = cause_of(error.__cause__ or error)
                raise storage_unavailable(cache, why) from error
            if isinstance(error, CacheManagerError) and error.code in _TOLD:
                said = error.message.splitlines()[0]
                raise RefreshError(error.code, f"{said}; {what_serves(cache)}") from error
            text = str(error).strip().splitlines()[0]
            raise RefreshError(
                ErrorCode.DEFINITION_BROKEN,
                f"the definition of cache {cache.qualified_name} does not resolve here: "
                f"{text.rstrip('.')}; {what_serves(cache)}; restore what it names, have this "
                "process know the name (USE, or spark_init in cachemgr.toml), or replace the cache",
            ) from error
    if stored is None:
        raise RefreshError(
            ErrorCode.PLAN_UNREADABLE,
            f"the stored plan of cache {cache.qualified_name} is of another version and was not "
            "expanded again; "
            f"create the cache again with OR REPLACE",
        )
    return stored


def _decoded(data: Mapping[str, Any]) -> CachePlan | None:
    try:
        return decode_plan(dict(data))
    except (KeyError, TypeError, ValueError):
        return None


def _blame_base_table(session: SparkSession, cache: CacheRecord, stored: CachePlan | None) -> None:
    """Raise the precise error if a base table or column of the stored plan is gone."""
    if stored is None:
        return
    versions = versions_of(pin_versions(session, cache, stored))
    for other in other_columns(session, stored, versions):
        if not other.now:
            raise column_lost(cache, other)
