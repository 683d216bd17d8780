"""Whether a conjunction of predicates implies another predicate: never a wrong True.

By the class of a column, its domain or the residual predicates, as `matcher.predicates.context`
knows them. Beyond the paper cited there: an OR that stays residual is taken apart case by case, an
OR that is asked for piece by piece, and a condition on columns that have few values left is worked
out for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Final

from matcher.model.budget import Search, spend, within
from matcher.model.expr import FALSE, TRUE, Call, Expr, Lit, columns, conjuncts, disjuncts
from matcher.model.expr import transform as substitute
from matcher.model.types import has_exact_equality
from matcher.predicates.canonical import holds
from matcher.predicates.constant_folding import fold_all
from matcher.predicates.context import PredicateContext, column_equality
from matcher.predicates.domains import Domain, literal_of
from matcher.predicates.truth import domain_of

_MAX_POINTS: Final = 64
_MAX_PIECES: Final = 16
_MAX_DEPTH: Final = 2
_MAX_BRANCHES: Final = (16, 4)
# So many known facts are taken over into one case in the time of a step.
_FACTS_A_STEP: Final = 8


def implies(known: PredicateContext, predicate: Expr, *, by_cases: bool = True) -> bool:
    """Whether every row that passes a conjunction satisfies `predicate` (never a wrong True).

    Args:
        known: What the conjunction says.
        predicate: Any predicate, canonical or not.
        by_cases: Take ORs apart, which takes the product of their sizes.

    >>> from matcher.model.expr import Col
    >>> d = Col(0, "d", "int")
    >>> known = PredicateContext([Call("gt", (d, Lit(5, "int")), "boolean")])
    >>> implies(known, Call("gt", (d, Lit(3, "int")), "boolean"))
    True
    >>> implies(known, Call("gt", (d, Lit(7, "int")), "boolean"))
    False
    """
    if known.is_never_true:
        return True
    parts = conjuncts(predicate)
    if len(parts) > 1:
        return all(implies(known, part, by_cases=by_cases) for part in parts)
    pair = column_equality(predicate)
    if pair is not None:
        # never by the values of constants: `matcher.memory.decisions` relies on that
        if known.find(pair[0]) == known.find(pair[1]):
            return known.never_null(known.find(pair[0]))
        return _within_domain(known, known.canonical(predicate))
    return _implies(known, holds(known.canonical(predicate)), 0, by_cases)


def _within_domain(known: PredicateContext, predicate: Expr) -> bool:
    read = domain_of(predicate)
    return read is not None and read[1].contains(known.domain(read[0]))


def _implies(known: PredicateContext, predicate: Expr, depth: int, by_cases: bool = True) -> bool:
    spend()
    if predicate == TRUE or predicate in known.residuals:
        return True
    if predicate == FALSE:
        return any(values.is_empty for values in known.domains.values())
    if _within_domain(known, predicate):
        return True
    if not isinstance(predicate, Call):
        return False
    if predicate.op == "and":
        return all(_implies(known, arg, depth, by_cases) for arg in predicate.args)
    if predicate.op == "or" and any(
        _implies(known, arg, depth, by_cases) for arg in predicate.args
    ):
        return True
    if predicate.op == "nseq" and _implies(
        known, Call("eq", predicate.args, "boolean"), depth, by_cases
    ):
        return True
    if _holds_at_all_points(known, predicate):
        return True
    if depth < _MAX_DEPTH:
        told = known.with_constants(predicate)
        if told != predicate and _implies(known, holds(known.canonical(told)), depth + 1, by_cases):
            return True
    return by_cases and depth < _MAX_DEPTH and _implied_in_parts(known, predicate, depth)


def _implied_in_parts(known: PredicateContext, predicate: Call, depth: int) -> bool:
    """By cases or by pieces; both together are one search, with all that is asked within it."""

    def found() -> bool:
        by_cases = _implied_by_cases(known, predicate, depth)
        return by_cases or _implied_by_pieces(known, predicate, depth)

    return within(Search.IMPLICATION, found, False) if depth == 0 else found()


def _holds_at_all_points(known: PredicateContext, predicate: Call) -> bool:
    """The predicate worked out for every combination of values that its columns have left."""
    involved = list(dict.fromkeys(columns(predicate)))
    choices: list[list[Lit]] = []
    for column in involved:
        if column not in known.domains or not has_exact_equality(column.type):
            return False
        points = known.domain(column).points(_MAX_POINTS)
        if points is None:
            return False
        literals = [
            Lit(None, column.type) if p is None else literal_of(p, column.type) for p in points
        ]
        choices.append([lit for lit in literals if lit is not None])
    ways = prod(map(len, choices))
    if not involved or ways > _MAX_POINTS:
        return False
    spend(ways)
    for chosen in product(*choices):
        values: dict[Expr, Lit] = dict(zip(involved, chosen, strict=True))
        if fold_all(substitute(predicate, values.get)) != TRUE:
            return False
    return True


def _implied_by_cases(known: PredicateContext, predicate: Expr, depth: int) -> bool:
    """Some OR of the conjunction holds: does each of its branches imply the predicate?"""
    most = _MAX_BRANCHES[depth]  # what an OR of ORs may cost
    for residual in known.alternatives(predicate):
        # whether its cases are made now or were made before
        spend(len(disjuncts(residual)) * (1 + known.weight // _FACTS_A_STEP))
        if len(disjuncts(residual)) <= most and all(
            _implies(branch, holds(branch.canonical(predicate)), depth + 1)
            for branch in known.cases(residual)
        ):
            return True
    return False


def _implied_by_pieces(known: PredicateContext, predicate: Call, depth: int) -> bool:
    """An OR whose branches each take a part of what one operand may be: cut its range at
    theirs, and ask for each piece."""
    if predicate.op != "or":
        return False
    for operand, pieces in _pieces(known, predicate):
        if all(_implies(known.limited(operand, piece), predicate, depth + 1) for piece in pieces):
            return True
    return False


def _pieces(known: PredicateContext, disjunction: Call) -> Iterable[tuple[Expr, list[Domain]]]:
    cuts: dict[Expr, list[Domain]] = {}
    for branch in disjunction.args:
        for part in conjuncts(branch):
            read = domain_of(part)
            if read is not None and read[0] in known.domains:
                cuts.setdefault(read[0], []).append(read[1])
    for operand, sets in cuts.items():
        if len(sets) > _MAX_PIECES:
            continue
        pieces = [known.domain(operand)]
        for cut in sets:
            pieces = [p for whole in pieces for p in (whole.intersect(cut), whole.minus(cut))]
            pieces = [p for p in pieces if not p.is_empty]
        if 1 < len(pieces) <= _MAX_PIECES:
            yield operand, pieces
