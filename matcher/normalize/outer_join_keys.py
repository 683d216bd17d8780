"""Outer, semi and anti joins in the form in which those of a query and of a cache are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from matcher.model.expr import Call, Col, Expr, Lit, columns, conjuncts, transform
from matcher.model.ir import OuterJoin
from matcher.normalize.relation_numbers import relabel
from matcher.predicates.canonical import holds
from matcher.predicates.context import PredicateContext, column_equality


@dataclass(frozen=True, slots=True)
class OuterJoinKey:
    """An outer, semi or anti join in the form in which two of them are compared.

    The conjuncts are spelled in one way, but with no column for another: what is equal above the
    join need not be so for the rows that it looks at. The two `sides` of a FULL join have no order.
    `written` are the conjuncts of `on` as they were written and in that order, by which one may
    keep the next from raising.
    """

    kind: str
    right: frozenset[int]
    on: frozenset[Expr]
    declared: frozenset[Col] = field(compare=False)
    written: tuple[Expr, ...] = field(compare=False)
    sides: frozenset[tuple[frozenset[int], frozenset[Expr]]] = frozenset()

    def mentions(self, rel: int) -> bool:
        """True if the table is outer-joined here, or the condition is about it."""
        return rel in self.right or any(c.rel == rel for p in self.on for c in columns(p))

    def conditions(self) -> list[Expr]:
        """All conjuncts of the join: those of ON, and those below it."""
        return [*self.on, *(p for _, where in self.sides for p in where)]

    def where_fixed(self, fixed: Mapping[Col, Lit]) -> OuterJoinKey:
        """The join with the constants that columns of the kept side are, where all other rows are
        filtered out above it (Spark's ConstantPropagation does so to EXISTS, which has no other
        form then)."""
        if not fixed or self.kind == "full":
            return self

        def visit(expr: Expr) -> Expr | None:
            if isinstance(expr, Col) and expr.rel not in self.right:
                return fixed.get(expr)
            return None

        return replace(self, on=_where_true(transform(part, visit) for part in self.on))


def _where_true(condition: Iterable[Expr]) -> frozenset[Expr]:
    """The conjuncts of a condition of which it only matters where they are TRUE."""
    spell = PredicateContext(()).canonical
    return frozenset(part for p in condition for part in conjuncts(holds(spell(p))))


def outer_join_keys(
    outer: Iterable[OuterJoin], rels: tuple[int, ...], memo: dict[Expr, Expr]
) -> tuple[OuterJoinKey, ...]:
    return tuple(
        OuterJoinKey(
            join.kind,
            frozenset(rels[rel] for rel in join.right),
            _where_true(relabel(p, rels, memo) for p in join.on),
            frozenset(Col(rels[c.rel], c.name, c.type, c.nullable) for c in join.declared),
            tuple(part for p in join.on for part in conjuncts(relabel(p, rels, memo))),
            frozenset(
                (
                    frozenset(rels[rel] for rel in side.rels),
                    _where_true(relabel(p, rels, memo) for p in side.where),
                )
                for side in join.sides
            ),
        )
        for join in outer
    )


def either_side(
    outer: Iterable[OuterJoin], rels: tuple[int, ...], memo: dict[Expr, Expr]
) -> dict[Expr, Expr]:
    """`memo` with one order for `coalesce(a, b)` of columns that a FULL join says are equal.

    In each of its rows they are equal, or one is NULL: so the order does not matter, and is that
    of the sides as they were written.
    """
    for join in outer:
        for pair in map(column_equality, join.on if join.kind == "full" else ()):
            if pair is not None:
                made = (Call("coalesce", p, pair[0].type) for p in (pair, pair[::-1]))
                one, other = ((call, relabel(call, rels, memo)) for call in made)
                first = min(one[1], other[1], key=repr)
                memo.update({one[0]: first, other[0]: first})
    return memo
