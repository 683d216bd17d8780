"""Another cache as what a refresh reads instead of the base tables.

A cache that is defined over others may be computed from their rows, if these are of the very
versions that the refresh has pinned and the matcher finds an exact rewrite of all that is to be
stored, hidden columns included. The rows are the same as from the base tables; what is published
names the base versions as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.base_state import TableAt, versions_of
from cachemgr.config.match_options import match_options
from cachemgr.config.result_settings import agree
from cachemgr.delta.tables import TableRead, normalise_location, run_select
from cachemgr.jvm.runtime import computing
from cachemgr.metastore.records import CacheRecord, JoinRecord
from cachemgr.metastore.refreshes import Refreshes
from cachemgr.metastore.registry_records import RegistryEntry
from cachemgr.metastore.store import Metastore
from cachemgr.refresh.planning.steps import SourceOffer
from cachemgr.serving.served_cache import ServedCache, collapsing_sql, matcher_name, serve
from cachemgr.vocabulary import RunState
from matcher.index.registry import Registry
from matcher.model.ir import CachePlan, Rewrite
from matcher.normalize.stored_block import stored_block
from matcher.render.placeholders import CACHE, joined, tables_of
from matcher.render.select import NotRenderable, quote, render_rewrite, render_stored
from scheduler.order import sources_of


@dataclass(frozen=True)
class Source:
    """What is read instead of the base tables.

    Args:
        offer: The cache, as the plan names it.
        sql: The SELECT over it, its columns named c0, c1, …
        reads: What its relations are.
        names: The stored columns, in its order.
        sparks: The minors of Spark that its rows were computed by.
    """

    offer: SourceOffer
    sql: str
    reads: Mapping[str, object]
    names: tuple[str, ...]
    sparks: frozenset[str] = frozenset()

    def rows(self, session: SparkSession) -> DataFrame:
        """The rows to store, analysed and not yet run."""
        return run_select(session, self.sql, self.reads).toDF(*self.names)


def find_sources(
    session: SparkSession,
    metastore: Metastore,
    cache: CacheRecord,
    plan: CachePlan,
    tables: Sequence[TableAt],
) -> tuple[Source | SourceOffer, ...]:
    """The caches that one is defined over, nearest first, as sources of its refresh.

    Args:
        session: A session of ours with the cache's settings.
        metastore: Where caches and their snapshots are.
        cache: The cache to refresh.
        plan: What it is to hold.
        tables: The pinned base tables.

    Returns:
        Each as a `Source`, or as the offer that says why it is none.
    """
    if not cache.depends_on:
        return ()
    ids = sources_of({**metastore.caches.dependencies(), cache.id: cache.depends_on}, cache.id)
    joins = metastore.joins.all() if ids else ()
    failed = _failed_source(metastore.refreshes, cache)
    found: list[Source | SourceOffer] = []
    for source_id in ids:
        record = metastore.caches.get(source_id)
        if record is None:
            continue
        if source_id == failed:
            found.append(_none(record, None, "the last refresh from it failed"))
        else:
            found.append(_source(session, metastore, record, cache, plan, tables, joins))
    return tuple(found)


def _failed_source(refreshes: Refreshes, cache: CacheRecord) -> str | None:
    """The cache that the last refresh read, if that failed: another way is tried then."""
    runs = [r for r in refreshes.of(cache.id, limit=5) if r.state != RunState.RUNNING]
    if not runs or runs[0].state is not RunState.FAILED:
        return None
    return next((str(s["source"]) for s in runs[0].stages if s.get("source")), None)


def _source(
    session: SparkSession,
    metastore: Metastore,
    record: CacheRecord,
    cache: CacheRecord,
    plan: CachePlan,
    tables: Sequence[TableAt],
    joins: Iterable[JoinRecord],
) -> Source | SourceOffer:
    published = metastore.snapshots.published(record.id)
    entry = RegistryEntry(record, metastore.caches.grouping_sets(record.id), published, frozenset())
    try:
        served = serve(entry, joins, frozenset())
    except (KeyError, TypeError, ValueError):
        return _none(record, None, "its plan was stored by another version of this program")
    if served.version is None:
        return _none(record, None, "it was never refreshed")
    if not agree(record.settings, cache.settings):
        return _none(record, served.version, "it was created under other settings")
    other = served.other_spark(computing(session))
    if other is not None:
        return _none(record, served.version, str(other.detail))
    behind = _other_versions(served, tables)
    if behind:
        return _none(record, served.version, behind)
    rewrite, why = _rewrite(plan, served, cache.settings)
    if rewrite is None:
        return _none(record, served.version, why)
    return _checked(session, record, served, rewrite, plan, tables)


def _none(record: CacheRecord, version: int | None, why: str) -> SourceOffer:
    return SourceOffer(record.id, matcher_name(record), version, why)


def _other_versions(served: ServedCache, tables: Sequence[TableAt]) -> str:
    """Which table the cache holds at another version than the pinned one; empty if none."""
    read = {relation.key for relation in served.plan.tables}
    for table in tables:
        held = served.snapshot.get(table.location)
        if held is None and table.location in read:
            return f"it does not say which version of {table.name} it holds"
        if held is not None and not held.is_same(table.state):
            if held.version == table.version:
                return f"it holds another version {held.version} of {table.name}, since put back"
            what = f"version {held.version}" if held.table_id == table.table_id else "another table"
            return f"it holds {what} of {table.name}, which is at version {table.version}"
    return ""


def _rewrite(
    plan: CachePlan, served: ServedCache, settings: Mapping[str, str]
) -> tuple[Rewrite | None, str]:
    registry = Registry()
    registry.put(served.plan)
    options = match_options(settings)
    decision = registry.decide(stored_block(plan), options)
    if decision.rewrite is not None:
        return decision.rewrite, ""
    return None, "; ".join(f"{r.code.value}: {r.detail}" for r in decision.reasons)


def _checked(
    session: SparkSession,
    record: CacheRecord,
    served: ServedCache,
    rewrite: Rewrite,
    plan: CachePlan,
    tables: Sequence[TableAt],
) -> Source | SourceOffer:
    """The source, if Spark reads from it the very columns that it reads from the base tables."""
    versions = versions_of(tables)
    assert served.version is not None
    stored = TableRead(normalise_location(session, served.location), served.version)
    collapsing = collapsing_sql(served, rewrite.grouping_set, CACHE)
    reads: dict[str, object] = {CACHE: stored}
    if collapsing is not None:
        reads[CACHE] = run_select(session, collapsing, {CACHE: stored})
    extra = joined(len(rewrite.extra))
    for name, join in zip(extra, rewrite.extra, strict=True):
        reads[name] = TableRead(join.relation.key, versions[join.relation.key])
    names = tables_of(len(plan.tables))
    base = {
        name: TableRead(relation.key, versions[relation.key])
        for name, relation in zip(names, plan.tables, strict=True)
    }
    try:
        sql = render_rewrite(rewrite, CACHE, positional=True, extra_sql=extra)
        have = [f.dataType for f in run_select(session, sql, reads).schema]
        want = run_select(session, render_stored(plan, [quote(n) for n in base]), base).schema
    except NotRenderable as error:
        return _none(record, served.version, f"{error} has no SQL spelling")
    except (PySparkException, Py4JJavaError) as error:
        said = str(error).strip().splitlines()[0]
        return _none(record, served.version, f"it cannot be read: {said}")
    if have != [f.dataType for f in want]:
        return _none(record, served.version, "its columns have other types")
    offer = SourceOffer(record.id, matcher_name(record), served.version)
    offer = replace(offer, steps=rewrite.steps)
    return Source(offer, sql, reads, tuple(want.names), served.sparks)
