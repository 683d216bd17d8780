"""What was declared of a base table is declared of the one that took its name or its place: that it
is restricted, and the record-preserving joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import SparkSession

from cachemgr.base_state import TableAt
from cachemgr.delta.tables import current_states
from cachemgr.metastore.joins import Joins
from cachemgr.metastore.records import CacheRecord, SnapshotRecord
from cachemgr.metastore.store import Metastore


def follow_tables(
    spark: SparkSession,
    metastore: Metastore,
    cache: CacheRecord,
    published: SnapshotRecord | None,
    tables: Iterable[TableAt],
) -> None:
    """Extend marks and joins to the tables that a cache's definition stands for now.

    A name may mean another table in another application. So a join follows one only away from a
    place that this cache read under that name, or where no table is any more.

    Args:
        spark: Any session.
        metastore: Where they are kept.
        cache: The cache, as it was before.
        published: The snapshot before; None for none.
        tables: Its base tables now.
    """
    found = tuple(tables)
    named = {table.name.lower(): table.location for table in found}
    left = {
        place
        for place, name in _before(cache, published)
        if named.get(name.lower(), place) != place
    }
    left |= _gone(spark, metastore.joins, named, left)
    metastore.tables.follow(found, left)


def _before(cache: CacheRecord, published: SnapshotRecord | None) -> Iterable[tuple[str, str]]:
    """The places and names of the tables that a cache read."""
    yield from ((str(place), str(name)) for place, name in (cache.plan or {}).get("relations", ()))
    if published is not None:
        yield from ((table.location, table.name) for table in published.tables)


def _gone(spark: SparkSession, joins: Joins, named: Mapping[str, str], left: set[str]) -> set[str]:
    """The places of joins' tables that lie elsewhere now and of which nothing is left there."""
    places = {
        side.location
        for join in joins.all()
        for side in (join.left, join.right)
        if named.get(side.name.lower(), side.location) != side.location
    } - left
    states = current_states(spark, places) if places else {}
    return {place for place, state in states.items() if state is None}
