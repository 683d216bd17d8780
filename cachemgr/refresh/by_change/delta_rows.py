"""The rows of an incremental refresh: the cache's definition over what came to one base table, less
that over what went from it, added to what is stored.

A set that is written anew is its stored rows and its part of the delta, added up to one row a
group. To the others the delta is appended: the groups of what came as they are, or one row for each
group in which something came or went.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.build import lay_out_plain
from cachemgr.refresh.by_change.changed_rows import rows_that_came, rows_that_went
from cachemgr.refresh.by_change.incremental import Delta
from cachemgr.refresh.layout import plan_layout, spread
from cachemgr.refresh.small import in_one_task
from matcher.model.ir import GROUPING_ID_COLUMN, CachePlan, MatchOptions
from matcher.partials.collapse import merged_rows, net_partials
from matcher.render.select import quote, render_stored

_STORED: Final = "__stored"
_CAME: Final = "__came"
_WENT: Final = "__went"


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
        delta: What came and went, and what is done to which set.
        reads: What each relation of the plan reads, in its order.
        stored: The cache's table at the published version.
        options: The settings that the cache is refreshed under.
        partition_by: Further partition columns of the cache's table.
        cluster_by: Clustering columns of a cache that is no cube.
        small: One task does all: a file for each partition of the cache's table.
    """
    sides = _sides(session, plan, delta, reads, small)
    parts = []
    if delta.appended:
        parts.append(_appended(session, of_sets(plan, delta.appended), sides, options))
    if delta.replaced:
        parts.append(_merged(session, of_sets(plan, delta.replaced), sides, stored, options))
    rows = reduce(DataFrame.unionAll, parts)
    if small:
        return rows.coalesce(1)
    if plan.is_cube:
        return spread(rows, plan, plan_layout(plan, {}, {}), partition_by)
    return lay_out_plain(rows, partition_by, cluster_by)


@dataclass(frozen=True)
class _Sides:
    """What the definition is computed over: the relations with the rows that came in them, and
    those with the rows that went, if any did."""

    came: Mapping[str, Any]
    went: Mapping[str, Any] | None


def _sides(
    session: SparkSession,
    plan: CachePlan,
    delta: Delta,
    reads: Sequence[TableRead],
    small: bool,
) -> _Sides:
    others: dict[str, Any] = {}
    for number, (relation, read) in enumerate(zip(plan.relations, reads, strict=True)):
        others[f"__t{number}"] = None
        if relation.key != delta.table.location:
            others[f"__t{number}"] = in_one_task(session, read) if small else read

    def over(rows: Any) -> dict[str, Any]:
        return {name: rows if read is None else read for name, read in others.items()}

    went = rows_that_went(session, delta)
    return _Sides(over(rows_that_came(session, delta)), None if went is None else over(went))


def _select(session: SparkSession, plan: CachePlan, relations: Mapping[str, Any]) -> DataFrame:
    return run_select(session, render_stored(plan, [quote(n) for n in relations]), relations)


def of_sets(plan: CachePlan, numbers: Sequence[int]) -> CachePlan:
    """A plan with some of its grouping sets alone; itself if it is no cube."""
    sets = tuple(s for s in plan.grouping_sets if s.grouping_id in numbers)
    return replace(plan, grouping_sets=sets) if plan.is_cube else plan


def _appended(
    session: SparkSession, plan: CachePlan, sides: _Sides, options: MatchOptions
) -> DataFrame:
    """The delta of a plan's sets, as rows to append."""
    came = _select(session, plan, sides.came)
    if sides.went is None:
        return came
    relations = {_CAME: came, _WENT: _select(session, plan, sides.went)}
    added, removed = ([_all_of(name, came.columns)] for name in relations)
    return run_select(session, net_partials(plan, added, removed, options), relations)


def _merged(
    session: SparkSession,
    plan: CachePlan,
    sides: _Sides,
    stored: TableRead,
    options: MatchOptions,
) -> DataFrame:
    """The groups of a plan's sets with the delta in them."""
    came = _select(session, plan, sides.came)
    relations: dict[str, Any] = {_STORED: stored, _CAME: came}
    where = ""
    if plan.is_cube:
        listed = ", ".join(f"{s.grouping_id}L" for s in plan.grouping_sets)
        where = f" WHERE {quote(GROUPING_ID_COLUMN)} IN ({listed})"
    added = [_all_of(_STORED, came.columns) + where, _all_of(_CAME, came.columns)]
    removed = []
    if sides.went is not None:
        relations[_WENT] = _select(session, plan, sides.went)
        removed.append(_all_of(_WENT, came.columns))
    return run_select(session, merged_rows(plan, added, removed, options), relations)


def _all_of(relation: str, columns: Sequence[str]) -> str:
    return f"SELECT {', '.join(map(quote, columns))} FROM {relation}"
