"""The rows of a full refresh as one DataFrame, laid out in files for the reads to come.

A small cache is Spark's own SELECT. Of a cube the last refresh, or a sample, tells how many groups
each set has (`sample`), from which follow the sets that are aggregated from another set
(`lattice`), the number of files of each set, and the values at which a large set is split, so that
a filter on its most selective key reads few files. That decides layout and cost only, never a
row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.full.base import PARTS_OF_A_CORE, Base, base_of, cores
from cachemgr.refresh.full.lattice import (
    Keys,
    Lattice,
    grouping_id,
    plan_lattice,
    why_not_rolled_up,
)
from cachemgr.refresh.full.layout import Layout, plan_layout, spread
from cachemgr.refresh.full.one_shuffle import is_even, shuffle_once
from cachemgr.refresh.full.sample import Sizes, sizes_of
from cachemgr.refresh.small import in_one_task
from matcher.model.expr import Col
from matcher.model.ir import GROUPING_ID_COLUMN, CachePlan, GroupingSet
from matcher.render.placeholders import TABLE, tables_of
from matcher.render.select import quote, render_stored

# Planning and the jobs of another pass take as long as so many row aggregations.
LEAST_SAVED: Final = 10_000_000
# Where a cube has fewer groups, a core adds rows to them as fast as it would deal the rows out.
DEAL_OUT_FROM_GROUPS: Final = 1_000_000
_ROLLED_UP_BY = {
    "min": F.min,
    "max": F.max,
    "bit_and": F.bit_and,
    "bit_or": F.bit_or,
    "bit_xor": F.bit_xor,
}


@dataclass
class Built:
    """A DataFrame to write, how it was planned, and what to let go of afterwards.

    Args:
        rows: The DataFrame.
        lattice: Which sets come from which.
        estimates: The expected groups of each set.
        release: To be called once the rows are written.
        is_regrouped: Values are added up in other parts than by Spark's own SELECT.
    """

    rows: DataFrame
    lattice: Lattice | None = None
    estimates: Mapping[Keys, float] = field(default_factory=dict)
    release: Callable[[], None] = lambda: None
    is_regrouped: bool = False

    def sources(self, plan: CachePlan) -> list[dict[str, Any]]:
        """For the run's row: where each set comes from, and how many groups were expected."""
        lattice = self.lattice
        return [
            {
                "grouping_id": s.grouping_id,
                "source": "base pass" if lattice is None else lattice.source_of(s.keys),
                "estimated_rows": int(self.estimates[s.keys]) if s.keys in self.estimates else None,
            }
            for s in plan.grouping_sets
        ]


@dataclass(frozen=True)
class _Part:
    """The rows of some of a cube's sets."""

    rows: DataFrame
    sets: tuple[Keys, ...]


def build_rows(
    session: SparkSession,
    plan: CachePlan,
    tables: Sequence[TableRead],
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    source: DataFrame | None = None,
    small: bool = False,
    before: CachePlan | None = None,
    plain: bool = False,
) -> Built:
    """The cache's rows, ready to be written in one commit.

    Args:
        session: A session of ours with the cache's settings.
        plan: What to compute.
        tables: Each relation's location and version, in the plan's order.
        partition_by: Further partition columns of the cache's table.
        cluster_by: Clustering columns of a cache that is no cube.
        source: All rows to store, if they are not to be computed from the base tables.
        small: One task does all (`small`): a file for each partition of the cache's table.
        before: What the cache holds now, if anything: how large its sets will be, about.
        plain: By Spark's own SELECT, whatever it costs.

    Returns:
        The rows; call `release` once they are written.
    """
    if source is not None:
        return _laid_out(source, plan, partition_by, cluster_by, small)
    if small:
        names = tables_of(len(tables))
        parts = {n: in_one_task(session, t) for n, t in zip(names, tables, strict=True)}
        return _laid_out(_select(session, plan, parts), plan, partition_by, cluster_by, small)
    base = base_of(session, tables)
    sizes = sizes_of(session, plan, base, before) if plan.is_cube and not plain else None
    if sizes is not None:
        try:
            return _build_cube(session, plan, base, sizes, partition_by)
        finally:
            sizes.release()
    rows = _select(session, plan, base.relations)
    return _laid_out(rows, plan, partition_by, cluster_by, small)


def _laid_out(
    rows: DataFrame,
    plan: CachePlan,
    partition_by: Sequence[str],
    cluster_by: Sequence[str],
    small: bool,
) -> Built:
    """Rows of which nothing is known."""
    if small:
        return Built(_sorted_by(rows.coalesce(1), () if plan.is_cube else cluster_by))
    if not plan.is_cube:
        return Built(lay_out_plain(rows, partition_by, cluster_by))
    return Built(spread(rows, plan, plan_layout(plan, {}, {}), partition_by))


