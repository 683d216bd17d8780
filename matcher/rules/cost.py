"""What a rewrite costs, and what the query costs without one, in rows: what is read after partition
pruning, how wide it is, how many joins are left, and whether it is aggregated again.

    cost = (rows + bytes / 100) * (1 + 0.2 if aggregated again, for each grouping set)
        + 0.5 * rows for each join left

Rows that are not known are guessed, bytes then count for nothing. The base's cost is worked out
only where a refresh has counted its rows and bytes. A cache is left alone only if the base is
cheaper by a tenth, with what it costs to open a table counted for each: on small tables a cache
always goes first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from matcher.model.expr import Call, Col, Expr, Lit, disjuncts
from matcher.model.ir import CachePlan, GroupingSet
from matcher.normalize.prepared_plan import read_cost, set_rows

_UNKNOWN_ROWS: Final = 1e9
_PASS_SHARE: Final = 0.2
_JOIN_SHARE: Final = 0.5
# What is left of a table after a filter on a column that it is partitioned by, if nothing is known.
_POINT_SHARE: Final = 0.1
# What it costs to open one table, and how much cheaper the base must be.
_OPEN: Final = 100_000.0
_MARGIN: Final = 1.1
# What it costs at least to read rows of a table beside a cache.
LEAST_BESIDE: Final = _OPEN
_RANGE_SHARE: Final = 0.3


def rewrite_cost(
    plan: CachePlan,
    grouping_set: GroupingSet | None,
    filters: tuple[Expr, ...],
    *,
    passes: int,
    joins: int = 0,
) -> float:
    """The cost of reading a view of a cache and compensating.

    Args:
        plan: The cache.
        grouping_set: The set that is read, None for all of a cache that is no cube.
        filters: What is filtered, over the cache's columns.
        passes: How often each row is aggregated again: once, or for each grouping set.
        joins: How many tables are joined to the cache.
    """
    rows, size = _size(plan, grouping_set)
    share = _pruned(plan, filters)
    return _joined_cost(rows * share, size * share, joins, passes)


def rows_left(
    plan: CachePlan, grouping_set: GroupingSet | None, filters: tuple[Expr, ...]
) -> float:
    """How many rows of a view may be left after its filters: a guess by their kinds, a tenth for
    each point and three tenths for each other comparison of a column with constants.

    Args:
        plan: The cache.
        grouping_set: The set that is read, None for all of a cache that is no cube.
        filters: What is filtered, over the cache's columns.
    """
    stored = {c.name for c in (*(plan.keys or ()), *plan.columns)}
    return _size(plan, grouping_set)[0] * _share(stored, filters)


def base_cost(plan: CachePlan, tables: Sequence[str], *, passes: int) -> float | None:
    """What the query costs over its base tables, by what a refresh counted; None if it counted
    nothing.

    Args:
        plan: The cache, with the facts of its last refresh.
        tables: Keys of the tables that the query reads.
        passes: How often each row is aggregated.
    """
    known = dict(plan.base_bytes)
    if plan.base_rows is None or plan.holds_some or not known.keys() >= set(tables):
        return None
    return _joined_cost(plan.base_rows, sum(known[t] for t in tables), len(tables) - 1, passes)


def cost_beside(plan: CachePlan, others: Sequence[str], rows: int, size: int) -> float:
    """What it costs to read rows of one table, joined to others, beside a cache.

    Args:
        plan: The cache, with what its last refresh counted.
        others: Keys of the tables that the query joins to it.
        rows: How many rows are read.
        size: Of how many bytes.
    """
    known = dict(plan.base_bytes)
    size += sum(known.get(other, 0) for other in others)
    return _joined_cost(rows, size, len(others), passes=1) + (1 + len(others)) * _OPEN


def _joined_cost(rows: float, size: float, joins: int, passes: int) -> float:
    """What it costs to read rows, with so many bytes of all tables, and to join and group them."""
    read = read_cost(rows, size)
    return read * (1.0 + _PASS_SHARE * passes) + joins * _JOIN_SHARE * rows


def base_is_cheaper(cost: float, base: float | None, joins: int, tables: int) -> bool:
    """True if a query over `tables` base tables is better left alone than answered at `cost`, with
    `joins` tables joined to the cache."""
    return base is not None and cost + (1 + joins) * _OPEN > (base + tables * _OPEN) * _MARGIN


def _size(plan: CachePlan, grouping_set: GroupingSet | None) -> tuple[float, float]:
    if grouping_set is not None:
        rows, size = set_rows(grouping_set), grouping_set.bytes
    elif plan.rows is not None:
        rows, size = float(plan.rows), plan.bytes
    elif plan.limit is not None:
        rows, size = float(plan.limit), None
    elif plan.keys is not None:
        rows, size = 10.0 * 4.0 ** len(plan.keys), None
    else:
        rows, size = _UNKNOWN_ROWS, None
    return rows, float(size) if size is not None else 0.0


def _pruned(plan: CachePlan, filters: tuple[Expr, ...]) -> float:
    """The share of the cache's files that is left by filters on its PARTITIONED BY columns."""
    return _share(plan.partition_by, filters)


def _share(names: Collection[str], filters: tuple[Expr, ...]) -> float:
    share = 1.0
    for name in names:
        mine = [f for f in filters if _compares(f, name)]
        if any(_names_points(f) for f in mine):
            share *= _POINT_SHARE
        elif mine:
            share *= _RANGE_SHARE
    return share


def _compares(predicate: Expr, column: str) -> bool:
    """True for a comparison of the column itself with constants, or an OR of such, which Delta
    prunes by."""
    if not isinstance(predicate, Call) or len(predicate.args) < 2:
        return False
    if predicate.op == "or":
        return all(_compares(branch, column) for branch in disjuncts(predicate))
    columns = [a for a in predicate.args if isinstance(a, Col)]
    others = [a for a in predicate.args if not isinstance(a, Col)]
    return [c.name for c in columns] == [column] and all(isinstance(o, Lit) for o in others)


def _names_points(predicate: Expr) -> bool:
    return all(
        isinstance(branch, Call) and branch.op in ("eq", "nseq", "in")
        for branch in disjuncts(predicate)
    )
