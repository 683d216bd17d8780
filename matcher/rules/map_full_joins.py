"""FULL joins of a cache that the query does not have: the cache as it would be without the rows
that lack one side.

`L FULL JOIN R` is `L LEFT JOIN R` and the rows of R for which nothing was found, in which all of L
is NULL. So where the query has L in its core, these rows are filtered out by a stored column of L
that is never NULL in L itself, and what is left is matched like a cache with that LEFT join: it may
be the query's own, be ignored, or become an inner one by a second such filter.

A column that the ON clause compares does not tell: a row of L for which nothing was found may
have NULL there. Only what L declares NOT NULL does, or what is filtered below the join.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from matcher.model.expr import Col, columns
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.outer_join_keys import OuterJoinKey
from matcher.normalize.outer_joins import keep_side, reduced
from matcher.predicates.context import PredicateContext
from matcher.rules.attempt import PlanAttempt, Refused
from matcher.rules.map_outer_joins import not_in_query


@dataclass(frozen=True, slots=True)
class _Choice:
    """The side of the join number `place` of the plan whose rows are kept."""

    place: int
    side: int


def without_full_joins(attempt: PlanAttempt) -> PlanAttempt:
    """Put LEFT joins for the FULL ones that the query does not have; `kept` is what tells their
    rows.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    Raises:
        Refused: OUTER_JOIN_DIFFERS where the query does not have all rows of either side.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT id, qty, city FROM sales FULL JOIN stores ON sales.store = stores.store",
    ...     "SELECT id, city FROM sales LEFT JOIN stores ON sales.store = stores.store",
    ... )
    SELECT `id`, `city` FROM c WHERE (`id` IS NOT NULL)
    """
    view, theirs = attempt.view, set(attempt.query.outer_joins)
    choices: list[_Choice] = []
    telling: list[tuple[frozenset[int], frozenset[Col]]] = []
    for place, join in enumerate(view.outer_joins):
        if join.kind != "full" or join in theirs:
            continue
        sides = view.plan.outer[place].sides
        rels = [frozenset(view.relations[rel] for rel in side.rels) for side in sides]
        kept = _kept(attempt.query, *rels)
        if kept is None:
            raise Refused(not_in_query(attempt, join))
        choices.append(_Choice(place, kept))
        telling.append(_telling(join, rels[kept]))
    if not choices:
        return attempt
    predicates, outer = view.plan.predicates, list(view.plan.outer)
    for choice in reversed(choices):
        full = outer[choice.place]
        added, left = keep_side(full, full.sides[choice.side])
        predicates = (*predicates, *added)
        outer[choice.place : choice.place + 1] = [reduced(j) for j in left]
    plan = replace(view.plan, predicates=predicates, outer=tuple(outer))
    variant = view.variant(plan, tuple(choices))
    return replace(attempt, view=variant, context=variant.context, kept=tuple(telling))


def _kept(query: NormalQuery, left: frozenset[int], right: frozenset[int]) -> int | None:
    """The side that the query has in its core, and outer-joins the other one, or reads no more of
    it, or joins it inside."""
    outer_tables = frozenset(rel for join in query.outer_joins for rel in join.right)
    core = [side <= query.tables and side.isdisjoint(outer_tables) for side in (left, right)]
    for kept, other in ((0, right), (1, left)):
        if core[kept] and any(j.kind == "left" and j.right == other for j in query.outer_joins):
            return kept
    if all(core):
        return 0
    for kept, other in ((0, right), (1, left)):
        if core[kept] and other.isdisjoint(query.tables):
            return kept
    return None


def _telling(join: OuterJoinKey, rels: frozenset[int]) -> tuple[frozenset[int], frozenset[Col]]:
    """The columns that are never NULL in the rows of a side."""
    (where,) = (parts for side, parts in join.sides if side == rels)
    context = PredicateContext(where)
    known = {c for p in where for c in columns(p) if context.never_null(context.find(c))}
    return rels, frozenset(known | {c for c in join.declared if c.rel in rels})
