"""The query that asks for all that a cache stores."""

from __future__ import annotations

from matcher.model.expr import Call
from matcher.model.ir import GROUPING_ID_COLUMN, Block, CachePlan, Output


def stored_block(plan: CachePlan) -> Block:
    """The query whose rows are all that a cache stores, in the order of its table's columns.

    Args:
        plan: The cache.
    """
    stored = plan.columns if plan.keys is None else plan.keys
    outputs = [Output(c.name, c.expr) for c in stored]
    outputs += [Output(m.name, m.agg) for m in plan.measures]
    if plan.is_cube:
        number = Call("grouping_id", (), "bigint", nullable=False)
        outputs.insert(0, Output(GROUPING_ID_COLUMN, number))
    return Block(
        relations=plan.relations,
        predicates=plan.predicates,
        outputs=tuple(outputs),
        group_keys=None if plan.keys is None else tuple(k.expr for k in plan.keys),
        grouping_sets=tuple(s.keys for s in plan.grouping_sets) if plan.is_cube else None,
        having=plan.having,
        order_by=plan.order_by,
        limit=plan.limit,
        outer=plan.outer,
    )
