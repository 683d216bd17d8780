"""Outer, semi and anti joins of a block in their one form, for both doors.

A block is an inner core of tables, then joins in order that add further tables to it: LEFT ones
keep each row, with NULLs where nothing is found, SEMI and ANTI ones keep a row or not. RIGHT is
LEFT with its sides swapped. Filters on the kept side stand above all of them, in
`Block.predicates`; filters inside the side that is joined belong to the join's own condition.
FULL joins keep each row of both sides; what is filtered below one is no part of its condition, and
stays with its side.

- A predicate above that no row of NULLs passes makes a LEFT join an inner one (Spark's
  EliminateOuterJoin; the text door has not seen Spark's optimiser, and it may not be done yet),
  and a FULL one that of the side whose rows all must be there.
- What Spark infers for the side that is joined (`IsNotNull`, ranges of join keys) is left out of
  the condition again: it follows from the rest.
- Columns of the right side of LEFT may be NULL above, whatever their table declares, but
  no longer where the join has become an inner one. An
  expression computed below the join is taken above it only if it is NULL there for missing rows:
  `coalesce(x, 0)` is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from matcher.model.errors import NotSupported
from matcher.model.expr import Call, Col, Expr, columns, moved, transform
from matcher.model.ir import Block, OuterJoin, Side
from matcher.model.message import Sql
from matcher.model.operators import STRICT
from matcher.model.reasons import ReasonCode
from matcher.predicates.context import PredicateContext
from matcher.predicates.implication import implies


def null_supplied(expr: Expr) -> Expr:
    """`expr` of the right side of a LEFT join, as it is above the join.

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
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "{sql} is computed below an outer join and is not NULL for missing rows",
        sql=Sql(repr(expr)),
    )


def settled(block: Block) -> Block:
    """`block` with its outer joins in their one form; itself if it has none."""
    if not block.outer:
        return block
    named = _with_declared(block)
    block = _inner_where_rejected(replace(block, outer=named))
    outer_tables = {rel for j in block.outer for rel in j.right}
    never_null = {c for j in named for c in j.declared if c.rel not in outer_tables}
    if block.outer:
        block = replace(block, outer=_without_inferred(block))
    return _with_nullability(block, outer_tables, never_null)


def _with_declared(block: Block) -> tuple[OuterJoin, ...]:
    """The joins with the columns that their tables declare NOT NULL, as far as the block names
    them."""
    named = {c for expr in block.expressions() for c in columns(expr)}
    return tuple(
        replace(
            j, declared=tuple(sorted(named.intersection(j.declared), key=lambda c: (c.rel, c.name)))
        )
        for j in block.outer
    )


def declared(found: Iterable[Expr | NotSupported], rels: Iterable[int]) -> tuple[Col, ...]:
    """The columns among what a right side gives that their tables declare NOT NULL."""
    own = set(rels)
    columns_ = (c for c in found if isinstance(c, Col) and not c.nullable and c.rel in own)
    return tuple(dict.fromkeys(columns_))


def _inner_where_rejected(block: Block) -> Block:
    while True:
        rejecting = PredicateContext(block.predicates).rejected()
        found = next(
            (
                j
                for j in block.outer
                if j.kind in ("left", "full") and rejecting.intersection(j.right)
            ),
            None,
        )
        if found is None:
            return block
        added, instead = _without_missing(found, rejecting)
        block = replace(
            block,
            predicates=(*block.predicates, *added),
            outer=tuple(i for j in block.outer for i in (instead if j is found else (j,))),
        )


def _without_missing(
    join: OuterJoin, there: frozenset[int]
) -> tuple[tuple[Expr, ...], tuple[OuterJoin, ...]]:
    """What is left of a join of which some tables are found in all rows: predicates above, and the
    join that stands for it."""
    if join.kind == "left":
        return join.on, ()
    kept = [side for side in join.sides if there.intersection(side.rels)]
    if len(kept) == 1:
        return keep_side(join, kept[0])
    return join.conditions(), ()


