"""`x IS NULL` from a stored expression that is NULL exactly where x is, such as `x > 5`.

Refused: a stored expression with another argument that may be NULL (`x > y` is NULL where x is
not), and one that makes NULL of what is not (`CAST(x AS INT)`, `x / y`, CASE).
"""

from __future__ import annotations

from collections.abc import Callable

from matcher.model.expr import Call, Col, Expr
from matcher.model.ir import StoredColumn
from matcher.predicates.null_sources import NULL_TESTS, null_sources, tested
from matcher.rules.attempt import ViewAttempt


def derive_null_test(attempt: ViewAttempt, test: Expr) -> Expr | None:
    """The canonical `test` (`x IS [NOT] NULL`, or these of several by OR or AND) by stored
    expressions that are NULL where its operands are; None where there are none.

    Args:
        attempt: The query and the view, with what the rules before have found.
        test: The test, canonical.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT qty > 5 AS big, COUNT(*) AS n FROM sales GROUP BY qty > 5",
    ...     "SELECT COUNT(*) AS n FROM sales WHERE qty IS NULL",
    ... )
    SELECT COALESCE(SUM(`n`), 0L) AS `n` FROM c WHERE (`big` IS NULL)
    """
    for op in NULL_TESTS:
        wanted = tested(test, op)
        if wanted and not all(source in attempt.available for source in wanted):
            return _covered(attempt, op, wanted, frozenset(wanted).__contains__)
    return None


def filter_by_null_test(attempt: ViewAttempt, predicate: Expr) -> Expr | None:
    """`x IS NOT NULL` by a stored `x > y`, where the query lets no NULL of y pass either: Catalyst
    has made two filters of `(x > y) IS NOT NULL`."""
    context = attempt.context
    wanted = tested(context.canonical(predicate), "isnotnull")
    return _covered(attempt, "isnotnull", wanted, context.never_null) if wanted else None


def _covered(
    attempt: ViewAttempt, op: str, wanted: tuple[Expr, ...], may: Callable[[Expr], bool]
) -> Expr | None:
    """Stored expressions whose sources are all of `wanted`, and for the rest such as `may` be."""
    left = set(wanted)
    found: list[StoredColumn] = []
    for expr, column in attempt.available.items():
        sources = null_sources(expr)
        if not left.isdisjoint(sources) and _tells(sources, may):
            left.difference_update(sources)
            found.append(column)
    if left:
        return None
    attempt.notes.used.update(column.name for column in found)
    parts = tuple(_test(op, column) for column in found)
    return parts[0] if len(parts) == 1 else Call(NULL_TESTS[op], parts, "boolean", False)


def _tells(sources: tuple[Expr, ...], may: Callable[[Expr], bool]) -> bool:
    """False if the stored expression is also NULL for what does not matter here."""
    if not all(map(may, sources)):
        return False
    return True


def _test(op: str, column: StoredColumn) -> Expr:
    value = Col(0, column.name, column.expr.type, column.expr.nullable)
    return Call(op, (value,), "boolean", False)
