"""Which functions a query's block or a cache calls, for settings that matter to some alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from cachemgr.config.judged.functions import SHOW_ZONE, of_functions
from matcher.model.expr import OPAQUE_PREFIX, Agg, Call, Expr, walk
from matcher.model.ir import Block, CachePlan, expressions_below

# Calls of methods of Spark's classes that Spark puts in place of a function: any may be behind it.
_ANY: Final = frozenset({"invoke", "staticinvoke"})


@lru_cache(maxsize=1)
def _all_functions() -> frozenset[str]:
    return SHOW_ZONE.union(*(each.functions for each in of_functions()))


def used_functions(block: Block, plan: CachePlan) -> frozenset[str]:
    """The functions that a block and a cache call, in lower case; those of classes of Spark's that
    the optimiser puts in place by the class. Where a call may hide another, all that some setting
    is about.

    Args:
        block: The block.
        plan: The cache.
    """
    below = expressions_below(block.relations)
    expressions = (*block.expressions(), *below, *expressions_of(plan))
    found = frozenset(_names(expressions))
    if found & _ANY or any("." in name for name in found):
        return found | _all_functions()
    return found


def expressions_of(plan: CachePlan) -> Iterator[Expr]:
    """All that is computed of base rows for a cache.

    Args:
        plan: The cache.
    """
    yield from plan.predicates
    yield from (column.expr for column in (*(plan.keys or ()), *plan.columns))
    yield from (measure.agg for measure in plan.measures)
    yield from (part for join in plan.outer for part in join.conditions())
    yield from plan.having
    yield from (key.expr for key in plan.order_by)
    yield from expressions_below(plan.relations)


def _names(expressions: Iterable[Expr]) -> Iterator[str]:
    for expr in expressions:
        for node in walk(expr):
            if isinstance(node, Call):
                yield node.op.removeprefix(OPAQUE_PREFIX).lower()
            elif isinstance(node, Agg):
                yield node.func.removeprefix(OPAQUE_PREFIX).lower()
