"""GROUPING SETS, CUBE and ROLLUP in a query, answered set by set or all at once.

Each set of the query is a block of its own: grouped by the set's keys, NULL in place of the others,
with the grouping id and `grouping(key)` as the constants that they are there. So each is matched as
any other block, and takes the smallest stored set that serves it. The empty set is grouped by a
constant: over no rows Spark gives no grand total beside other sets. Then one of three forms:

- every set is stored as it is: one scan of `__grouping_id IN (…)`, the ids mapped to the query's;
- otherwise the sets' rewrites joined by UNION ALL, a set as often as the query writes it;
- or one aggregation with GROUPING SETS over a view that holds all keys (the only form for a cache
  that is no cube), which reads that view once.

"Not grouped" is never told from the NULL in a key, only from the id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, Lit, transform
from matcher.model.ir import GROUPING_ID_COLUMN, Block, Miss, Output, Rewrite, SortKey
from matcher.model.message import Arg, Number
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.stored_plan import grouping_id

MAX_BRANCHES: Final = 32
_BRANCH_COST: Final = 1.0
_ID: Final = Col(0, GROUPING_ID_COLUMN, "bigint", nullable=False)

Match = Callable[[NormalQuery], Iterator[Rewrite | Miss]]


def why_not_by_sets(block: Block) -> Reason | None:
    """What keeps a query with grouping sets from being matched at all."""
    keys = block.group_keys or ()
    if keys and len(set(keys)) == len(keys) and not any(isinstance(k, Lit) for k in keys):
        return None
    return Reason(
        ReasonCode.GROUPING_SETS_IN_QUERY,
        "grouping sets without a key, with a constant as key, or with one key twice",
        "leave constants and repeated keys out of the GROUP BY list",
    )


def match_by_sets(query: NormalQuery, match: Match) -> tuple[Rewrite | None, list[Miss]]:
    """One rewrite that puts the sets together, or why some set has none.

    Args:
        query: a query with grouping sets.
        match: rewrites of a block without them, from one cache, best first.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, store, COUNT(*) AS n FROM sales GROUP BY CUBE (item, store)",
    ...     "SELECT item, COUNT(*) AS n FROM sales GROUP BY ROLLUP (item)",
    ... )
    SELECT CASE WHEN (`__grouping_id` = 1L) THEN `item` END AS `item`, `n` FROM c WHERE
    (`__grouping_id` IN (1L, 3L))
    """
    block = query.block
    assert block.group_keys is not None and block.grouping_sets is not None
    written = [tuple(sorted(set(members))) for members in block.grouping_sets]
    if len(written) > MAX_BRANCHES:
        return None, [_refused("{n} grouping sets", n=Number(len(written)))]
    order = _order(block)
    if order is None:
        return None, [_refused("ORDER BY something that the SELECT list does not hold")]
    blocks = {members: _block_of(block, members) for members in dict.fromkeys(written)}
    written = [members for members in written if _may_pass(blocks[members])]
    if not written:
        return None, [_refused("HAVING that no grouping set passes")]
    found: dict[tuple[int, ...], Rewrite] = {}
    for members in dict.fromkeys(written):
        part = NormalQuery(blocks[members], query.relations)
        results = list(match(part))
        rewrites = [r for r in results if isinstance(r, Rewrite)]
        if not rewrites:
            return None, [r for r in results if isinstance(r, Miss)]
        found[members] = _unguarded(min(rewrites, key=lambda r: r.cost))
    parts = [found[members] for members in written]
    whole = _one_scan(block, parts) or _union(block, parts)
    ordered = tuple(
        SortKey(whole.outputs[i].expr, k.ascending, k.nulls_first)
        for i, k in zip(order, block.order_by, strict=True)
        if not isinstance(whole.outputs[i].expr, Lit)
    )
    return replace(whole, order_by=ordered, limit=block.limit, offset=block.offset), []


def _refused(template: str, /, **args: Arg) -> Miss:
    remedy = "query one grouping at a time, or fewer of them"
    reason = Reason(ReasonCode.GROUPING_SETS_IN_QUERY, template, remedy, **args)
    return Miss("", None, (reason,))


def _order(block: Block) -> list[int] | None:
    """The output that each ORDER BY key is; None if one is no output."""
    shown = [o.expr for o in block.outputs]
    places = [shown.index(k.expr) if k.expr in shown else -1 for k in block.order_by]
    return None if -1 in places else places


def _block_of(block: Block, members: tuple[int, ...]) -> Block:
    """The block whose rows are those of one set."""
    keys = block.group_keys or ()
    kept = tuple(keys[i] for i in members)
    number = grouping_id(members, len(keys))

    def visit(node: Expr) -> Expr | None:
        if isinstance(node, Agg) or node in kept:  # aggregates see the rows as they were
            return node
        if node in keys:
            return Lit(None, node.type)
        if isinstance(node, Call) and node.op == "grouping_id":
            return Lit(number, node.type)
        if isinstance(node, Call) and node.op == "grouping":
            return Lit(int(int(node.params[0]) not in members), node.type)
        return None

    shown = block.map_shown(lambda expr: transform(expr, visit))
    return replace(
        shown,
        group_keys=kept or (Lit(1, "int"),),
        grouping_sets=None,
        having=tuple(h for h in shown.having if not _is_true(h)),
        order_by=(),
        limit=None,
        offset=None,
    )


def _may_pass(part: Block) -> bool:
    """False if HAVING keeps no group of the set, as `grouping(k) = 0` in a set without k."""
    return not any(_is_false(condition) for condition in part.having)


def _is_true(condition: Expr) -> bool:
    if not isinstance(condition, Call) or condition.op != "eq":
        return False
    left, right = condition.args
    return isinstance(left, Lit) and left == right and isinstance(left.value, int)


def _is_false(condition: Expr) -> bool:
    if not isinstance(condition, Call) or not all(isinstance(a, Lit) for a in condition.args):
        return False
    values = [a.value for a in condition.args if isinstance(a, Lit)]
    if condition.op == "isnotnull":
        return values[0] is None
    if condition.op in ("eq", "lt", "le", "gt", "ge") and None in values:
        return True  # unknown: HAVING keeps what is true
    return condition.op == "eq" and isinstance(values[0], int) and values[0] != values[1]


def _unguarded(part: Rewrite) -> Rewrite:
    """Spark concludes nothing from the filters below grouping sets."""
    return replace(part, filters=part.compensating, guards=frozenset())


def _one_scan(block: Block, parts: list[Rewrite]) -> Rewrite | None:
    """All sets as they are stored, read at once."""
    numbers = [p.grouping_set.grouping_id for p in parts if p.grouping_set is not None]
    if len(set(numbers)) < len(parts) or any(p.group_keys is not None for p in parts):
        return None
    filters, having = _without_id(parts[0]), parts[0].having
    if any(_without_id(p) != filters or p.having != having for p in parts):
        return None
    picked: Expr = Call("in", (_ID, *(Lit(n, "bigint") for n in numbers)), "boolean", False)
    if len(numbers) == 1:
        picked = _picks(numbers[0])
    outputs = tuple(
        Output(o.name, _by_set(numbers, [p.outputs[i].expr for p in parts]))
        for i, o in enumerate(block.outputs)
    )
    first = parts[0]
    steps = tuple(dict.fromkeys(s for p in parts for s in p.steps))
    return replace(
        first,
        grouping_set=first.grouping_set if len(parts) == 1 else None,
        filters=(picked, *filters),
        outputs=outputs,
        steps=(*steps, "pick_grouping_sets"),
        joins_used=tuple(dict.fromkeys(j for p in parts for j in p.joins_used)),
        cost=sum(p.cost for p in parts),
    )


def _picks(number: int) -> Expr:
    return Call("eq", (_ID, Lit(number, "bigint")), "boolean", False)


def _without_id(part: Rewrite) -> list[Expr]:
    assert part.grouping_set is not None
    picked = _picks(part.grouping_set.grouping_id)
    return [f for f in part.filters if f != picked]


def _by_set(numbers: list[int], exprs: list[Expr]) -> Expr:
    """An output that is computed in another way in each set."""
    if all(e == exprs[0] for e in exprs):
        return exprs[0]
    args: list[Expr] = []
    for number, expr in zip(numbers, exprs, strict=True):
        if not (isinstance(expr, Lit) and expr.value is None):
            args += (_picks(number), expr)
    return Call("case", tuple(args), exprs[0].type)


def _union(block: Block, parts: list[Rewrite]) -> Rewrite:
    """The sets' rewrites one below the other; their columns are c0, c1, … in each."""
    same = {p.grouping_set for p in parts}
    return Rewrite(
        cache=parts[0].cache,
        grouping_set=next(iter(same)) if len(same) == 1 else None,
        filters=(),
        group_keys=None,
        outputs=tuple(
            Output(o.name, Col(0, f"c{i}", o.expr.type)) for i, o in enumerate(block.outputs)
        ),
        steps=(*dict.fromkeys(s for p in parts for s in p.steps), "union_grouping_sets"),
        joins_used=tuple(dict.fromkeys(j for p in parts for j in p.joins_used)),
        cost=sum(p.cost + _BRANCH_COST for p in parts),
        branches=tuple(parts),
    )
