"""In how many files each grouping set is written, in what order, and where a large set is split.

Each set is a partition of the cache's table. A small set is one file: a hit reads all of it as one
partition. A large one is split at values of its most selective key and sorted, so that the
statistics of files and pages rule out most of it for a filter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cachemgr.refresh.full.lattice import Keys
from cachemgr.refresh.full.placement import placed
from matcher.model.ir import GROUPING_ID_COLUMN, CachePlan
from matcher.render.select import quote

# Few, since a hit on a large set looks at the footer of each; the pages inside are sorted.
ROWS_PER_FILE = 1_000_000
# A set up to this size is pinned whole (`spark.cachemgr.pin.maxRowsPerSet`), so splitting it buys
# nothing.
LARGE_SET_ROWS = 500_000
MAX_FILES_PER_SET = 32
# Types whose Python value comes back from `lit` as the same value of the same type.
_SPLITTABLE = ("string", "int", "bigint", "smallint", "tinyint", "date")

Values = Callable[[int], Sequence[tuple[Any, int]]]


@dataclass(frozen=True, slots=True)
class Split:
    """One set's files: the Spark partition of the first, and the values of `key` where the next
    begin.
    """

    first: int
    key: int | None = None
    bounds: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Grouping id to its files, the number of Spark partitions, and the keys to sort by."""

    splits: Mapping[int, Split]
    partitions: int
    order: tuple[int, ...]


def plan_layout(
    plan: CachePlan,
    estimates: Mapping[Keys, float],
    selectivity: Mapping[int, float],
    values: Values | None = None,
) -> Layout:
    """Assign each grouping set its files.

    Args:
        plan: The cube.
        estimates: Expected rows of each set; an unknown one counts as small.
        selectivity: Distinct values of each key; without them the keys' own order is used.
        values: A key's values in order, with how often the sample holds each.

    Returns:
        The files of each set. Small sets share a Spark partition up to a file's worth of rows; each
        still gets a file of its own, being a partition of the table.
    """
    width = len(plan.keys or ())
    if not estimates:
        # Nothing is known: a Spark partition for each set, so that at least sets run in parallel.
        places = {s.grouping_id: Split(i) for i, s in enumerate(plan.grouping_sets)}
        return Layout(places, len(places), ())
    order = sorted(range(width), key=lambda i: (-selectivity.get(i, 0.0), i))
    splits: dict[int, Split] = {}
    next_id, filled = 0, 0.0
    sized = sorted(plan.grouping_sets, key=lambda s: (estimates.get(s.keys, 0.0), s.grouping_id))
    for item in sized:
        rows = estimates.get(item.keys, 0.0)
        if rows > LARGE_SET_ROWS and values is not None:
            next_id += 1 if filled else 0
            filled = 0.0
            split = _split(plan, item.keys, rows, order, next_id, values)
            splits[item.grouping_id] = split
            next_id += len(split.bounds) + 1
            continue
        if filled and filled + rows > LARGE_SET_ROWS:
            next_id, filled = next_id + 1, 0.0
        splits[item.grouping_id] = Split(next_id)
        filled += max(rows, 1.0)
    # Sorting is dear, so only by the keys that large sets are split by.
    split_keys = dict.fromkeys(s.key for s in splits.values() if s.key is not None)
    return Layout(splits, next_id + (1 if filled else 0), tuple(split_keys))


def _split(
    plan: CachePlan, keys: Keys, rows: float, order: Sequence[int], first: int, values: Values
) -> Split:
    files = min(MAX_FILES_PER_SET, int(rows // ROWS_PER_FILE) + 1)
    if files == 1:
        return Split(first)
    columns = plan.keys or ()
    for key in order:
        if key in keys and columns[key].expr.type in _SPLITTABLE:
            bounds = split_points(values(key), files)
            if bounds:
                return Split(first, key, bounds)
    return Split(first)


def split_points(values: Sequence[tuple[Any, int]], files: int) -> tuple[Any, ...]:
    """Values that begin the second and later files, so that each holds about as many rows.

    >>> split_points([("a", 5), ("b", 1), ("c", 4), ("d", 10)], 2)
    ('d',)
    """
    if files < 2 or len(values) < 2:
        return ()
    ends = list(accumulate(n for _, n in values))
    cuts = (bisect_left(ends, ends[-1] * i / files) + 1 for i in range(1, files))
    chosen = sorted({c for c in cuts if 0 < c < len(values)})
    return tuple(values[c][0] for c in chosen)


def spread(
    rows: DataFrame, plan: CachePlan, layout: Layout, partition_by: Sequence[str] = ()
) -> DataFrame:
    """`rows` placed and sorted as `layout` says, and by further partition columns before that."""
    gid = F.col(GROUPING_ID_COLUMN)
    target: Column | None = None
    for grouping_id, split in layout.splits.items():
        place = _place(plan, split)
        target = (
            F.when(gid == grouping_id, place)
            if target is None
            else target.when(gid == grouping_id, place)
        )
    assert target is not None
    sent = placed(rows, layout.partitions, target.otherwise(F.lit(0)))
    names = [*partition_by, *((plan.keys or ())[i].name for i in layout.order)]
    sort = [F.col(quote(name)) for name in dict.fromkeys(names)]
    return sent.sortWithinPartitions(*sort) if sort else sent


def _place(plan: CachePlan, split: Split) -> Column:
    if split.key is None or not split.bounds:
        return F.lit(split.first)
    column = F.col(quote((plan.keys or ())[split.key].name))
    place: Column | None = None
    # From the highest bound down: the first one that the value reaches is its file. NULL reaches
    # none.
    for i, bound in reversed(list(enumerate(split.bounds, start=1))):
        reached = column >= F.lit(bound)
        number = F.lit(split.first + i)
        place = F.when(reached, number) if place is None else place.when(reached, number)
    assert place is not None
    return place.otherwise(F.lit(split.first))
