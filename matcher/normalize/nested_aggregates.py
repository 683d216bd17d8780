"""An aggregation over an aggregation, as the one over the base tables that it amounts to.

A cache defined over another cache is stored, matched and refreshed as what it holds of the base
tables. The groups below are parts of the groups above, so a SUM of sums is the SUM of the rows, a
SUM of counts their COUNT, a MIN of minima their MIN. What would count the groups below and not the
rows in them (COUNT(*), a SUM over a key, AVG of an AVG) has no such form, and is refused.

Tables that are joined to the groups change nothing in this, as long as no condition is about an
aggregate: a group is joined to whatever each of its rows is joined to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from matcher.model.errors import NotSupported
from matcher.model.expr import Agg, Call, Col, Expr, aggregates, transform
from matcher.model.ir import Block, CachePlan, reads_groups
from matcher.model.message import Arg, Sql, Word
from matcher.model.reasons import ReasonCode
from matcher.normalize.groups_of_caches import over_groups
from matcher.normalize.put_in import PutIn
from matcher.normalize.simplify import simplified

# Of a stored aggregate of the same name, and of counts.
_OF_ITSELF: Final = frozenset({"sum", "min", "max", "bit_and", "bit_or", "bit_xor"})
# Their value does not depend on how often a row is there.
_OF_KEYS: Final = frozenset(
    {"min", "max", "bit_and", "bit_or", "collect_set", "approx_count_distinct"}
)


@dataclass(frozen=True, slots=True)
class Below:
    """The aggregation below: its group keys, and its tables (relation numbers)."""

    keys: tuple[Expr, ...]
    tables: range


def merged(expr: Expr) -> Expr:
    """`expr` above two aggregations, those below standing in it as arguments, above one.

    Raises:
        NotSupported: Some aggregate cannot be had from the rows of the base tables.
    """
    return transform(expr, lambda node: _merge(node) if isinstance(node, Agg) else None)


def no_aggregates(exprs: Iterable[Expr], what: str) -> None:
    """Refuse conditions and keys that hold an aggregate of the level below.

    Args:
        exprs: Expressions over what is below.
        what: What they are, for the message.

    Raises:
        NotSupported: One does.
    """
    for expr in exprs:
        if aggregates(expr):
            raise _refused(
                "{what} is about {agg}, an aggregate of the cache",
                what=Word(what),
                agg=Sql(repr(aggregates(expr)[0])),
            )


def _merge(agg: Agg) -> Agg:
    inner = [found for arg in agg.args for found in aggregates(arg)]
    no_aggregates([] if agg.filter is None else [agg.filter], "a FILTER")
    if not inner:
        if agg.distinct or agg.func in _OF_KEYS:
            return agg
        raise _refused(
            "{agg} would count the groups of the cache, not the rows in them: "
            "have the cache below store it (COUNT(*) AS n) and take the SUM of that",
            agg=Sql(repr(agg)),
        )
    below = agg.args[0]
    if (
        len(agg.args) != 1
        or not isinstance(below, Agg)
        or agg.distinct
        or below.distinct
        or agg.params
        or below.params
    ):
        raise _refused("{agg} is no aggregate of base rows", agg=Sql(repr(agg)))
    counts = (agg.func, below.func) == ("sum", "count")
    if not counts and (agg.func != below.func or agg.func not in _OF_ITSELF):
        raise _refused(
            "{agg} is no aggregate of base rows: SUM of sums and counts, MIN of minima and MAX "
            "of maxima are",
            agg=Sql(repr(agg)),
        )
    condition = below.filter or agg.filter
    if below.filter is not None and agg.filter is not None:
        condition = Call("and", (below.filter, agg.filter), "boolean")
    nullable = not counts and (agg.nullable or below.nullable)
    return Agg(below.func, below.args, below.type, nullable, filter=condition)


def _refused(template: str, /, **args: Arg) -> NotSupported:
    return NotSupported(ReasonCode.UNSUPPORTED_EXPRESSION, template, **args)


def expanded(block: Block, caches: Mapping[str, CachePlan]) -> Block:
    """`block` with what caches hold of base tables in place of the caches among its relations.

    Args:
        block: A block of the text door, in whose schema the caches are tables.
        caches: The caches by relation key; no cubes and none with a limit.

    Raises:
        NotSupported: It amounts to no block over the base tables.
    """
    if not any(table.key in caches for table in block.tables):
        return block
    try:
        return of_base_rows(block, caches)
    except NotSupported:
        if len(block.relations) == 1 and not block.is_aggregate:
            raise  # no more than a filter on its groups
        try:
            return over_groups(block, caches)
        except NotSupported:
            pass
        raise


def of_base_rows(block: Block, caches: Mapping[str, CachePlan]) -> Block:
    """The block over the base rows, aggregations of aggregations put together."""
    if reads_groups(block):
        raise _refused("a cache below groups")
    put, plans = PutIn(), [caches.get(relation.key) for relation in block.relations]
    for relation, plan in zip(block.relations, plans, strict=True):
        if plan is None:
            put.kept(relation)
        else:
            put.rows(plan)
    if any(plans[rel] is not None for join in block.outer for rel in join.right):
        raise _refused("a cache that other tables are outer, semi or anti joined with")
    grouped = [plan for plan in plans if plan is not None and plan.keys is not None]
    if len(grouped) > 1:
        raise _refused("a join of two caches with groups")
    outer = (*put.outer, *map(put.join, block.outer))
    predicates = (*put.predicates, *map(put, block.predicates))
    keys = None if block.group_keys is None else tuple(map(put, block.group_keys))
    no_aggregates(predicates, "a condition")
    no_aggregates((p for join in outer for p in join.conditions()), "a condition")
    no_aggregates(keys or (), "a GROUP BY key")
    over = merged if grouped and keys is not None else _as_it_is
    if grouped and keys is None:
        if len(block.relations) > 1:
            raise _refused("a cache with groups that is joined and not aggregated again")
        keys = tuple(map(put, (Col(0, c.name, c.expr.type) for c in grouped[0].keys or ())))
    new = replace(
        block.map_shown(lambda expr: over(put(expr))),
        relations=tuple(put.relations),
        predicates=predicates,
        outer=outer,
        group_keys=keys,
    )
    return simplified(new)


def _as_it_is(expr: Expr) -> Expr:
    return expr
