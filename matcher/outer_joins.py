"""Outer, semi and anti joins of a block in their one form, for both doors.

A block is an inner core of tables, then joins in order that hang further tables on it: LEFT ones
keep each row, with NULLs where nothing is found, SEMI and ANTI ones keep a row or not. RIGHT is
LEFT with its sides swapped. Filters on the kept side stand above all of them, in
`Block.predicates`; filters inside the side that is hung on belong to the join's own condition.

- A predicate above that no row of NULLs passes makes a LEFT join an inner one (Spark's
  EliminateOuterJoin; the text door has not seen Spark's optimiser, and it may not be done yet).
- What Spark infers for the side that is hung on (`IsNotNull`, ranges of join keys) is left out of
  the condition again: it follows from the rest.
- Columns of the side that is hung on by LEFT may be NULL above, whatever their table declares. An
  expression computed below the join is taken above it only if it is NULL there for missing rows:
  `coalesce(x, 0)` is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from matcher.errors import NotSupported
from matcher.expr import Call, Col, Expr, columns, transform
from matcher.functions import STRICT
from matcher.ir import Block, OuterJoin, Output, SortKey
from matcher.predicates import PredicateContext
from matcher.reasons import ReasonCode


def null_supplied(expr: Expr) -> Expr:
    """`expr` of the side that a LEFT join hangs on, as it is above the join.

    Raises:
        NotSupported: its value for a missing row would not be NULL.
    """
    if isinstance(expr, Col):
        return Col(expr.rel, expr.name, expr.type)
    if isinstance(expr, Call) and expr.op in STRICT:
        strict = False
        args = []
        for arg in expr.args:
            try:
                args.append(null_supplied(arg))
                strict = True
            except NotSupported:
                args.append(arg)
        if strict:
            return Call(expr.op, tuple(args), expr.type, True, expr.params)
    raise NotSupported(
        ReasonCode.UNSUPPORTED_EXPRESSION.value,
        f"{expr!r} is computed below an outer join and is not NULL for missing rows",
    )


def settled(block: Block) -> Block:
    """`block` with its outer joins in their one form; itself if it has none."""
    if not block.outer:
        return block
    block = replace(block, outer=_with_declared(block))
    block = _inner_where_rejected(block)
    if not block.outer:
        return block
    return _nullable_above(replace(block, outer=_without_inferred(block)))


def _with_declared(block: Block) -> tuple[OuterJoin, ...]:
    """The joins with the columns that their tables declare NOT NULL, as far as the block names
    them."""
    named = {c for expr in _expressions(block) for c in columns(expr)}
    return tuple(
        replace(
            j, declared=tuple(sorted(named.intersection(j.declared), key=lambda c: (c.rel, c.name)))
        )
        for j in block.outer
    )


def declared(found: Iterable[Expr | NotSupported], rels: Iterable[int]) -> tuple[Col, ...]:
    """The columns among what a side that is hung on gives that their tables declare NOT NULL."""
    own = set(rels)
    columns_ = (c for c in found if isinstance(c, Col) and not c.nullable and c.rel in own)
    return tuple(dict.fromkeys(columns_))


def _inner_where_rejected(block: Block) -> Block:
    while True:
        rejecting = PredicateContext(block.predicates).rejected()
        found = next(
            (j for j in block.outer if j.kind == "left" and rejecting.intersection(j.right)), None
        )
        if found is None:
            return block
        block = replace(
            block,
            predicates=(*block.predicates, *found.on),
            outer=tuple(j for j in block.outer if j is not found),
        )


def _without_inferred(block: Block) -> tuple[OuterJoin, ...]:
    """The joins without the conjuncts that follow from the others and from what holds above for
    the core's own columns."""
    hung = {rel for j in block.outer for rel in j.right}
    above = [p for p in block.predicates if not any(c.rel in hung for c in columns(p))]
    return tuple(replace(j, on=_needed(j, above)) for j in block.outer)


def _needed(join: OuterJoin, above: list[Expr]) -> tuple[Expr, ...]:
    left = list(join.on)
    for part in sorted(join.on, key=_binds):
        links = len({c.rel in join.right for c in columns(part)}) > 1
        rest = [p for p in left if p is not part]
        if not links and PredicateContext((*rest, *above)).implies(part):
            left = rest
    return tuple(left)


def _binds(part: Expr) -> int:
    """IS NOT NULL first: it is what follows most often."""
    return 0 if isinstance(part, Call) and part.op == "isnotnull" else 1


def _expressions(block: Block) -> list[Expr]:
    found = [*block.predicates, *(o.expr for o in block.outputs), *(block.group_keys or ())]
    found += [*block.having, *(k.expr for k in block.order_by)]
    return found + [p for j in block.outer for p in j.on]


def _nullable_above(block: Block) -> Block:
    hung = {rel for j in block.outer for rel in j.right}

    def visit(expr: Expr) -> Expr | None:
        if isinstance(expr, Col):
            return Col(expr.rel, expr.name, expr.type) if expr.rel in hung else expr
        return None

    def over(expr: Expr) -> Expr:
        return transform(expr, visit)

    keys = block.group_keys
    return replace(
        block,
        predicates=tuple(map(over, block.predicates)),
        outputs=tuple(Output(o.name, over(o.expr)) for o in block.outputs),
        group_keys=None if keys is None else tuple(map(over, keys)),
        having=tuple(map(over, block.having)),
        order_by=tuple(SortKey(over(k.expr), k.ascending, k.nulls_first) for k in block.order_by),
        outer=tuple(replace(j, on=tuple(map(over, j.on))) for j in block.outer),
    )


def moved_join(join: OuterJoin, shift: int) -> OuterJoin:
    """`join` with its relation numbers moved up by `shift`."""

    def visit(expr: Expr) -> Expr | None:
        if isinstance(expr, Col):
            return Col(expr.rel + shift, expr.name, expr.type, expr.nullable)
        return None

    def col(column: Col) -> Col:
        return Col(column.rel + shift, column.name, column.type, column.nullable)

    return OuterJoin(
        join.kind,
        tuple(rel + shift for rel in join.right),
        tuple(transform(p, visit) for p in join.on),
        tuple(map(col, join.declared)),
    )
