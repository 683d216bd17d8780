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
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cachemgr.delta.change_feed import CHANGE
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.by_change.changed_rows import rows_by_feed, rows_that_came, rows_that_went
from cachemgr.refresh.by_change.incremental import Delta
from cachemgr.refresh.file_stats import of_few_files
from cachemgr.refresh.full.build import lay_out_plain
from cachemgr.refresh.full.layout import plan_layout, spread
from cachemgr.refresh.small import in_one_task
from matcher.model.expr import Col
from matcher.model.ir import GROUPING_ID_COLUMN, CachePlan, MatchOptions
from matcher.partials.collapse import SIGN, merged_rows, net_partials, with_sign
from matcher.render.placeholders import CAME, STORED, WENT, tables_of
from matcher.render.select import quote, render_stored


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
    changed = _changed(session, plan, delta, reads, small)
    parts = []
    if delta.appended:
        parts.append(changed.appended(of_sets(plan, delta.appended), options))
    if delta.replaced:
        parts.append(changed.merged(of_sets(plan, delta.replaced), stored, options))
    rows = reduce(DataFrame.unionAll, parts)
    if small:
        return rows.coalesce(1)
    if plan.is_cube:
        return spread(rows, plan, plan_layout(plan, {}, {}), partition_by)
    return lay_out_plain(rows, partition_by, cluster_by)


@dataclass(frozen=True)
class _Changed:
    """The definition over what changed.

    Args:
        session: A session of ours.
        rel: Which relation of the plan is the changed table.
        number: Which of its base tables that is.
        others: What the others read, by the names of `tables_of`.
        came: The rows that came; where `is_marked`, also those that went, told apart by `CHANGE`.
        went: The rows that went; None where none did, or `came` has them.
        is_marked: See `came`.
    """

    session: SparkSession
    rel: int
    number: int
    others: Mapping[str, Any]
    came: Any
    went: Any = None
    is_marked: bool = False

    def appended(self, plan: CachePlan, options: MatchOptions) -> DataFrame:
        """The delta of a plan's sets, as rows to append."""
        relations, sides = self._sides(plan)
        if not self.is_marked and self.went is None:
            return relations[CAME]
        return run_select(self.session, net_partials(plan, options=options, **sides), relations)

    def merged(self, plan: CachePlan, stored: TableRead, options: MatchOptions) -> DataFrame:
        """The groups of a plan's sets with the delta in them."""
        relations, sides = self._sides(plan)
        where = ""
        if plan.is_cube:
            listed = ", ".join(f"{s.grouping_id}L" for s in plan.grouping_sets)
            where = f" WHERE {quote(GROUPING_ID_COLUMN)} IN ({listed})"
        before = _all_of(STORED, _columns(relations[CAME])) + where
        sides["added"].insert(0, before)
        text = merged_rows(plan, options=options, **sides)
        return run_select(self.session, text, relations | {STORED: stored})

    def _sides(self, plan: CachePlan) -> tuple[dict[str, DataFrame], dict[str, list[str]]]:
        """The definition over what came and what went, and SELECTs of both as `merged_rows` takes
        them."""
        if self.is_marked:
            marked = with_sign(plan, Col(self.rel, CHANGE, "int", nullable=False))
            came = self._over(marked, self.came)
            both = _all_of(CAME, [*_columns(came), SIGN])
            return {CAME: came}, {"added": [], "removed": [], "signed": [both]}
        relations = {CAME: self._over(plan, self.came)}
        columns = relations[CAME].columns
        sides: dict[str, list[str]] = {"added": [_all_of(CAME, columns)], "removed": []}
        if self.went is not None:
            relations[WENT] = self._over(plan, self.went)
            sides["removed"] = [_all_of(WENT, columns)]
        return relations, sides

    def _over(self, plan: CachePlan, rows: Any) -> DataFrame:
        names = tables_of(len(plan.tables))
        relations = {**self.others, names[self.number]: rows}
        return run_select(self.session, render_stored(plan, list(map(quote, names))), relations)


def _changed(
    session: SparkSession,
    plan: CachePlan,
    delta: Delta,
    reads: Sequence[TableRead],
    small: bool,
) -> _Changed:
    others: dict[str, Any] = {}
    # the table stands once in the plan, and not in groups below, or the delta would not be linear
    place = delta.table.location
    changed = 0
    rel = next(i for i, relation in enumerate(plan.relations) if relation.key == place)
    names = tables_of(len(reads))
    for number, (table, read) in enumerate(zip(plan.tables, reads, strict=True)):
        if table.key == place:
            changed = number
        else:
            others[names[number]] = (
                in_one_task(session, read) if small else of_few_files(session, read)
            )
    if delta.by_feed and delta.is_signed:
        return _Changed(session, rel, changed, others, rows_by_feed(session, delta), is_marked=True)
    went = rows_that_went(session, delta) if delta.is_signed else None
    return _Changed(session, rel, changed, others, rows_that_came(session, delta), went)


def _columns(definition: DataFrame) -> list[str]:
    return [name for name in definition.columns if name != SIGN]


def of_sets(plan: CachePlan, numbers: Sequence[int]) -> CachePlan:
    """A plan with some of its grouping sets alone; itself if it is no cube."""
    sets = tuple(s for s in plan.grouping_sets if s.grouping_id in numbers)
    return replace(plan, grouping_sets=sets) if plan.is_cube else plan


def _all_of(relation: str, columns: Sequence[str]) -> str:
    return f"SELECT {', '.join(map(quote, columns))} FROM {relation}"
