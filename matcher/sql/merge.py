"""A SELECT over one aggregating subquery as one block, as Spark's optimiser leaves the two.

- `SELECT q.a, q.n + 1 FROM (SELECT a, SUM(x) AS n … GROUP BY a) q WHERE q.n > 1` is the inner block
  with other outputs: the filter is a HAVING, or a WHERE where it reads group keys alone
  (PushPredicateThroughNonJoin, CollapseProject). A subquery's ORDER BY keeps them apart: Spark
  shows the rows in that order; and so does an ORDER BY above of what is not shown, for which Spark
  looks in vain above a HAVING.
- `SELECT MAX(q.a) FROM (SELECT a, SUM(x) AS n … GROUP BY a) q` needs no groups below: what is
  aggregated is the same if a value comes several times (RemoveRedundantAggregates).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from matcher.model.expr import Agg, Col, Expr, aggregates, columns, transform
from matcher.model.ir import Block
from matcher.sql.expressions.aggregates import SAME_IF_DISTINCT


def merged(outer: Block, inner: Block, rel: int) -> Block | None:
    """Both blocks as one, None where they stay two.

    Args:
        outer: a block whose FROM is the subquery alone.
        inner: the subquery's block.
        rel: the relation number under which `outer` reads it.
    """
    if outer.relations:  # a subquery in WHERE is joined to the groups
        return None
    names = [o.name for o in inner.outputs]
    if inner.group_keys is None or inner.limit is not None or inner.offset is not None:
        return None
    if "" in names or len(set(names)) < len(names):
        return None
    shown = {o.name: o.expr for o in inner.outputs}

    def visit(expr: Expr) -> Expr | None:
        return shown[expr.name] if isinstance(expr, Col) and expr.rel == rel else None

    def over(expr: Expr) -> Expr:
        return transform(expr, visit)

    if outer.group_keys is None or _shows_each_group(outer, inner, over):
        stays = inner.order_by or (inner.grouping_sets and outer.predicates)
        shown_keys = {o.expr for o in outer.outputs}
        hidden = any(k.expr not in shown_keys for k in outer.order_by)
        return None if stays or hidden else _projected(outer, inner, over)
    return _regrouped(outer, inner, over, rel)


def _shows_each_group(outer: Block, inner: Block, over: Callable[[Expr], Expr]) -> bool:
    """True for a DISTINCT, or a GROUP BY without aggregates, among whose keys all keys of the
    subquery are: each of its groups is one row (RemoveRedundantAggregates)."""
    sets = outer.grouping_sets is not None or inner.grouping_sets is not None
    if sets or outer.having or not inner.group_keys:
        return False
    if any(aggregates(expr) for expr in outer.shown()):
        return False
    return {*inner.group_keys} <= {over(key) for key in outer.group_keys or ()}


def _projected(outer: Block, inner: Block, over: Callable[[Expr], Expr]) -> Block:
    filters = [over(p) for p in outer.predicates]
    # not below the one row of a global aggregate
    below = [f for f in filters if inner.group_keys and columns(f) and not aggregates(f)]
    shown = outer.map_shown(over)
    return replace(
        inner,
        predicates=(*inner.predicates, *below),
        outputs=shown.outputs,
        having=(*inner.having, *(f for f in filters if f not in below)),
        order_by=shown.order_by,
        limit=outer.limit,
        offset=outer.offset,
    )


def _regrouped(outer: Block, inner: Block, over: Callable[[Expr], Expr], rel: int) -> Block | None:
    if not inner.group_keys or inner.grouping_sets is not None or inner.having:
        return None
    if outer.grouping_sets is not None:
        return None
    summed = {o.name for o in inner.outputs if aggregates(o.expr) or not columns(o.expr)}
    keys = outer.group_keys or ()
    parts = [*outer.predicates, *keys, *outer.shown()]
    if any(c.rel == rel and c.name in summed for p in parts for c in columns(p)):
        return None
    if not all(_ignores_repeats(agg) for p in parts for agg in aggregates(p)):
        return None
    changed = outer.map(over)
    return replace(
        changed,
        relations=inner.relations,
        predicates=(*inner.predicates, *changed.predicates),
        group_keys=tuple(over(k) for k in keys),
        outer=inner.outer,
    )


def _ignores_repeats(agg: Agg) -> bool:
    return agg.distinct or agg.func in SAME_IF_DISTINCT
