"""ORs without the branches that are true of no row that passes the other conditions, and without
those ORs of which some branch is true of every such row.

`x = 1 AND (x > 5 OR y = 2)` is `x = 1 AND y = 2`, and `x = 1 AND (x < 5 OR y = 2)` is `x = 1`.
Spark comes to that by putting the constant in place of the column (`ConstantPropagation`); here the
sets of values decide, so that ranges count as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from matcher.model.budget import Search, spend, within
from matcher.model.expr import Call, Expr, columns, conjuncts, disjuncts
from matcher.predicates.canonical import holds
from matcher.predicates.context import PredicateContext
from matcher.predicates.domains import Domain
from matcher.predicates.implication import implies
from matcher.predicates.raising import may_raise
from matcher.predicates.truth import domain_of

_STEPS_A_BRANCH: Final = 4
# Each of so many ORs is compared with all the others.
_MOST_CHOICES: Final = 8


def without_dead_branches(predicates: Iterable[Expr]) -> tuple[Expr, ...]:
    """The conjuncts of a filter, shorter where a branch of an OR contradicts the others."""
    parts = tuple(part for p in predicates for part in conjuncts(p))
    choices = [part for part in parts if len(disjuncts(part)) > 1]
    if not choices or all(_stands_alone(part, parts) for part in choices):
        return parts
    whole = parts
    return within(Search.DEAD_BRANCHES, lambda: _shortened(whole, choices), whole)


def _shortened(parts: tuple[Expr, ...], choices: list[Expr]) -> tuple[Expr, ...]:
    parts = _without_implied(parts, choices)
    while True:  # what is left of one OR may decide over another
        spend(_STEPS_A_BRANCH * _branches(parts))
        known = PredicateContext(parts)
        left = tuple(alive for part in parts for alive in conjuncts(_alive(part, known)))
        if left == parts:
            return parts
        parts = left


def _branches(parts: Iterable[Expr]) -> int:
    """What it takes to find out what conjuncts say: each branch of an OR is looked at."""
    return sum(len(disjuncts(part)) for part in parts)


def _without_implied(parts: tuple[Expr, ...], choices: list[Expr]) -> tuple[Expr, ...]:
    """The conjuncts but for ORs that the ones left always make true; where there are many ORs, that
    the conditions beside all of them do."""
    beside = None
    if len(choices) > _MOST_CHOICES:
        beside = PredicateContext(part for part in parts if len(disjuncts(part)) == 1)
    for choice in choices:
        if may_raise(choice, overflow=False):  # `10 / k > 1 OR k >= 0` is an error where k is 0
            continue
        rest = tuple(part for part in parts if part is not choice)
        if beside is None:
            spend(_STEPS_A_BRANCH * _branches(rest))
        known = beside or PredicateContext(rest)
        if any(implies(known, branch, by_cases=False) for branch in disjuncts(choice)):
            parts = rest
    return parts


def _stands_alone(part: Expr, parts: tuple[Expr, ...]) -> bool:
    """True for an OR that nothing else can decide over: its columns are in no other conjunct, and
    in each branch once. Most queries have no other, and need not be looked at closely."""
    own = set(columns(part))
    if any(other is not part and not own.isdisjoint(columns(other)) for other in parts):
        return False
    named = ([c for one in conjuncts(b) for c in set(columns(one))] for b in disjuncts(part))
    return all(len(found) == len(set(found)) for found in named)


def _alive(conjunct: Expr, known: PredicateContext) -> Expr:
    branches = disjuncts(conjunct)
    left = tuple(b for b in branches if not _is_dead(b, known))
    if not left or len(left) == len(branches):
        return conjunct
    return left[0] if len(left) == 1 else Call("or", left, "boolean")


def _is_dead(branch: Expr, known: PredicateContext) -> bool:
    """True if some operand has no value left by the branch and what is known, and nothing in it
    may raise."""
    if may_raise(branch, overflow=False):
        return False
    left: dict[Expr, Domain] = {}
    for part in conjuncts(holds(known.canonical(branch))):
        pair = domain_of(part)
        if pair is not None:
            operand, values = pair
            left[operand] = left.get(operand, known.domain(operand)).intersect(values)
    return any(values.is_empty for values in left.values())
