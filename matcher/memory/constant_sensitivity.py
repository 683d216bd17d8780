"""Which constants a cache answers alike.

What is remembered of a query's shape is told to the next query of it, whose constants are others. A
cache that has constants of its own looks at them, and so do a few rules; the rest only sees how the
constants compare with each other. Whoever is in doubt asks again: a miss that is told wrongly is a
hit that is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from matcher.model.expr import Call, Col, Expr, Lit, columns, conjuncts, walk
from matcher.model.operators import COMPARISONS
from matcher.model.reasons import Reason
from matcher.model.types import INTEGRAL
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.predicates.context import PredicateContext, column_equality
from matcher.predicates.domains import universe
from matcher.rules.attempt import spell

# Whole numbers that lie so far apart have two others between them, or more.
_FAR: Final = 3
# Of floating point numbers there are two zeros, of decimals those between depend on their scale.
_TOLD_APART: Final = frozenset({*INTEGRAL, "date", "timestamp", "timestamp_ntz", "string"})
# Their constant may be an equality, or hold of every string.
_BY_CONTENT: Final = frozenset({"like", "startswith", "endswith", "contains"})


def misses_alike(
    query: NormalQuery,
    constants: tuple[Lit, ...],
    proposed: Iterable[PreparedPlan],
    reasons: tuple[Reason, ...],
) -> bool:
    """True if other constants that compare with each other alike (`order_of`) are missed for the
    same reasons.

    Args:
        query: A query that was missed.
        constants: Its lifted constants.
        proposed: The caches that were looked at.
        reasons: What they said.
    """
    return answers_alike(query, constants, proposed) and not quotes(reasons, constants)


def answers_alike(
    query: NormalQuery, constants: tuple[Lit, ...], plans: Iterable[PreparedPlan]
) -> bool:
    """True if these caches decide alike on other constants that compare with each other alike.

    Args:
        query: A query.
        constants: Its lifted constants.
        plans: The caches.
    """
    return (
        not query.outer_joins
        and _told_by_order(query, constants)
        and not any(_depends_on_constants(plan, query) for plan in plans)
    )


def _told_by_order(query: NormalQuery, constants: tuple[Lit, ...]) -> bool:
    """True if what a query's conditions leave of its columns, nothing, one value or more, is known
    from how the constants compare."""
    return all(c.type in _TOLD_APART for c in constants) and not any(
        _looks_inside(node, query.predicates) for p in query.predicates for node in walk(p)
    )


def _looks_inside(node: Expr, predicates: Iterable[Expr]) -> bool:
    """True of a comparison of something computed from a column that is compared elsewhere too:
    `year(d) = 2024 AND d >= DATE'2024-12-31'` leaves one day."""
    if not isinstance(node, Call):
        return False
    if node.op in _BY_CONTENT:
        return True
    computed = [a for a in node.args if not isinstance(a, Col | Lit)]
    if not any(isinstance(a, Lit) for a in node.args) or not computed:
        return False
    own = {column for a in computed for column in columns(a)}
    return sum(not own.isdisjoint(columns(p)) for p in predicates) > 1


def decide_over_others(predicates: Iterable[Expr]) -> bool:
    """True if the values of constants may have decided what another condition says.

    By `a = 5` the condition `a < 3 OR x > 0` is `x > 0`, so that x is never NULL, and by `a = 1` it
    is none at all: what is concluded from it, or left out for it, shows in no filter. A comparison
    of two columns says the same of NULL whatever their values are.

    Args:
        predicates: The conditions of a query, as written.
    """
    parts = [part for p in predicates for part in conjuncts(p)]
    several = [p for p in parts if len(set(columns(p))) > 1 and not _compares_columns(p)]
    if not several:
        return False
    context = PredicateContext(p for p in parts if column_equality(p) is not None)
    with_constants = [p for p in parts if any(isinstance(node, Lit) for node in walk(p))]
    for part in several:
        own = [context.find(column) for column in columns(part)]
        if len(set(own)) < 2:
            continue
        others = {
            context.find(c) for other in with_constants if other is not part for c in columns(other)
        }
        if len(set(own)) < len(own) or not others.isdisjoint(own):
            return True
    return False


def _compares_columns(part: Expr) -> bool:
    sides = part.args if isinstance(part, Call) and part.op in COMPARISONS else ()
    return len(sides) == 2 and all(isinstance(side, Col) for side in sides)


def _depends_on_constants(plan: PreparedPlan, query: NormalQuery) -> bool:
    """True if other constants in a query of that shape may change what a cache says to it.

    Not only by the cache's own conditions: what it stores of a column may stand for some constants
    and not for others. `d >= DATE'2024-03-01'` is a condition on months, `d >= DATE'2024-03-02'` is
    none. A table that the cache joins may have the same column under another name.
    """
    if plan.outer_joins or not has_no_constants(plan):
        return True
    computed = [expr for expr, _ in plan.columns if not isinstance(expr, Col)]
    if computed and not plan.tables <= set(query.relations):
        return True
    compared = {column.name for predicate in query.predicates for column in columns(predicate)}
    return any(not compared.isdisjoint(c.name for c in columns(expr)) for expr in computed)


def has_no_constants(plan: PreparedPlan) -> bool:
    """True of a cache whose conditions a query implies by its joins alone."""
    return all(map(_holds_for_all_constants, plan.predicates))


def _holds_for_all_constants(predicate: Expr) -> bool:
    """A cache's condition that a query implies by its joins alone, whatever it compares with.

    Others, even `x IS NULL`, may have been implied because the constants left no value at all.
    """
    return column_equality(predicate) is not None


def quotes(reasons: Iterable[Reason], constants: tuple[Lit, ...]) -> bool:
    """True if reasons may name one of the constants."""
    said = " ".join(f"{reason.detail} {reason.suggestion}" for reason in reasons)
    return any(text in said for c in constants for text in (str(c.value), spell(c)))


def order_of(constants: tuple[Lit, ...]) -> tuple[object, ...]:
    """How constants compare with each other and with the ends of their types: equal for those of
    which this is the same.

    Of whole numbers (days are such, too) it matters how many lie between: none between 1 and 2,
    and one between 1 and 3, so that `a > 1 AND a < 3` leaves one value.

    Args:
        constants: The lifted constants of a query.
    """
    ranks: dict[str, dict[object, int]] = {}
    for kind in dict.fromkeys(c.type for c in constants):
        values = {*(c.value for c in constants if c.type == kind), *_ends(kind)}
        try:
            ordered: Sequence[object] = sorted(values)  # type: ignore[type-var]
        except TypeError:
            return constants
        ranks[kind], rank = {}, 0
        for number, value in enumerate(ordered):
            before = ordered[number - 1] if number else value
            whole = isinstance(value, int) and isinstance(before, int)
            rank += min(value - before, _FAR) if whole else int(number > 0)  # type: ignore[operator]
            ranks[kind][value] = rank
    ends = (found[end] for kind, found in ranks.items() for end in _ends(kind))
    return (*(ranks[c.type][c.value] for c in constants), *ends)


def _ends(type: str) -> tuple[object, ...]:
    """The least and the greatest of a type of whole numbers."""
    pieces = universe(type).intervals if type in INTEGRAL else ()
    return tuple(end for piece in pieces for end in (piece.low, piece.high))
