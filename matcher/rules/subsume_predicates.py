"""Predicates: the query must imply all that the cache was filtered by; what the cache does not
guarantee stays to be filtered."""

from __future__ import annotations

from dataclasses import replace

from matcher.model.expr import Expr, columns
from matcher.model.message import CacheName, ColumnName, Sql, listed
from matcher.model.reasons import Reason, ReasonCode
from matcher.predicates.context import column_equality
from matcher.predicates.implication import implies
from matcher.predicates.raising import always_computed, raising
from matcher.rules.attempt import PlanAttempt, Refused, spell
from matcher.rules.map_outer_joins import check_conditions


def refuse_minus_zero(attempt: PlanAttempt) -> PlanAttempt:
    """What Spark finds by a condition with -0.0 depends on how rows lie in files
    (`matcher.predicates.negative_zeros`).

    Args:
        attempt: The query and the cache, with what the rules before have found.

    Raises:
        Refused: UNSUPPORTED_EXPRESSION for such a query.

    >>> from matcher.examples import answer
    >>> answer("SELECT id, ratio FROM sales", "SELECT id FROM sales WHERE ratio = -0.0D")
    UNSUPPORTED_EXPRESSION: a condition on ratio compares with -0.0: what Spark finds by
    that depends on how the table's files are encoded
    """
    found = attempt.query.minus_zero
    if found is not None:
        raise Refused(
            Reason(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "a condition on {columns} compares with -0.0: what Spark finds by that depends on "
                "how the table's files are encoded",
                "compare with 0.0, which -0.0 is equal to",
                columns=listed(ColumnName, sorted({c.name for c in columns(found)})),
            )
        )
    return attempt


def subsume_predicates(attempt: PlanAttempt) -> PlanAttempt:
    """Find `pending`, the query's conjuncts that rows of the cache may break.

    Args:
        attempt: The query and the cache, with what the rules before have found.

    Raises:
        Refused: PREDICATE_NOT_CONTAINED or JOIN_CONDITION_DIFFERS where the cache lacks rows that
            the query needs.

    >>> from matcher.examples import answer
    >>> answer("SELECT id, qty FROM sales WHERE qty > 3", "SELECT id FROM sales WHERE qty > 5")
    SELECT `id` FROM c WHERE (`qty` > 5)
    >>> answer("SELECT id, qty FROM sales WHERE qty > 3", "SELECT id FROM sales WHERE qty > 1")
    PREDICATE_NOT_CONTAINED: cache c keeps only rows with (qty > 3), but the query needs
    others too
    """
    for predicate in attempt.required:
        if not implies(attempt.context, predicate):
            raise Refused(_not_contained(attempt, predicate))
    attempt = check_conditions(attempt)
    guaranteed = attempt.guaranteed
    pending = tuple(
        p
        for p in attempt.query.context().conjuncts
        if not implies(guaranteed, p) or _raises_anew(attempt, p)
    )
    if not pending:
        return attempt
    return replace(attempt, pending=pending, steps=(*attempt.steps, "compensate_filter"))


def _raises_anew(attempt: PlanAttempt, predicate: Expr) -> bool:
    """True if the predicate may raise by what no row of the cache was asked: it may be true
    wherever it has a value, as `10 / k > 1 OR 10 / k <= 1` is, and still end the query."""
    parts = set(raising(predicate, ansi=attempt.options.ansi, overflow=False))
    if not parts:
        return False
    canonical = attempt.guaranteed.canonical
    return not {canonical(p) for p in parts} <= _computed(attempt)


def _computed(attempt: PlanAttempt) -> set[Expr]:
    """What was worked out for each row that the cache was made of."""
    view, canonical = attempt.view, attempt.guaranteed.canonical
    exprs = (*view.predicates, *(expr for expr, _ in view.columns))
    return {canonical(part) for expr in exprs for part in always_computed(expr)}


def _not_contained(attempt: PlanAttempt, predicate: Expr) -> Reason:
    name = attempt.view.name
    if column_equality(predicate) is not None:
        return Reason(
            ReasonCode.JOIN_CONDITION_DIFFERS,
            "cache {cache} keeps only rows with {predicate}, which the query does not ask for",
            "remove {predicate} from the definition of {cache}",
            cache=CacheName(name),
            predicate=Sql(spell(predicate)),
        )
    return Reason(
        ReasonCode.PREDICATE_NOT_CONTAINED,
        "cache {cache} keeps only rows with {predicate}, but the query needs others too",
        "widen or remove the predicate {predicate} of {cache}",
        cache=CacheName(name),
        predicate=Sql(spell(predicate)),
    )
