"""What a session knows of one cache: its plan, where it lies, and what its snapshot read.

Built from the metastore's records alone. Decides which record-preserving joins hold for a
snapshot: a validation serves the versions that it was made at, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from cachemgr.access.grants import reads_of
from cachemgr.base_state import BaseState, millis
from cachemgr.config.cache_properties import has_fresh_hits
from cachemgr.config.match_options import match_options
from cachemgr.config.result_settings import (
    TIME_ZONE,
    Fingerprint,
    fingerprint,
    result_settings,
)
from cachemgr.ddl.names import shown_name
from cachemgr.metastore.column_bounds import noted_bounds
from cachemgr.metastore.records import CHECKED_UNDER_SETTINGS, CacheRecord, JoinRecord
from cachemgr.metastore.registry_records import RegistryEntry
from cachemgr.serving.other_spark import differing, other_spark, printed, unlike
from cachemgr.vocabulary import FreshnessKind, JoinState
from matcher.model.codec import decode_plan
from matcher.model.hash_consing import Sharing
from matcher.model.integer_bounds import Bounds
from matcher.model.ir import (
    GROUPING_ID_COLUMN,
    CachePlan,
    GroupingSet,
    LapsedJoin,
    RecordPreservingJoin,
    Rewrite,
)
from matcher.model.reasons import Reason
from matcher.partials.coarser import of_keys_read
from matcher.partials.collapse import holds_partials, of_one_set, render_collapsed
from matcher.render.select import quote


@dataclass(frozen=True)
class ServedCache:
    """One cache as the decider sees it.

    Args:
        id: The metastore's id.
        name: The matcher's name of it.
        plan: What is stored, with the joins that held at the snapshot.
        location: Where its Delta table lies.
        version: The published Delta version; None before the first refresh.
        snapshot: Location of each base table to the state of it that was read.
        columns: Location to what is held of its columns (`kept_columns`); none of snapshots that
            were stored before that was.
        read_ms: When the versions were read at the earliest, in milliseconds since 1970.
        freshness: What a hit may lag behind.
        max_staleness_seconds: The bound of MAX STALENESS.
        rewrite_enabled: ENABLE or DISABLE REWRITE.
        settings: Fingerprint of the result-changing settings that it is refreshed under.
        principals: Who may use it; None is everybody who may read the base tables.
        unvalidated: Names of the joins in the plan that nobody validated.
        reads: The places and table ids that its rows come from (`cachemgr.access.grants.reads_of`).
        held: The joins that held when it was refreshed, as stored with it.
        refresh_id: The refresh that it serves from; None before the first one.
        damaged: What is wrong with its files; None if nothing is known to be.
        fresh_hits: Whether a hit may read rows beside it that were appended since.
        sparks: The minors of Spark that its rows were computed by; none before the first refresh.
        stamp: The feed's count of changes once this state was complete.
    """

    id: str
    name: str
    plan: CachePlan
    location: str
    version: int | None
    snapshot: Mapping[str, BaseState]
    freshness: FreshnessKind
    max_staleness_seconds: int | None
    rewrite_enabled: bool
    settings: frozenset[tuple[str, str]]
    principals: frozenset[str] | None
    unvalidated: frozenset[str]
    reads: frozenset[str]
    held: tuple[RecordPreservingJoin, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    read_ms: int = 0
    stamp: int = 0
    refresh_id: str | None = None
    damaged: str | None = None
    fresh_hits: bool = True
    sparks: frozenset[str] = frozenset()

    def other_spark(self, here: str | None) -> Reason | None:
        """Why it may not serve a Spark, if so.

        Args:
            here: As `sparks.on_java` gives it; None where nobody says which will run the query.
        """
        if self.sparks <= {here}:
            return None
        part = differing(self.sparks, here, self._unlike, self._printed)
        return None if part is None else other_spark(self.name, self.sparks, here, part)

    @cached_property
    def _printed(self) -> str | None:
        return printed(self.plan)

    @cached_property
    def _unlike(self) -> str | None:
        return unlike(self.plan)


def collapsing_sql(
    cache: ServedCache,
    grouping_set: GroupingSet | None,
    table_sql: str,
    rewrite: Rewrite | None = None,
) -> str | None:
    """The SELECT that reads what a rewrite reads of a cache as one row a group; None where it is
    stored so. Of one set of a cube it gives the columns of that set.

    Args:
        cache: The cache.
        grouping_set: The set of a cube that is read; None for several, and for a cache that is no
            cube.
        table_sql: How its table is spelled in FROM, without an alias.
        rewrite: All that reads it, so that it may be read by fewer keys; None for whatever comes.
    """
    if not holds_partials(cache.plan, grouping_set):
        return None
    plan = cache.plan
    if grouping_set is not None:
        # Below the sums, whatever optimizes this text: a sum of another set may overflow.
        where = f"{quote(GROUPING_ID_COLUMN)} = {grouping_set.grouping_id}L"
        plan = of_one_set(plan, grouping_set)
        table_sql = f"(SELECT * FROM {table_sql} WHERE {where})"
    if rewrite is not None:
        plan = of_keys_read(plan, rewrite)
    return render_collapsed(plan, table_sql, match_options(dict(cache.settings)))


def matcher_name(cache: CacheRecord) -> str:
    """See `shown_name`."""
    return shown_name(cache.namespace, cache.name)


def serve(
    entry: RegistryEntry,
    joins: Iterable[JoinRecord],
    settings: frozenset[tuple[str, str]],
    share: Sharing | None = None,
) -> ServedCache:
    """Build what a session holds of a cache.

    Args:
        entry: The cache's records.
        joins: All record-preserving joins.
        settings: Fingerprint of the settings stored with the cache.
        share: Where expressions are held once for many caches.

    Returns:
        The cache, refreshed or not.

    Raises:
        ValueError: Its stored plan is missing or of another version of this program.
    """
    cache, published = entry.cache, entry.published
    payload = published.run.plan if published and published.run.plan else cache.plan
    if payload is None:
        raise ValueError(f"cache {cache.qualified_name} has no stored plan")
    tables = published.tables if published else ()
    snapshot = published.states if published else {}
    stored = decode_plan(dict(payload), share)
    if not _is_checked_as_read(entry):
        stored = replace(stored, joins=())
    plan = replace(
        stored,
        name=matcher_name(cache),
        **_of_joins(stored, snapshot, joins, settings),
        grouping_sets=_sized(stored.grouping_sets, entry),
        partition_by=tuple(cache.spec.partitioned_by),
        **_base_sizes(published.run.facts if published else {}),
        bounds=_bounds(stored, published.run.facts) if published and published.run.plan else (),
    )
    return ServedCache(
        id=cache.id,
        name=plan.name,
        plan=plan,
        location=cache.location,
        version=published.run.cache_version if published else None,
        snapshot=snapshot,
        freshness=cache.spec.freshness.kind,
        max_staleness_seconds=cache.spec.freshness.max_staleness_seconds,
        rewrite_enabled=cache.spec.rewrite_enabled,
        settings=settings,
        principals=entry.grants if cache.narrowed else None,
        unvalidated=_unvalidated(plan.joins),
        held=stored.joins,
        columns={t.location: t.columns for t in tables if t.columns is not None},
        read_ms=millis(published.read_at) if published else 0,
        reads=reads_of(entry),
        refresh_id=cache.published_refresh_id,
        damaged=cache.damaged,
        fresh_hits=has_fresh_hits(cache.spec.properties),
        sparks=published.run.sparks if published else frozenset(),
    )


def rejoined(cache: ServedCache, joins: Iterable[JoinRecord]) -> ServedCache:
    """A cache after joins were declared, validated or dropped; the same object if it stays so.

    Args:
        cache: The cache.
        joins: All record-preserving joins as they are now.
    """
    stored = replace(cache.plan, joins=cache.held)
    plan = replace(cache.plan, **_of_joins(stored, cache.snapshot, joins, cache.settings))
    if (plan.joins, plan.lapsed) == (cache.plan.joins, cache.plan.lapsed):
        return cache
    return replace(cache, plan=plan, unvalidated=_unvalidated(plan.joins))


def _is_checked_as_read(entry: RegistryEntry) -> bool:
    """Whether the joins of a snapshot were checked under the settings that the cache is read under.
    Earlier releases checked them under Spark's defaults, in the time zone of the refresh."""
    if entry.published is None or entry.published.run.facts.get(CHECKED_UNDER_SETTINGS):
        return True
    return result_settings(entry.cache.settings).keys() <= {TIME_ZONE}


