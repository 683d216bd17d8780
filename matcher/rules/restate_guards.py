"""Guards: what the query says and every row of the cache satisfies, said once more over the cache.

`WHERE k <> 0` keeps `10 / k` from raising. Where the cache was filtered so, its own rows need no
such filter; but Spark works the division out for other rows as well. From `e.k = ed.k` it concludes
that `10 / e.k > length(ed.s)` holds of `10 / ed.k`, and filters ed by it before the join; what
keeps that from raising is `ed.k <> 0`, which it concludes from the very same filter. So a guard
stays a filter of the rewrite, at its own place among the query's conjuncts: one may keep the next
from raising.

A guard on a column that is not stored cannot be said, and nothing above the block relies on it:
Spark concludes by the columns that a block puts out. Inside, where the rewrite itself joins a
table, such a guard on one of its join's columns is refused if a condition may raise.
"""

from __future__ import annotations

from dataclasses import replace

from matcher.model.expr import Call, Col, Expr, Lit, columns, rebuild
from matcher.model.message import CacheName, Sql
from matcher.model.reasons import Reason, ReasonCode
from matcher.predicates.context import column_equality
from matcher.predicates.raising import may_raise
from matcher.render.select import is_renderable
from matcher.rules.attempt import Refused, ViewAttempt, is_spellable, spell, stored
from matcher.rules.derive_columns import BLIND_TO_ZERO_SIGN
from matcher.rules.join_tables import reference


def restate_guards(attempt: ViewAttempt) -> ViewAttempt:
    """Find the `restated` filters.

    Args:
        attempt: The query and the view, with what the rules before have found.

    Raises:
        Refused: PREDICATE_COLUMN_MISSING for a guard that cannot be said over the tables that the
            rewrite joins, where something in it may raise.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT id, qty FROM sales WHERE qty <> 0",
    ...     "SELECT 10 DIV qty AS r FROM sales WHERE qty <> 0",
    ... )
    SELECT (10L DIV CAST(`qty` AS BIGINT)) AS `r` FROM c WHERE (`qty` <> 0)
    """
    pending = set(attempt.shared.pending)
    guaranteed = [p for p in attempt.query.context().conjuncts if p not in pending]
    if not guaranteed:
        return attempt
    own = _own_columns(attempt)
    restated = {p: found for p in guaranteed if (found := _restated(attempt, p, own)) is not None}
    if attempt.joined_tables:
        _refuse_unsaid(attempt, [p for p in guaranteed if p not in restated])
    return replace(attempt, filters=replace(attempt.filters, restated=restated))


def filters_in_order(attempt: ViewAttempt) -> tuple[Expr, ...]:
    """All filters of the rewrite, those that stand for the query's conjuncts in their order."""
    filters = attempt.filters
    ordered = [*filters.own, *attempt.notes.key_filters]
    for predicate in attempt.query.context().conjuncts:
        found = filters.derived.get(predicate) or filters.restated.get(predicate)
        if found is not None and found not in ordered:
            ordered.append(found)
    return tuple(ordered)


def _restated(attempt: ViewAttempt, predicate: Expr, own: dict[Expr, Col]) -> Expr | None:
    """The conjunct over the rewrite's tables; None where that says nothing, or cannot be said."""
    if _is_null_test(predicate):  # an equality, by which alone it would matter, says so as well
        return None
    found = _over_tables(attempt, predicate, own)
    if found is None or not columns(found):
        return None
    if column_equality(predicate) is not None and len(set(columns(found))) < 2:
        return None
    return found


def _is_null_test(predicate: Expr) -> bool:
    return (
        isinstance(predicate, Call)
        and predicate.op == "isnotnull"
        and isinstance(predicate.args[0], Col)
    )


def _own_columns(attempt: ViewAttempt) -> dict[Expr, Col]:
    """The stored columns, by what the cache itself guarantees to be equal: equalities of the
    query's are filters of their own, which need not be reached first."""
    found: dict[Expr, Col] = {}
    for expr, column in attempt.view.stored(attempt.grouping_set):
        found.setdefault(expr, stored(column, expr))
    for expr, column in attempt.view.stored(attempt.grouping_set):
        found.setdefault(attempt.shared.guaranteed.canonical(expr), stored(column, expr))
    return found


def _over_tables(attempt: ViewAttempt, expr: Expr, own: dict[Expr, Col]) -> Expr | None:
    """`expr` over the stored columns and the tables that are joined again, without joining one
    for it."""
    canonical = attempt.shared.guaranteed.canonical(expr)
    column = own.get(expr) or own.get(canonical)
    if column is not None:
        return column
    if isinstance(expr, Lit):
        return expr if is_spellable(expr) else None
    if isinstance(expr, Col):
        for member in attempt.shared.guaranteed.members(expr):
            if member.rel in attempt.notes.again:
                return reference(attempt, member, expr)
        constant = attempt.shared.guaranteed.constant(canonical)
        return constant if constant is not None and is_spellable(constant) else None
    if not isinstance(expr, Call) or not is_renderable(expr.op, len(expr.args)):
        return None
    parts = [_over_tables(attempt, arg, own) for arg in expr.args]
    if any(map(attempt.is_blurred_key, parts)) and expr.op not in BLIND_TO_ZERO_SIGN:
        return None
    done = tuple(part for part in parts if part is not None)
    return rebuild(expr, done) if len(done) == len(parts) else None


def _refuse_unsaid(attempt: ViewAttempt, unsaid: list[Expr]) -> None:
    """Refuse a guard on what a joined table's columns are equal to, if it cannot be said."""
    ansi = attempt.options.ansi
    conditions = [
        *attempt.shared.pending,
        *(p for join in attempt.shared.extra_outer_joins for p in join.written),
    ]
    relying = [p for p in conditions if may_raise(p, ansi=ansi)]
    joined = set(attempt.joined_tables)
    for guard in unsaid if relying else ():
        equality = column_equality(guard) is not None
        if equality or _is_null_test(guard) or not _reaches(attempt, guard, joined):
            continue
        raise Refused(
            Reason(
                ReasonCode.PREDICATE_COLUMN_MISSING,
                "{view} cannot repeat {guard}, which may keep {raising} from raising an error "
                "for rows of a joined table",
                "add what {guard} is about to the columns of {cache}",
                view=attempt.view_name(),
                guard=Sql(spell(guard)),
                raising=Sql(spell(relying[0])),
                cache=CacheName(attempt.view.name),
            ),
            lacking=1,
        )


def _reaches(attempt: ViewAttempt, guard: Expr, joined: set[int]) -> bool:
    """True if some column of the guard is equal to one of a joined table."""
    context = attempt.context
    return any(m.rel in joined for c in columns(guard) for m in context.members(c))
