"""Filters on a column that is not stored, asked of a stored function of it instead.

`d >= '1994-01-01' AND d < '1995-01-01'` over a cache that keeps `year(d)` is `year(d) = 1994`:
exact if and only if the set of values is a union of whole pre-images. A range that starts in the
middle of a year is none, and stays a refusal.
"""

from __future__ import annotations

from matcher.model.expr import FALSE, Call, Col, Expr
from matcher.model.types import FLOATS
from matcher.predicates.canonical import holds
from matcher.predicates.domains import NOT_NULL, Domain, Interval, literal_of
from matcher.predicates.monotone import chain, image, preimage
from matcher.predicates.truth import domain_of
from matcher.rules.attempt import ViewAttempt


def filter_by_image(attempt: ViewAttempt, predicate: Expr) -> Expr | None:
    """The filter over a stored column that keeps exactly the rows of `predicate`, if there is
    one.

    Args:
        attempt: The query and the view, with what the rules before have found.
        predicate: The filter that is asked for.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT YEAR(day) AS y, COUNT(*) AS n FROM sales GROUP BY YEAR(day)",
    ...     "SELECT COUNT(*) AS n FROM sales WHERE day >= DATE'1994-01-01' AND day < "
    ...     "DATE'1995-01-01'",
    ... )
    SELECT COALESCE(SUM(`n`), 0L) AS `n` FROM c WHERE (`y` >= 1994) AND (`y` < 1995)
    >>> answer(
    ...     "SELECT YEAR(day) AS y, COUNT(*) AS n FROM sales GROUP BY YEAR(day)",
    ...     "SELECT COUNT(*) AS n FROM sales WHERE day >= DATE'1994-06-01'",
    ... )
    PREDICATE_COLUMN_MISSING: cache c lacks day (needed for filter)
    """
    known = domain_of(holds(attempt.context.canonical(predicate)))
    if known is None:
        return None
    operand, wanted = known
    for expr, column in attempt.available.items():
        values = _through(expr, operand, wanted)
        if values is None:
            continue
        found = as_predicate(Col(0, column.name, expr.type, column.expr.nullable), values)
        if found is not None:
            attempt.notes.used.add(column.name)
            return found
    return None


def is_redundant(attempt: ViewAttempt, predicate: Expr) -> bool:
    """True for `x IS NOT NULL` where another conjunct of the query rejects NULL already: Spark
    adds such filters, on columns that need not be stored."""
    if not isinstance(predicate, Call) or predicate.op != "isnotnull":
        return False
    context = attempt.query.without_null_tests()
    return context.never_null(context.canonical(predicate.args[0]))


def _through(expr: Expr, operand: Expr, wanted: Domain) -> Domain | None:
    """The values of `expr` where `operand` is in `wanted`, if they are so nowhere else."""
    functions = []
    for function in chain(expr):
        functions.append(function)
        if function.argument == operand:
            break
    else:
        return None
    values = wanted
    for function in reversed(functions):
        values = image(function, values)
    back: Domain | None = values
    for function in functions:
        back = None if back is None else preimage(function, back)
    exact = back is not None and wanted.contains(back) and back.contains(wanted)
    return values if exact else None


def as_predicate(operand: Expr, values: Domain) -> Expr | None:
    """A predicate that is true of exactly these values; None where a constant has no spelling."""
    if operand.type in FLOATS:
        return None
    if values.intervals == NOT_NULL.intervals:
        return None if values.null else Call("isnotnull", (operand,), "boolean", False)
    parts: list[Expr] = []
    if values.null:
        parts.append(Call("isnull", (operand,), "boolean", False))
    parts += [_interval(operand, item) for item in values.intervals]
    if not parts:
        return FALSE
    return parts[0] if len(parts) == 1 else Call("or", tuple(parts), "boolean")


def _interval(operand: Expr, item: Interval) -> Expr:
    if item.low is not None and item.low == item.high:
        ends = [("eq", item.low)]
    else:
        ends = [("ge" if item.low_closed else "gt", item.low)] if item.low is not None else []
        if item.high is not None:
            ends.append(("le" if item.high_closed else "lt", item.high))
    parts = []
    for op, value in ends:
        lit = literal_of(value, operand.type)
        assert lit is not None  # NaN alone has none, and floats were refused
        parts.append(Call(op, (operand, lit), "boolean"))
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), "boolean")