def _of_joins(
    plan: CachePlan,
    snapshot: Mapping[str, BaseState],
    joins: Iterable[JoinRecord],
    settings: Fingerprint,
) -> dict[str, Any]:
    """The joins that rewrites may rely on, and the others between the cache's tables."""
    declared = tuple(joins)
    holding = joins_holding(plan, snapshot, declared, settings)
    names, tables = {join.name for join in holding}, {relation.key for relation in plan.tables}
    lapsed = tuple(
        LapsedJoin(
            join.as_fact(),
            join.state is JoinState.BROKEN,
        )
        for join in declared
        if join.name not in names and {join.left.location, join.right.location} <= tables
    )
    return {"joins": holding, "lapsed": lapsed}


def _unvalidated(joins: Iterable[RecordPreservingJoin]) -> frozenset[str]:
    return frozenset(j.name for j in joins if not j.validated)


def joins_holding(
    plan: CachePlan,
    snapshot: Mapping[str, BaseState],
    joins: Iterable[JoinRecord],
    settings: Fingerprint,
) -> tuple[RecordPreservingJoin, ...]:
    """The joins that rewrites over this snapshot may rely on.

    A join that was dropped or found broken since is out at once, though it held then. One that was
    validated at the very versions of the snapshot is in, though it was declared after the refresh,
    if it was read under the same settings.
    A cache without a snapshot answers nothing: what it would rely on is in, so that no query is
    told to declare a join that is declared.

    Args:
        plan: The plan published with the snapshot; its joins held when it was refreshed.
        snapshot: Location to the state that was read; empty if it was never refreshed.
        joins: The joins as they are declared now.
        settings: Fingerprint of those that the cache is refreshed under.

    Returns:
        The joins, those NOT VALIDATED marked so.
    """
    held = {replace(j, name=j.name.lower()) for j in plan.joins if j.validated}
    tables = {relation.key for relation in plan.tables}
    found = []
    for join in joins:
        left, right = join.left.location, join.right.location
        if join.state is JoinState.BROKEN or not {left, right} <= tables:
            continue
        proven = replace(join.as_fact(), name=join.name.lower()) in held or (
            join.state is JoinState.VALID
            and (
                not snapshot
                or (
                    join.validated_under is not None
                    and fingerprint(join.validated_under) == settings
                    and all(_same_version(join, s.location, snapshot) for s in join.telling)
                )
            )
        )
        if proven or not join.validated:
            found.append(join.as_fact(validated=proven))
    return tuple(found)