def _build_cube(
    session: SparkSession,
    plan: CachePlan,
    base: Base,
    sizes: Sizes,
    partition_by: Sequence[str],
) -> Built:
    keys = [s.keys for s in plan.grouping_sets]
    estimates = {k: sizes.groups[frozenset(k)] for k in keys}
    relations, is_dealt_out, n_cores = base.relations, False, cores(session)
    problem = why_not_rolled_up(plan)
    if problem is not None:
        lattice = Lattice(tuple(keys), (), problem)
    else:
        lattice = plan_lattice(keys, sizes.groups, sizes.base_rows, LEAST_SAVED)
        is_dealt_out = base.is_uneven and sum(estimates.values()) >= DEAL_OUT_FROM_GROUPS
    if is_dealt_out:
        relations = base.dealt_out(session, _even_column(plan, base, sizes, n_cores))
    parts, release = _lattice_rows(session, plan, relations, lattice)
    try:
        cubes = [_with_sets(plan, part.sets) for part in parts]
        layouts = [_layout(cube, sizes, estimates) for cube in cubes]
        groups = {s.grouping_id: estimates[s.keys] for s in plan.grouping_sets}
        tasks = PARTS_OF_A_CORE * n_cores if is_dealt_out else base.tasks(n_cores)
        if is_even(layouts, groups, sizes.base_rows, tasks, n_cores):
            shuffle_once(session)
        laid_out = [
            spread(part.rows, cube, layout, partition_by)
            for part, cube, layout in zip(parts, cubes, layouts, strict=True)
        ]
    except BaseException:
        release()
        raise
    rows = reduce(DataFrame.unionAll, laid_out)
    is_regrouped = bool(lattice.families) or is_dealt_out
    return Built(rows, lattice, estimates, release, is_regrouped)


def _even_column(plan: CachePlan, base: Base, sizes: Sizes, parts: int) -> str | None:
    """A column of the largest table, one of the keys, by which rows can be dealt out."""
    largest = list(base.relations).index(base.largest)
    keys = plan.keys or ()
    for i in sorted(range(len(keys)), key=lambda i: -sizes.groups.get(frozenset((i,)), 0.0)):
        expr = keys[i].expr
        if isinstance(expr, Col) and expr.rel == largest and sizes.is_even(i, parts):
            return expr.name
    return None


def _select(session: SparkSession, plan: CachePlan, relations: Mapping[str, object]) -> DataFrame:
    names = [quote(name) for name in relations]
    return run_select(session, render_stored(plan, names), relations)


def _lattice_rows(
    session: SparkSession,
    plan: CachePlan,
    relations: Mapping[str, object],
    lattice: Lattice,
) -> tuple[list[_Part], Callable[[], None]]:
    parts = []
    if lattice.base:
        cube = _with_sets(plan, lattice.base)
        parts.append(_Part(_select(session, cube, relations), lattice.base))
    if not lattice.families:
        return parts, lambda: None
    computed = _select(session, _with_sets(plan, [f.keys for f in lattice.families]), relations)
    computed.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        parts += _of_ancestors(session, plan, computed, lattice)
    except BaseException:
        _unpersist(computed)
        raise
    return parts, lambda: _unpersist(computed)


def _of_ancestors(
    session: SparkSession, plan: CachePlan, computed: DataFrame, lattice: Lattice
) -> list[_Part]:
    """The rows of the ancestors that are stored, and of the sets that come from each."""
    parts = []
    # Named by its plan: Spark does not find what it holds again below a second Expand, and would
    # compute it from the base once for each family.
    held = computed._jdf.queryExecution().withCachedData()
    ancestors = run_select(session, f"SELECT * FROM {TABLE}", {TABLE: held})
    width = len(plan.keys or ())
    stored = tuple(f.keys for f in lattice.families if f.stored)
    if stored:
        ids = [grouping_id(keys, width) for keys in stored]
        parts.append(_Part(ancestors.where(F.col(GROUPING_ID_COLUMN).isin(ids)), stored))
    for family in lattice.families:
        if family.children:
            mine = ancestors.where(F.col(GROUPING_ID_COLUMN) == grouping_id(family.keys, width))
            parts.append(_Part(_roll_up(mine, plan, family.children), family.children))
    return parts


def _unpersist(rows: DataFrame) -> None:
    rows.unpersist()


def _with_sets(plan: CachePlan, sets: Sequence[Keys]) -> CachePlan:
    width = len(plan.keys or ())
    return replace(plan, grouping_sets=tuple(GroupingSet(grouping_id(s, width), s) for s in sets))


def _roll_up(ancestor: DataFrame, plan: CachePlan, children: Sequence[Keys]) -> DataFrame:
    """The children's rows from their ancestor's, with the stored columns' order and types.

    SUM over a stored decimal SUM widens the type and COUNT becomes a SUM, so both are cast back.
    """
    keys = [F.col(quote(c.name)) for c in plan.keys or ()]
    measures = []
    for measure in plan.measures:
        column = F.col(quote(measure.name))
        function = _ROLLED_UP_BY.get(measure.agg.func, F.sum)
        stored = ancestor.schema[measure.name].dataType
        measures.append(function(column).cast(stored).alias(measure.name))
    gid = F.grouping_id().alias(GROUPING_ID_COLUMN)
    sets: list[list[Column]] = [[keys[i] for i in child] for child in children]
    grouped = ancestor.groupingSets(sets, *keys).agg(gid, *measures)
    return grouped.select([F.col(quote(name)) for name in ancestor.columns])


def _layout(plan: CachePlan, sizes: Sizes, estimates: Mapping[Keys, float]) -> Layout:
    width = len(plan.keys or ())
    selectivity = {i: sizes.groups.get(frozenset((i,)), 0.0) for i in range(width)}
    return plan_layout(plan, estimates, selectivity, sizes.values)


def lay_out_plain(
    rows: DataFrame, partition_by: Sequence[str], cluster_by: Sequence[str]
) -> DataFrame:
    if cluster_by:
        columns = [F.col(quote(c)) for c in cluster_by]
        return _sorted_by(rows.repartitionByRange(*columns), cluster_by)
    # Adaptive execution merges small shuffle partitions and splits large ones into even files.
    return rows.hint("rebalance", *[F.col(quote(c)) for c in partition_by])


def _sorted_by(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    return rows.sortWithinPartitions(*[F.col(quote(n)) for n in names]) if names else rows
