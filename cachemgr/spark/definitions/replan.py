"""A cache's definition with what its names stand for now, and the columns that it had at CREATE.

A base table gets columns, or another one takes its name. What the definition says is followed, but
`SELECT *` goes on to mean the columns that it meant when the cache was created, and a name that
could be read then is not made ambiguous by a column that came since.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.base_state import TableAt
from cachemgr.ddl.statements import SelectText
from cachemgr.delta.base_columns import columns_in_order, types_read
from cachemgr.delta.own_session import session_for_definitions
from cachemgr.delta.tables import current_versions
from cachemgr.delta.widening import from_sql, holds_all_of
from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.jvm.session_conf import unnoticed
from cachemgr.metastore.records import CacheRecord, ColumnRecord
from cachemgr.metastore.store import Metastore
from cachemgr.refresh.other_spark import read_by
from cachemgr.refresh.pin import other_columns
from cachemgr.serving.served_cache import matcher_name
from cachemgr.spark.definitions.analysis import Analysis, analyse_definition
from cachemgr.spark.definitions.nested_caches import (
    Stands,
    are_apart,
    definition_session,
    is_known,
)
from cachemgr.spark.plans import capture_query
from cachemgr.spark.texts import is_view
from cachemgr.sparks import minor_of
from matcher.model.codec import decode_plan
from matcher.model.ir import CachePlan
from matcher.render.select import quote

_UNKNOWN_HERE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND")


def replan(spark: SparkSession, cache: CacheRecord, metastore: Metastore) -> CachePlan:
    """The definition under the cache's own settings, as its names resolve in this application.

    Args:
        spark: Any session of the application.
        cache: The cache.
        metastore: Where the caches are that its definition names.

    Returns:
        What it is to hold: the columns that it had when it was created, of types as wide at least.

    Raises:
        CacheManagerError: It does not have these columns any more.
        PySparkException: It does not resolve any more.
    """
    session = definition_session(spark, cache)
    find = metastore.caches.named
    name, select = matcher_name(cache), SelectText(cache.definition)
    before = _plan_before(cache)
    try:
        found = analyse_definition(session, name, select, find)
    except CacheManagerError:
        # a column that came may have the name of another one
        kept = _with_columns_before(session, cache, before, metastore)
        if kept is None:
            raise
        found = kept
    else:
        if _names(found) != _wanted(cache) or _reads_more(found.plan, before):
            found = _with_columns_before(session, cache, before, metastore) or found
        if _has_more(found, cache):
            found = analyse_definition(session, name, select, find, only=_wanted(cache))
    _refuse_other_columns(spark, cache, found, before)
    return found.plan


def replan_anywhere(spark: SparkSession, cache: CacheRecord, metastore: Metastore) -> CachePlan:
    """Like `replan`, in an application whose catalog may not know the definition's names: then
    the stored plan counts, whose base tables are known by their places; with the types that their
    columns have now.

    A hit compares expanded plans, so a view that was redefined meanwhile costs hits, not rows.
    """
    try:
        return replan(spark, cache, metastore)
    except (CacheManagerError, PySparkException) as error:
        before = _plan_before(cache)
        if before is None or not any(code in str(error) for code in _UNKNOWN_HERE):
            raise
        return _by_places(spark, cache, before, metastore)


def _plan_before(cache: CacheRecord) -> CachePlan | None:
    """What a cache was to hold when it was created, or since its tables were changed and a refresh
    followed; None if another version of this program stored that."""
    with suppress(KeyError, TypeError, ValueError):
        return None if cache.plan is None else decode_plan(dict(cache.plan))
    return None


def _wanted(cache: CacheRecord) -> list[str]:
    return [column.name for column in cache.columns]


def _names(found: Analysis) -> list[str]:
    return [column.name for column in found.columns]


def _has_more(found: Analysis, cache: CacheRecord) -> bool:
    """Whether a view or cache that SELECT * reads has got columns. Left out they change no row,
    since nothing is grouped by them."""
    names, wanted = _names(found), _wanted(cache)
    if not are_apart(wanted):
        return False  # no name tells which of two was there before
    return names != wanted and set(wanted) <= set(names) and found.plan.keys is None


def _reads_more(plan: CachePlan, before: CachePlan | None) -> bool:
    if before is None:
        return False
    then = columns_in_order(before)
    return any(
        set(names) - set(then.get(key, names)) for key, names in columns_in_order(plan).items()
    )


def _with_columns_before(
    session: SparkSession, cache: CacheRecord, before: CachePlan | None, metastore: Metastore
) -> Analysis | None:
    """The definition over tables that have no other columns than it read before; None if that is
    not the cache."""
    if before is None:
        return None
    try:
        found = analyse_definition(
            session,
            matcher_name(cache),
            SelectText(cache.definition),
            metastore.caches.named,
            stands=_narrowed(before),
        )
    except (CacheManagerError, PySparkException):
        return None
    return found if _names(found) == _wanted(cache) else None


def _narrowed(before: CachePlan) -> Stands:
    by_place = columns_in_order(before)
    by_name = {r.name.lower(): by_place[r.key] for r in before.tables}

    def stands(spark: SparkSession, parts: list[str]) -> DataFrame | None:
        name = ".".join(map(quote, parts))
        if not is_known(spark, parts) or is_view(spark, name):
            return None
        tables = capture_query(spark, f"SELECT 1 FROM {name}").tables
        if len(tables) != 1:
            return None
        (table,) = tables
        columns = by_place.get(table.location) or by_name.get(table.name.lower())
        if not columns:
            return None
        with unnoticed():
            return spark.table(name).select([quote(column) for column in columns])

    return stands


def _by_places(
    spark: SparkSession, cache: CacheRecord, before: CachePlan, metastore: Metastore
) -> CachePlan:
    """The plan before, of tables whose columns may have other types by now."""
    names = {relation.key: relation.name for relation in before.tables}
    if not _types_changed(spark, before):
        return before
    places = {name.lower(): key for key, name in names.items()}
    schema = str(cache.context.get("schema", ""))

    def stands(session: SparkSession, parts: list[str]) -> DataFrame | None:
        written = ".".join(parts).lower()
        place = places.get(written) or places.get(f"{schema}.{written}".lower())
        if place is None:
            return None
        with unnoticed():
            frame = session.read.format("delta").load(place)
            return frame.select([quote(c) for c in columns_in_order(before)[place]] or ["*"])

    session = session_for_definitions(spark, cache.settings)
    try:
        found = analyse_definition(
            session,
            matcher_name(cache),
            SelectText(cache.definition),
            metastore.caches.named,
            stands=stands,
        )
    except (CacheManagerError, PySparkException):
        return before  # it names a view: what the refresh finds wrong with its columns is told
    if _names(found) != _wanted(cache):
        return before
    plan = found.plan
    _refuse_other_columns(spark, cache, found, before)
    return replace(
        plan,
        relations=tuple(replace(r, name=names.get(r.key, r.name)) for r in plan.relations),
    )


def _types_changed(spark: SparkSession, plan: CachePlan) -> bool:
    """Whether a column that a plan reads has another type at its table's place than in the plan."""
    names = {relation.key: relation.name for relation in plan.relations}
    found = current_versions(spark, names)
    versions = {place: now.version for place, now in found.items() if isinstance(now, TableAt)}
    if versions.keys() != names.keys():
        return False  # one is gone, as the refresh will say
    return any(other.now for other in other_columns(spark, plan, versions))


