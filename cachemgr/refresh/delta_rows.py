"""The rows of an incremental refresh: the cache's definition over what was appended to one base
table, added to what is stored.

A set that is written anew is its stored rows and its part of the delta, one below the other, added
up to one row a group. What is appended is the delta as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.delta.added_files import AddedFiles
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.build import lay_out_plain
from cachemgr.refresh.incremental import Delta
from cachemgr.refresh.layout import plan_layout, spread
from cachemgr.refresh.small import in_one_task
from matcher.model.ir import GROUPING_ID_COLUMN, CachePlan, MatchOptions
from matcher.partials.collapse import merged_rows
from matcher.render.select import quote, render_stored

_STORED: Final = "__stored"
_DELTA: Final = "__delta"


def delta_rows(
    session: SparkSession,
    plan: CachePlan,
    delta: Delta,
    reads: Sequence[TableRead],
    stored: TableRead,
    options: MatchOptions,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    *,
    small: bool,
) -> DataFrame:
    """The rows to write, in the order of the cache's columns.

    Args:
        session: A session of ours with the cache's settings.
        plan: The cache, with the sums that are exact as it is stored.
        delta: What was appended, and what is done to which set.
        reads: What each relation of the plan reads, in its order.
        stored: The cache's table at the published version.
        options: The settings that the cache is refreshed under.
        partition_by: Further partition columns of the cache's table.
        cluster_by: Clustering columns of a cache that is no cube.
        small: One task does all: a file for each partition of the cache's table.
    """
    relations = _relations(session, plan, delta, reads, small)
    parts = []
    if delta.appended:
        parts.append(_select(session, of_sets(plan, delta.appended), relations))
    if delta.replaced:
        some = of_sets(plan, delta.replaced)
        parts.append(_merged(session, some, relations, stored, options))
    rows = reduce(DataFrame.unionAll, parts)
    if small:
        return rows.coalesce(1)
    if plan.is_cube:
        return spread(rows, plan, plan_layout(plan, {}, {}), partition_by)
    return lay_out_plain(rows, partition_by, cluster_by)


def _relations(
    session: SparkSession,
    plan: CachePlan,
    delta: Delta,
    reads: Sequence[TableRead],
    small: bool,
) -> dict[str, Any]:
    added = AddedFiles(
        delta.table.location, delta.since, delta.table.version, delta.changes.added
    ).plan(session)
    found: dict[str, Any] = {}
    for number, (relation, read) in enumerate(zip(plan.relations, reads, strict=True)):
        if relation.key == delta.table.location:
            found[f"__t{number}"] = added
        else:
            found[f"__t{number}"] = in_one_task(session, read) if small else read
    return found


def _select(session: SparkSession, plan: CachePlan, relations: Mapping[str, Any]) -> DataFrame:
    return run_select(session, render_stored(plan, [quote(n) for n in relations]), relations)


def of_sets(plan: CachePlan, numbers: Sequence[int]) -> CachePlan:
    """A plan with some of its grouping sets alone; itself if it is no cube."""
    sets = tuple(s for s in plan.grouping_sets if s.grouping_id in numbers)
    return replace(plan, grouping_sets=sets) if plan.is_cube else plan


def _merged(
    session: SparkSession,
    plan: CachePlan,
    relations: Mapping[str, Any],
    stored: TableRead,
    options: MatchOptions,
) -> DataFrame:
    """The groups of a plan's sets with the delta's rows in them."""
    delta = _select(session, plan, relations)
    names = ", ".join(quote(name) for name in delta.columns)
    where = ""
    if plan.is_cube:
        listed = ", ".join(f"{s.grouping_id}L" for s in plan.grouping_sets)
        where = f" WHERE {quote(GROUPING_ID_COLUMN)} IN ({listed})"
    sides = [f"SELECT {names} FROM {_STORED}{where}", f"SELECT {names} FROM {_DELTA}"]
    text = merged_rows(plan, sides, [], options)
    return run_select(session, text, {_STORED: stored, _DELTA: delta})
