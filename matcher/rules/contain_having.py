"""Caches with HAVING: they hold the groups that passed it, and nothing of the others.

Such a cache serves a query whose own HAVING implies the cache's, at the very same groups: each
group that the query shows is one that is stored, and it was made of the same rows, since what the
query filters besides are whole groups. It is never rolled up: the groups that were dropped are
gone, and rows of theirs belong to the coarser groups. Nor are groups repeated, by a joined table
or by GROUPING SETS, for the same reason.

What is compared are conditions on groups, so an aggregate stands for one value of each group, as a
column of its own would, and NULL is told as for rows: HAVING keeps what is TRUE.

A group that was dropped may be one for which the query itself would raise an error, by an output or
a condition: `SUM(a) / SUM(b)` is worked out for all groups, before HAVING drops those with a sum of
0. So may rows of it be, by a filter or by an aggregate that the cache does not store. What may
raise is refused, unless the cache's own HAVING says it too; a division by COUNT(*) never does, as
each group has a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, aggregates, transform
from matcher.model.message import CacheName, Sql
from matcher.model.reasons import Reason, ReasonCode
from matcher.predicates.context import PredicateContext
from matcher.predicates.implication import implies
from matcher.predicates.raising import raising
from matcher.rules.attempt import PlanAttempt, Refused, ViewAttempt, spell

# The relation number under which an aggregate is a column of its group: no table has it.
_GROUP: Final = -2
_DIVISIONS: Final = frozenset({"div", "idiv", "mod", "pmod"})


def refuse_all_groups(attempt: PlanAttempt) -> PlanAttempt:
    """The cheap part, before anything else is looked at: a query without HAVING needs all groups.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    Raises:
        Refused: HAVING_NOT_CONTAINED.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, SUM(qty) AS q FROM sales GROUP BY item HAVING SUM(qty) > 5",
    ...     "SELECT item, SUM(qty) AS q FROM sales GROUP BY item",
    ... )
    HAVING_NOT_CONTAINED: cache c holds only groups with (SUM(qty) > 5L), but the query
    needs others too
    """
    if attempt.view.having and not attempt.query.having:
        raise _not_contained(attempt, attempt.view.having[0])
    return attempt


def contain_having(attempt: ViewAttempt) -> ViewAttempt:
    """Refuse what needs a group that was dropped.

    Args:
        attempt: The query and the view, with what the rules before have found.

    Raises:
        Refused: HAVING_NOT_CONTAINED.

    >>> from matcher.examples import answer
    >>> cache = "SELECT item, SUM(qty) AS q FROM sales GROUP BY item HAVING SUM(qty) > 5"
    >>> answer(cache, "SELECT item, SUM(qty) AS q FROM sales GROUP BY item HAVING SUM(qty) > 9")
    SELECT `item`, `q` FROM c WHERE (`q` > 9L)
    >>> answer(cache, "SELECT SUM(qty) AS q FROM sales HAVING SUM(qty) > 9")
    HAVING_NOT_CONTAINED: cache c holds only the groups that passed its HAVING, which cannot
    be rolled up
    """
    having = attempt.view.having
    if not having:
        return attempt
    if not attempt.groups.same:
        raise Refused(
            Reason(
                ReasonCode.HAVING_NOT_CONTAINED,
                "cache {cache} holds only the groups that passed its HAVING, which cannot be "
                "rolled up",
                "leave HAVING out of the definition of {cache}: queries that have it are answered "
                "all the same",
                cache=CacheName(attempt.view.name),
            )
        )
    # those of HAVING, and those by which a query's groups may be known to be the cache's
    attempt.notes.by_constants = True
    canonical = attempt.context.canonical
    asked = [_of_group(canonical(part)) for part in attempt.query.having]
    known = PredicateContext(asked)
    for part in having:
        if not implies(known, _of_group(canonical(part))):
            raise _not_contained(attempt.shared, part)
    _refuse_errors(attempt, {canonical(part) for part in having})
    return attempt


def _of_group(expr: Expr) -> Expr:
    """A condition on a group, its aggregates as columns of it."""
    return transform(
        expr,
        lambda node: (
            Col(_GROUP, repr(node), node.type, node.nullable) if isinstance(node, Agg) else None
        ),
    )


def _refuse_errors(attempt: ViewAttempt, kept: set[Expr]) -> None:
    query, canonical, ansi = attempt.query, attempt.context.canonical, attempt.options.ansi
    conditions = (part for part in query.having if canonical(part) not in kept)
    above = (*(output.expr for output in query.outputs), *conditions)
    made = (a for e in above for a in aggregates(e) if canonical(a) not in attempt.stored_aggs)
    of_rows = chain(made, attempt.filters.derived)  # which the refresh did not work out
    errors = (part for e in of_rows for part in raising(e, ansi=ansi, overflow=False))
    found = next(chain(_errors(above, ansi), errors), None)
    if found is not None:
        raise Refused(
            Reason(
                ReasonCode.HAVING_NOT_CONTAINED,
                "{sql} may raise an error for a group that cache {cache} has dropped",
                "leave HAVING out of the definition of {cache}, or write it with TRY_DIVIDE, "
                "TRY_CAST and the like",
                sql=Sql(spell(found)),
                cache=CacheName(attempt.view.name),
            )
        )


def _errors(exprs: Iterable[Expr], ansi: bool) -> Iterator[Expr]:
    for expr in exprs:
        names = {repr(agg): agg for agg in aggregates(expr)}
        for call in raising(_of_group(expr), ansi=ansi, overflow=False):
            if call.op not in _DIVISIONS or not _counts_rows(call.args[1], names):
                yield call


def _counts_rows(expr: Expr, names: dict[str, Agg]) -> bool:
    while isinstance(expr, Call) and expr.op == "cast":
        expr = expr.args[0]
    agg = names.get(expr.name) if isinstance(expr, Col) and expr.rel == _GROUP else None
    return agg is not None and agg.func == "count" and not agg.args and agg.filter is None


def _not_contained(attempt: PlanAttempt, part: Expr) -> Refused:
    return Refused(
        Reason(
            ReasonCode.HAVING_NOT_CONTAINED,
            "cache {cache} holds only groups with {part}, but the query needs others too",
            "widen or remove the HAVING of {cache}: queries that have one are answered all the "
            "same",
            cache=CacheName(attempt.view.name),
            part=Sql(spell(part)),
        )
    )