def _refuse_other_columns(
    spark: SparkSession, cache: CacheRecord, found: Analysis, before: CachePlan | None
) -> None:
    """Refuse a definition that gives other columns by now, but for those that got another type with
    a base column: whether that one may be followed the refresh decides.

    Raises:
        CacheManagerError: Names the column, what it was and what it is.
    """
    then, now = Counter(_wanted(cache)), Counter(_names(found))
    told = [f"column {name} is gone" for name in then - now]
    told += [f"column {name} came" for name in now - then]
    if not told and not _has_other_types(found.plan, before):
        # columns of one name are in the order in which they were
        pairs = zip(*(sorted(c, key=_by_name) for c in (cache.columns, found.columns)), strict=True)
        told = [
            f"column {old.name} was {old.type} and is {new.type}"
            for old, new in pairs
            if not holds_all_of(from_sql(old.type), from_sql(new.type))
        ]
    here, first = minor_of(spark.version), read_by(cache)
    if told and here != first:
        raise CacheManagerError(
            ErrorCode.OTHER_SPARK,
            f"Spark {here} makes other columns of the definition of cache {cache.qualified_name} "
            f"than Spark {first}, which has read it first: {'; '.join(told)}; refresh it by a "
            f"Spark {first}, or create it again by this one with OR REPLACE",
        )
    if told:
        raise CacheManagerError(
            ErrorCode.COLUMNS_CHANGED,
            f"the columns of cache {cache.qualified_name} are not what they were, since a view or "
            f"table that it names was changed: {'; '.join(told)}; change it back, or create the "
            "cache again with OR REPLACE",
        )


def _by_name(column: ColumnRecord) -> str:
    return column.name


def _has_other_types(plan: CachePlan, before: CachePlan | None) -> bool:
    """Whether a base column has another type than it had."""
    if before is None:
        return False
    then = types_read(before)
    return any(then.get(column, type_) != type_ for column, type_ in types_read(plan).items())
