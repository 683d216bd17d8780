"""A cache's definition with what its names stand for now."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cachemgr.ddl.statements import SelectText
from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.metastore.records import CacheRecord
from cachemgr.metastore.store import Metastore
from cachemgr.serving.served_cache import matcher_name
from cachemgr.spark.analysis import analyse_definition
from cachemgr.spark.nested_caches import definition_session
from matcher.model.codec import decode_plan
from matcher.model.ir import CachePlan

_UNKNOWN_HERE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND")


def replan(spark: SparkSession, cache: CacheRecord, metastore: Metastore) -> CachePlan:
    """The definition under the cache's own settings, as its names resolve in this application.

    Args:
        spark: Any session of the application.
        cache: The cache.
        metastore: Where the caches are that its definition names.

    Returns:
        What it is to hold.

    Raises:
        CacheManagerError: Its columns are not what they were when it was created.
        PySparkException: It does not resolve any more.
    """
    session = definition_session(spark, cache)
    select = SelectText(cache.definition)
    find = metastore.reader.cache
    analysis = analyse_definition(session, matcher_name(cache), select, find)
    before = [(c.name, c.type) for c in cache.columns]
    if before != [(c.name, c.type) for c in analysis.columns]:
        raise CacheManagerError(
            ErrorCode.COLUMNS_CHANGED,
            f"the columns of cache {cache.qualified_name} are not what they were when it was "
            "created, since a view or table that it names was changed: "
            "create it again with OR REPLACE",
        )
    return analysis.plan


def replan_anywhere(spark: SparkSession, cache: CacheRecord, metastore: Metastore) -> CachePlan:
    """Like `replan`, in an application whose catalog may not know the definition's names: then
    the plan of its creation counts, whose base tables are known by their places.

    A hit compares expanded plans, so a view that was redefined meanwhile costs hits, not rows.
    """
    try:
        return replan(spark, cache, metastore)
    except (CacheManagerError, PySparkException) as error:
        if cache.plan is None or not any(code in str(error) for code in _UNKNOWN_HERE):
            raise
        return decode_plan(dict(cache.plan))