def keep_side(join: OuterJoin, kept: Side) -> tuple[tuple[Expr, ...], tuple[OuterJoin, ...]]:
    """A FULL join without the rows that lack the side `kept`: its predicates, which hold above,
    and the LEFT join that adds the other side to it."""
    (other,) = (side for side in join.sides if side is not kept)
    own = tuple(c for c in join.declared if c.rel in other.rels)
    left = OuterJoin("left", other.rels, (*join.on, *other.where), own)
    return kept.where, (left,)


def reduced(join: OuterJoin) -> OuterJoin:
    """`join` without the conjuncts of its condition that follow from the others."""
    return replace(join, on=_needed(join, []))


def _without_inferred(block: Block) -> tuple[OuterJoin, ...]:
    """The joins without the conjuncts that follow from the others and from what holds above for
    the core's own columns."""
    outer_tables = {rel for j in block.outer for rel in j.right}
    above = [p for p in block.predicates if not any(c.rel in outer_tables for c in columns(p))]
    return tuple(
        replace(j, on=_needed(j, above)) if not j.sides else _needed_in_full(j) for j in block.outer
    )


def _needed_in_full(join: OuterJoin) -> OuterJoin:
    """What holds on one side, or above, says nothing of the rows that ON looks at."""
    sides = [replace(s, where=_not_implied(s.where, s.where)) for s in join.sides]
    own = [p for p in join.on if any({c.rel for c in columns(p)} <= set(s.rels) for s in sides)]
    return replace(join, on=_not_implied(join.on, own), sides=tuple(sides))


def _not_implied(parts: tuple[Expr, ...], candidates: Iterable[Expr]) -> tuple[Expr, ...]:
    """`parts` without those of the candidates that follow from the others."""
    left = list(parts)
    for part in sorted(candidates, key=_binds):
        rest = [p for p in left if p is not part]
        if implies(PredicateContext(rest), part):
            left = rest
    return tuple(left)


def _needed(join: OuterJoin, above: list[Expr]) -> tuple[Expr, ...]:
    left = list(join.on)
    for part in sorted(join.on, key=_binds):
        links = len({c.rel in join.right for c in columns(part)}) > 1
        rest = [p for p in left if p is not part]
        if not links and implies(PredicateContext((*rest, *above)), part):
            left = rest
    return tuple(left)


def _binds(part: Expr) -> int:
    """IS NOT NULL first: it is what follows most often."""
    return 0 if isinstance(part, Call) and part.op == "isnotnull" else 1


def _with_nullability(block: Block, outer_tables: set[int], never_null: set[Col]) -> Block:
    """`block` with columns of `outer_tables` that may be NULL, and those of tables that are outer
    joined no longer as they are declared."""

    def visit(expr: Expr) -> Expr | None:
        if isinstance(expr, Col) and expr.rel in outer_tables:
            return Col(expr.rel, expr.name, expr.type)
        if isinstance(expr, Col) and expr in never_null:
            return Col(expr.rel, expr.name, expr.type, nullable=False)
        return None

    return block.map(lambda expr: transform(expr, visit))


def renumbered(
    join: OuterJoin, change: Callable[[Expr], Expr], number: Callable[[int], int]
) -> OuterJoin:
    """A join as it is in another block.

    Args:
        join: The join.
        change: Gives each of its expressions there.
        number: Gives the number of each relation there.
    """
    changed = join.map(change)
    return replace(
        changed,
        right=tuple(map(number, join.right)),
        declared=tuple(c for c in map(change, join.declared) if isinstance(c, Col)),
        sides=tuple(Side(tuple(map(number, side.rels)), side.where) for side in changed.sides),
    )


def moved_join(join: OuterJoin, shift: int) -> OuterJoin:
    """`join` with its relation numbers moved up by `shift`."""
    return renumbered(join, lambda expr: moved(expr, shift), lambda rel: rel + shift)
