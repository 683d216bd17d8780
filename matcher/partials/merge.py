"""A block answered from its states over parts of the rows, one below the other.

These are rows of a cache that has several rows a group, so the rules that answer a query from a
cache are asked, and told to aggregate again in any case: AVG becomes SUM / COUNT, COUNT the sum of
counts, 0 over nothing, GROUPING SETS one aggregation. They refuse what is not exact.

What is known of the cache that gives one of the parts does not hold for the others, so none of it
is looked at: the columns are as NULL as their types are, and sums are exact as far as the caller
says so of all parts together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, transform
from matcher.model.ir import Block, MatchOptions, Miss, Output, Rewrite, SortKey
from matcher.model.reasons import Reason
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import Interner
from matcher.partials.split import WIDE_SUM, States
from matcher.render.placeholders import PARTS
from matcher.render.select import render_rewrite
from matcher.rules.match_view import match_regrouped

_TOTAL: Final = "decimal(38,0)"


def merge(
    block: Block, states: States, options: MatchOptions, exact_sums: Collection[str] = ()
) -> Rewrite | Reason:
    """How a block is answered from its states over several parts of the rows, or why it is not.

    Args:
        block: The query's block.
        states: What `split` made of it.
        options: The session's switches.
        exact_sums: Those of `states.averaged` whose absolute values, over all rows of all parts,
            add up to 2^53 at most.

    Returns:
        The rewrite over the states, for `render_merged`.

    >>> from matcher.examples import block_of
    >>> from matcher.partials.split import split
    >>> query = block_of("SELECT store, AVG(qty) AS a FROM sales GROUP BY store")
    >>> states = split(query, MatchOptions())
    >>> merge(query, states, MatchOptions()).code.value
    'AVG_NOT_EXACT'
    >>> found = merge(query, states, MatchOptions(), exact_sums=list(states.averaged))
    >>> [o.expr for o in found.outputs]  # doctest: +ELLIPSIS
    [$0.c0, div(cast(sum($0.c1)):double, cast(nullif(sum($0.c2), 0:bigint)):double)]
    """
    intern = Interner()
    # the first rows of each part, together, are not the first rows
    plan = replace(states.plan, exact_sums=frozenset(exact_sums), order_by=(), limit=None)
    view = PreparedPlan(plan, intern)
    query = NormalQuery(block, view.relations)
    found = match_regrouped(query, view, replace(options, forced=frozenset(), keys=()))
    if isinstance(found, Miss):
        return found.reasons[0]
    return _mapped(found, lambda expr: _widened(expr, states.wide)) if states.wide else found


def _widened(expr: Expr, wide: Collection[str]) -> Expr:
    """The sums of columns that are DECIMAL, as BIGINT once they are added up."""

    def visit(node: Expr) -> Expr | None:
        if isinstance(node, Agg) and node.func == "sum" and _is_wide(node.args[0], wide):
            (column,) = node.args
            assert isinstance(column, Col)
            total = Agg("sum", (_decimal(column),), _TOTAL, filter=node.filter)
            return Call("cast", (total,), "bigint")
        if _is_wide(node, wide):
            assert isinstance(node, Col)
            return Call("cast", (_decimal(node),), "bigint")
        return None

    return transform(expr, visit)


def _is_wide(expr: Expr, wide: Collection[str]) -> bool:
    return isinstance(expr, Col) and expr.rel == 0 and expr.name in wide


def _decimal(column: Col) -> Col:
    return Col(0, column.name, WIDE_SUM)


def _mapped(rewrite: Rewrite, change: Callable[[Expr], Expr]) -> Rewrite:
    """The rewrite with each expression above its groups changed."""
    return replace(
        rewrite,
        outputs=tuple(Output(o.name, change(o.expr)) for o in rewrite.outputs),
        having=tuple(map(change, rewrite.having)),
        order_by=tuple(
            SortKey(change(k.expr), k.ascending, k.nulls_first) for k in rewrite.order_by
        ),
    )


def render_merged(rewrite: Rewrite, sides: Sequence[str], *, positional: bool = True) -> str:
    """The SELECT of the block's rows.

    Args:
        rewrite: What `merge` found.
        sides: The SELECTs of the states over each part: of the cache, the rewrite of
            `states.block`, rendered positional; of other rows `render_stored` of `states.stored`.
        positional: Name the outputs c0, c1, … and not as the query does.

    Raises:
        NotRenderable: some expression has no SQL spelling.

    >>> from matcher.examples import block_of
    >>> from matcher.partials.split import split
    >>> query = block_of("SELECT store, MAX(qty) AS m FROM sales GROUP BY store")
    >>> found = merge(query, split(query, MatchOptions()), MatchOptions())
    >>> print(render_merged(found, ["TABLE a", "TABLE b"]))
    SELECT `c0`, MAX(`c1`) AS `c1`
    FROM (
    (TABLE a)
    UNION ALL
    (TABLE b)
    ) AS __parts
    GROUP BY `c0`
    """
    return render_rewrite(rewrite, union_of(sides), positional=positional)


def union_of(sides: Sequence[str]) -> str:
    """The rows of several SELECTs, as a table in FROM."""
    return "(\n" + "\nUNION ALL\n".join(f"({side})" for side in sides) + f"\n) AS {PARTS}"
