"""How many groups each grouping set of a cube has, about: as the last refresh wrote them, else by a
sample of the joined base, which also tells where a large set is split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cachemgr.delta.tables import run_select
from cachemgr.refresh.full.base import Base, deal_out
from cachemgr.refresh.full.lattice import (
    estimate_groups,
    grouping_id,
    helper_candidates,
    why_not_rolled_up,
)
from cachemgr.refresh.full.layout import ROWS_PER_FILE
from matcher.model.expr import columns
from matcher.model.ir import CachePlan
from matcher.render.placeholders import TABLE
from matcher.render.select import quote, render_stored

# Below so many rows of the largest base table a sample costs more than it saves.
ABOVE_ROWS: Final = 1_000_000
SAMPLE_ROWS: Final = 60_000
# Each set groups the whole sample, so that of many sets it is smaller.
MOST_ROWS_OF_SETS: Final = 1_500_000
LEAST_ROWS: Final = 10_000
# Dealt out by a key of which no value has more than this part of a core's share, so that no core
# gets much more than another; those who share a group meet on one core then.
MOST_OF_A_SHARE: Final = 0.1
# Where only their number is known, of so many values for each core.
VALUES_OF_A_CORE: Final = 16


@dataclass(frozen=True)
class Sizes:
    """What is known of a cube before it is computed.

    Args:
        base_rows: How many rows the joined base has, about.
        groups: How many groups, by the keys' places; at least of each stored set.
    """

    base_rows: float
    groups: Mapping[frozenset[int], float]

    def values(self, key: int) -> list[Any]:
        """A key's values in order, with the rows of each: none are known."""
        return []

    def is_even(self, key: int, cores: int) -> bool:
        """Whether rows dealt out by the hash of a key come in about equal parts, as far as is
        known."""
        return self.groups.get(frozenset((key,)), 0.0) >= VALUES_OF_A_CORE * cores

    def release(self) -> None:
        """Let go of what is held in memory."""


@dataclass(frozen=True)
class Sample(Sizes):
    """Rows of the joined base, reduced to the keys, which are `k0`, `k1`, …; groups also of each
    single key, and of the sets that may serve as helpers.

    Args:
        seen: How many rows the sample has.
        rows: The rows, held in memory.
    """

    seen: int
    rows: DataFrame
    _values: dict[int, list[Any]] = field(default_factory=dict)

    def values(self, key: int) -> list[Any]:
        """A key's values in order, with the rows of each; only those at the split points are
        used."""
        if key not in self._values:
            column = F.col(f"k{key}")
            counted = self.rows.where(column.isNotNull()).groupBy(column).count()
            self._values[key] = [(r[0], r[1]) for r in counted.orderBy(column).collect()]
        return self._values[key]

    def is_even(self, key: int, cores: int) -> bool:
        """Whether no value has much of a core's share."""
        counts = [rows for _, rows in self.values(key)]
        most = max([*counts, self.seen - sum(counts)])
        return bool(most * cores <= MOST_OF_A_SHARE * self.seen)

    def release(self) -> None:
        """Let go of the rows."""
        self.rows.unpersist()


def sizes_of(
    session: SparkSession, plan: CachePlan, base: Base, before: CachePlan | None
) -> Sizes | None:
    """What can be known of a cube at a reasonable price; None for a little base of which nothing is
    known.

    Args:
        session: A session of ours with the cache's settings.
        plan: The cube.
        base: Its base tables.
        before: What the cache holds now, if anything.
    """
    rows = base.count(session)
    stored = None if before is None else _stored(plan, before)
    if stored is not None and not _has_more_to_tell(plan, stored, rows):
        return Sizes(float(rows), stored)
    return draw(session, plan, base, rows) if rows >= ABOVE_ROWS else None


def _has_more_to_tell(plan: CachePlan, stored: Mapping[frozenset[int], float], rows: int) -> bool:
    """Whether a sample tells what the sizes of the stored sets do not: where to split one, and how
    large helpers would be."""
    if rows < ABOVE_ROWS:
        return False
    sets = [s.keys for s in plan.grouping_sets]
    helps = why_not_rolled_up(plan) is None and helper_candidates(sets, stored, rows)
    return max(stored.values()) > ROWS_PER_FILE or bool(helps)


def _stored(plan: CachePlan, before: CachePlan) -> dict[frozenset[int], float] | None:
    """The groups of each set, where the cache held the same ones before."""
    if [k.expr for k in plan.keys or ()] != [k.expr for k in before.keys or ()]:
        return None
    rows = {frozenset(s.keys): s.rows for s in before.grouping_sets if s.rows is not None}
    wanted = [frozenset(s.keys) for s in plan.grouping_sets]
    return {s: float(rows[s] or 0) for s in wanted} if all(s in rows for s in wanted) else None


def draw(session: SparkSession, plan: CachePlan, base: Base, rows_of_largest: int) -> Sample:
    """A sample of a cube's base, which the caller releases.

    Args:
        session: A session of ours with the cache's settings.
        plan: The cube.
        base: Its base tables.
        rows_of_largest: How many rows the largest of them has; to count them may be a job.
    """
    wanted = min(SAMPLE_ROWS, max(LEAST_ROWS, MOST_ROWS_OF_SETS // len(plan.grouping_sets)))
    share = min(1.0, wanted / max(rows_of_largest, 1))
    names = list(base.relations)
    # Named, because a sample is a barrier that column pruning may not pass.
    needed = ", ".join(map(quote, _key_columns(plan, names.index(base.largest)))) or "1"
    text = f"SELECT {needed} FROM {TABLE}"
    read = run_select(session, text, {TABLE: base.relations[base.largest]})
    drawn = read.sample(withReplacement=False, fraction=share, seed=1)
    if base.is_uneven:
        drawn = deal_out(session, drawn)
    rows = run_select(session, _keys_sql(plan, names), {**base.relations, base.largest: drawn})
    rows = rows.persist()
    try:
        return _estimate(plan, rows, share)
    except BaseException:
        rows.unpersist()
        raise


def _estimate(plan: CachePlan, rows: DataFrame, share: float) -> Sample:
    seen = rows.count()
    base_rows = seen / share
    stored = [frozenset(s.keys) for s in plan.grouping_sets]
    single = [frozenset((i,)) for i in range(len(plan.keys or ()))]
    groups = _count_groups(plan, rows, [*stored, *single], share, base_rows)
    sets = [s.keys for s in plan.grouping_sets]
    if why_not_rolled_up(plan) is None:
        helpers = helper_candidates(sets, groups, base_rows)
        groups |= _count_groups(plan, rows, helpers, share, base_rows)
    return Sample(base_rows, groups, seen, rows)


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
