"""The rows of a full refresh as one DataFrame, laid out in files for the reads to come.

A small cache is Spark's own SELECT. A cube over many rows is sampled first: the sample tells how
many groups each set has, from which follow the sets that are aggregated from another set
(`lattice`), the number of files of each set, and the values at which a large set is split, so that
a filter on its most selective key reads few files. The sample decides layout and cost only, never a
row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cachemgr.delta.log import size_in_bytes
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.full.lattice import (
    Keys,
    Lattice,
    estimate_groups,
    grouping_id,
    helper_candidates,
    plan_lattice,
    why_not_rolled_up,
)
from cachemgr.refresh.full.layout import Layout, plan_layout, spread
from cachemgr.refresh.small import in_one_task
from matcher.model.expr import columns
from matcher.model.ir import GROUPING_ID_COLUMN, CachePlan, GroupingSet
from matcher.render.select import quote, render_stored

# Below this many rows of the largest base table a sample costs more than it saves.
SAMPLE_ABOVE_ROWS = 1_000_000
SAMPLE_ROWS = 60_000
_ROLLED_UP_BY = {
    "min": F.min,
    "max": F.max,
    "bit_and": F.bit_and,
    "bit_or": F.bit_or,
    "bit_xor": F.bit_xor,
}


@dataclass
class Built:
    """A DataFrame to write, how it was planned, and what to let go of afterwards."""

    rows: DataFrame
    lattice: Lattice | None = None
    estimates: Mapping[Keys, float] = field(default_factory=dict)
    release: Callable[[], None] = lambda: None

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
class _Sample:
    share: float
    base_rows: float
    groups: Mapping[frozenset[int], float]
    rows: DataFrame


def build_rows(
    session: SparkSession,
    plan: CachePlan,
    tables: Sequence[TableRead],
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    sample_above: int = SAMPLE_ABOVE_ROWS,
    source: DataFrame | None = None,
    small: bool = False,
) -> Built:
    """The cache's rows, ready to be written in one commit.

    Args:
        session: A session of ours with the cache's settings.
        plan: What to compute.
        tables: Each relation's location and version, in the plan's order.
        partition_by: Further partition columns of the cache's table.
        cluster_by: Clustering columns of a cache that is no cube.
        sample_above: Rows of the largest base table from which on a cube is sampled.
        source: All rows to store, if they are not to be computed from the base tables.
        small: One task does all (`small`): a file for each partition of the cache's table.

    Returns:
        The rows; call `release` once they are written.
    """
    relations = {f"__t{i}": table for i, table in enumerate(tables)}
    rows = source
    if small:
        if rows is None:
            parts = {n: in_one_task(session, table) for n, table in relations.items()}
            rows = _select(session, plan, parts)
        return Built(_sorted_by(rows.coalesce(1), () if plan.is_cube else cluster_by))
    if not plan.is_cube:
        rows = _select(session, plan, relations) if rows is None else rows
        return Built(lay_out_plain(rows, partition_by, cluster_by))
    sample = None if rows is not None else _sample(session, plan, relations, sample_above)
    if sample is None:
        layout = plan_layout(plan, {}, {})
        return Built(spread(rows or _select(session, plan, relations), plan, layout, partition_by))
    try:
        return _build_cube(session, plan, relations, sample, partition_by)
    finally:
        sample.rows.unpersist()


def _build_cube(
    session: SparkSession,
    plan: CachePlan,
    relations: Mapping[str, TableRead],
    sample: _Sample,
    partition_by: Sequence[str],
) -> Built:
    keys = [s.keys for s in plan.grouping_sets]
    problem = why_not_rolled_up(plan)
    if problem is None:
        lattice = plan_lattice(keys, sample.groups, sample.base_rows)
    else:
        lattice = Lattice(tuple(keys), (), problem)
    estimates = {k: sample.groups[frozenset(k)] for k in keys}
    layout = _layout(plan, sample, estimates)
    parts, release = _lattice_rows(session, plan, relations, lattice)
    rows = spread(reduce(DataFrame.unionAll, parts), plan, layout, partition_by)
    return Built(rows, lattice, estimates, release)


def _select(
    session: SparkSession, plan: CachePlan, relations: Mapping[str, TableRead | DataFrame]
) -> DataFrame:
    names = [quote(name) for name in relations]
    return run_select(session, render_stored(plan, names), relations)


def _lattice_rows(
    session: SparkSession,
    plan: CachePlan,
    relations: Mapping[str, TableRead],
    lattice: Lattice,
) -> tuple[list[DataFrame], Callable[[], None]]:
    parts = []
    if lattice.base:
        parts.append(_select(session, _with_sets(plan, lattice.base), relations))
    if not lattice.families:
        return parts, lambda: None
    ancestors = _select(
        session, _with_sets(plan, [f.keys for f in lattice.families]), relations
    ).persist(StorageLevel.MEMORY_AND_DISK)
    width = len(plan.keys or ())
    stored = [grouping_id(f.keys, width) for f in lattice.families if f.stored]
    if stored:
        parts.append(ancestors.where(F.col(GROUPING_ID_COLUMN).isin(stored)))
    for family in lattice.families:
        if family.children:
            mine = ancestors.where(F.col(GROUPING_ID_COLUMN) == grouping_id(family.keys, width))
            parts.append(_roll_up(mine, plan, family.children))
    return parts, lambda: _unpersist(ancestors)


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


def _sample(
    session: SparkSession,
    plan: CachePlan,
    relations: Mapping[str, TableRead],
    sample_above: int,
) -> _Sample | None:
    largest = max(relations, key=lambda name: size_in_bytes(session, relations[name].location))
    total = _count(session, relations[largest])
    if total < max(sample_above, 1):
        return None
    share = min(1.0, SAMPLE_ROWS / total)
    # Named, because a sample is a barrier that column pruning may not pass.
    needed = ", ".join(map(quote, _key_columns(plan, list(relations).index(largest)))) or "1"
    read = run_select(session, f"SELECT {needed} FROM __t", {"__t": relations[largest]})
    drawn = read.sample(withReplacement=False, fraction=share, seed=1)
    sources: dict[str, TableRead | object] = dict(relations)
    sources[largest] = drawn._jdf.queryExecution().analyzed()
    rows = run_select(session, _keys_sql(plan, list(relations)), sources).persist()
    try:
        return _estimate(plan, rows, share)
    except BaseException:
        rows.unpersist()
        raise


def _estimate(plan: CachePlan, rows: DataFrame, share: float) -> _Sample:
    base_rows = rows.count() / share
    stored = [frozenset(s.keys) for s in plan.grouping_sets]
    single = [frozenset((i,)) for i in range(len(plan.keys or ()))]
    groups = _count_groups(plan, rows, [*stored, *single], share, base_rows)
    sets = [s.keys for s in plan.grouping_sets]
    if why_not_rolled_up(plan) is None:
        helpers = helper_candidates(sets, groups, base_rows)
        groups |= _count_groups(plan, rows, helpers, share, base_rows)
    return _Sample(share, base_rows, groups, rows)


def _count(session: SparkSession, table: TableRead) -> int:
    return int(run_select(session, "SELECT COUNT(*) FROM __t", {"__t": table}).collect()[0][0])


def _keys_sql(plan: CachePlan, names: Sequence[str]) -> str:
    """The joined rows, reduced to the keys: the definition without its aggregation."""
    keys = tuple(replace(key, name=f"k{i}") for i, key in enumerate(plan.keys or ()))
    flat = replace(plan, keys=None, columns=keys, measures=(), grouping_sets=())
    return render_stored(flat, [quote(name) for name in names])


def _key_columns(plan: CachePlan, rel: int) -> list[str]:
    """The columns of relation `rel` that the joins, the predicates and the keys need."""
    exprs = [*plan.predicates, *(key.expr for key in plan.keys or ())]
    exprs += [p for join in plan.outer for p in join.conditions()]
    found = {c.name for expr in exprs for c in columns(expr) if c.rel == rel}
    return sorted(found)


def _count_groups(
    plan: CachePlan,
    rows: DataFrame,
    wanted: Sequence[frozenset[int]],
    share: float,
    base_rows: float,
) -> dict[frozenset[int], float]:
    width = len(plan.keys or ())
    distinct = {grouping_id(s, width): s for s in wanted}
    if not distinct:
        return {}
    keys = [F.col(f"k{i}") for i in range(width)]
    sets: list[list[Column]] = [[keys[i] for i in sorted(s)] for s in distinct.values()]
    counted = rows.groupingSets(sets, *keys).agg(
        F.grouping_id().alias("gid"), F.count(F.lit(1)).alias("n")
    )
    found = counted.groupBy("gid").agg(
        F.count(F.lit(1)).alias("groups"), F.count_if(F.col("n") == 1).alias("once")
    )
    seen = {row["gid"]: (row["groups"], row["once"]) for row in found.collect()}
    return {
        keys_: estimate_groups(*seen.get(gid, (0, 0)), share, base_rows)
        for gid, keys_ in distinct.items()
    }


def _layout(plan: CachePlan, sample: _Sample, estimates: Mapping[Keys, float]) -> Layout:
    width = len(plan.keys or ())
    selectivity = {i: sample.groups[frozenset((i,))] for i in range(width)}

    @cache
    def values(key: int) -> list[Any]:
        column = F.col(f"k{key}")
        counted = sample.rows.where(column.isNotNull()).groupBy(column).count()
        # The rows of each value; only the values at the split points are used.
        return [(r[0], r[1]) for r in counted.orderBy(column).collect()]

    return plan_layout(plan, estimates, selectivity, values)


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
