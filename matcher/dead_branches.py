"""ORs without the branches that are true of no row that passes the other conditions.

`x = 1 AND (x > 5 OR y = 2)` is `x = 1 AND y = 2`. Spark comes to that by putting the constant in
place of the column (`ConstantPropagation`); here the sets of values decide, so that ranges count as
well.
"""

from __future__ import annotations

from collections.abc import Iterable

from matcher.expr import Call, Expr, conjuncts, disjuncts
from matcher.predicates import PredicateContext
from matcher.spelling import holds
from matcher.truth import domain_of


def without_dead_branches(predicates: Iterable[Expr]) -> tuple[Expr, ...]:
    """The conjuncts of a filter, shorter where a branch of an OR contradicts the others."""
    parts = tuple(part for p in predicates for part in conjuncts(p))
    if all(len(disjuncts(part)) == 1 for part in parts):
        return parts
    known = PredicateContext(parts)
    return tuple(alive for part in parts for alive in conjuncts(_alive(part, known)))


def _alive(conjunct: Expr, known: PredicateContext) -> Expr:
    branches = disjuncts(conjunct)
    left = tuple(b for b in branches if not _is_dead(b, known))
    if not left or len(left) == len(branches):
        return conjunct
    return left[0] if len(left) == 1 else Call("or", left, "boolean")


def _is_dead(branch: Expr, known: PredicateContext) -> bool:
    read = (domain_of(part) for part in conjuncts(holds(known.canonical(branch))))
    found = (pair for pair in read if pair is not None)
    return any(known.domain(operand).intersect(values).is_empty for operand, values in found)
