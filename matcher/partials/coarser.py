"""Partial rows put together by fewer keys than they are stored by.

A rewrite that aggregates a cache's rows again reads some of its keys: a group of all keys is of no
use to it. Partial rows are then put together by those that it reads, which are few where all of
them are many. For what is computed from them that is the same: states merge in any order, and a
group of which nothing is left adds nothing. It is not done where a row of the cache is anything
else to the rewrite than states to merge, and where sums over more rows than a group's may not fit
their type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, columns
from matcher.model.ir import CachePlan, Measure, Rewrite
from matcher.model.types import decimal_parts
from matcher.partials.partial_rows import EXTREMES

# The sum of so many values of INT is a BIGINT, and that of so many DECIMAL of so many digits has 38
# digits at most.
_MANY_ROWS: Final = 1_000_000_000
_MOST_DIGITS: Final = 28
# What merges the states of an aggregate; extremes merge by themselves.
_MERGED_BY: Final = {"sum": "sum", "count": "sum", "try_sum": "try_sum"} | {
    func: func for func in EXTREMES
}
_BLIND_TO_REPEATS: Final = frozenset({"min", "max"})


def of_keys_read(plan: CachePlan, rewrite: Rewrite) -> CachePlan:
    """A cache with the keys and measures alone that a rewrite needs to put partial rows together;
    itself where it needs all.

    Args:
        plan: The cache; of a cube one set, see `of_one_set`.
        rewrite: What reads it.
    """
    if rewrite.group_keys is None or rewrite.branches or not plan.keys:
        return plan
    measures = {measure.name: measure for measure in plan.measures}
    aggregated, plain = _parts(rewrite)
    read = {column.name for expr in (*aggregated, *plain) for column in _own(expr)}
    used = [measure for name, measure in measures.items() if name in read]
    if any(_reads_any(expr, measures) for expr in plain):
        return plan  # a value that the keys determine, and no state
    if not all(_merges(agg, measures) for agg in aggregated):
        return plan
    if not all(_fits_over_all(plan, measure) for measure in used):
        return plan
    # without any key there would be a row where the cache has none
    keys = tuple(key for key in plan.keys if key.name in read) or plan.keys[:1]
    counts = [m for m in plan.measures if m.agg.func == "count" and m not in used]
    sets = tuple(replace(s, keys=tuple(range(len(keys)))) for s in plan.grouping_sets)
    return replace(plan, keys=keys, measures=(*used, *counts), grouping_sets=sets)


def _parts(rewrite: Rewrite) -> tuple[list[Agg], list[Expr]]:
    """The aggregates of a rewrite, and what it computes of single rows or of its group keys."""
    aggregated: list[Agg] = []
    plain = [*rewrite.filters, *(rewrite.group_keys or ())]
    plain += [part for extra in rewrite.extra for part in extra.on]
    above: list[Expr] = [output.expr for output in rewrite.outputs]
    above += [*rewrite.having, *(key.expr for key in rewrite.order_by)]
    while above:
        expr = above.pop()
        if isinstance(expr, Agg):
            aggregated.append(expr)
        elif isinstance(expr, Col):
            plain.append(expr)
        else:
            above += expr.children
    return aggregated, plain


def _own(expr: Expr) -> Iterator[Col]:
    """The cache's own columns in an expression."""
    return (column for column in columns(expr) if column.rel == 0)


def _reads_any(expr: Expr, measures: Mapping[str, Measure]) -> bool:
    return any(column.name in measures for column in _own(expr))


def _merges(agg: Agg, measures: Mapping[str, Measure]) -> bool:
    """Whether an aggregate takes the states of one measure and merges them, or does not mind how
    often a row is there."""
    if not _reads_any(agg, measures):
        return agg.distinct or agg.func in _BLIND_TO_REPEATS
    if agg.distinct or len(agg.args) != 1:
        return False
    if agg.filter is not None and _reads_any(agg.filter, measures):
        return False
    (state,) = agg.args
    while isinstance(state, Call) and state.op == "cast":
        (state,) = state.args
    if not isinstance(state, Col) or state.name not in measures:
        return False
    return _MERGED_BY.get(measures[state.name].agg.func) == agg.func


def _fits_over_all(plan: CachePlan, measure: Measure) -> bool:
    """Whether the state of any of the base rows has a value of the column's type."""
    agg = measure.agg
    if agg.func not in ("sum", "try_sum") or measure.name in plan.exact_sums:
        return True
    if plan.base_rows is None or plan.base_rows > _MANY_ROWS:
        return False
    argument: str = agg.args[0].type
    decimal = decimal_parts(argument)
    if decimal is not None:
        return decimal[0] <= _MOST_DIGITS
    return argument in ("tinyint", "smallint", "int")