def _same_version(join: JoinRecord, place: str, snapshot: Mapping[str, BaseState]) -> bool:
    checked, read = join.validated_versions.get(place), snapshot.get(place)
    return checked is not None and read is not None and read.agrees(checked)


def _base_sizes(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the refresh counted of the base tables; an older one counted less."""
    return {
        "base_rows": facts.get("base_rows"),
        "base_bytes": tuple(sorted((facts.get("base_bytes") or {}).items())),
    }


def _bounds(
    plan: CachePlan, facts: Mapping[str, Any]
) -> tuple[tuple[tuple[str, str], Bounds], ...]:
    """By table and column; of a table that stands twice in the plan what holds for both."""
    found: dict[tuple[str, str], Bounds] = {}
    for (rel, name), (low, high) in noted_bounds(facts).items():
        key = (plan.relations[rel].key, name.lower())
        least, most = found.get(key, (low, high))
        found[key] = (min(low, least), max(high, most))
    return tuple(sorted(found.items()))


def _sized(sets: tuple[GroupingSet, ...], entry: RegistryEntry) -> tuple[GroupingSet, ...]:
    measured = {s.grouping_id: s for s in entry.grouping_sets}
    return tuple(
        replace(s, rows=m.rows, bytes=m.bytes)
        if s.rows is None and (m := measured.get(s.grouping_id)) is not None
        else s
        for s in sets
    )
