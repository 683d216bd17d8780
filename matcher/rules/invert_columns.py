"""A column from a stored expression that can be taken back: `CAST(x AS BIGINT)`, `x + 1` in a type
that is wide enough.

What is asked for is x itself, from what the cache keeps of it. That is right where each value of x
gives another value, from which x comes back exactly, and where neither direction raises or wraps
around: casts of whole numbers and decimals that lose nothing, and sums and differences with a
constant that no value of x's type takes out of the type of the sum. NULL comes of NULL alone, and
gives NULL.

Not through FLOAT or DOUBLE, which round, and show -0.0 or 0.0; not through strings or times, whose
spelling and zone are settings; not `x + 1` in the type of x, which overflows for its greatest
value, and without ANSI wraps around to its least.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from matcher.model.expr import Call, Col, Expr, Lit, columns
from matcher.model.integer_bounds import expression_bounds, type_bounds
from matcher.model.types import INTEGRAL, decimal_parts
from matcher.rules.attempt import ViewAttempt, stored

_DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def invert_column(attempt: ViewAttempt, column: Col) -> Expr | None:
    """A column over what the view stores of it, or None where it does not come back.

    Args:
        attempt: The query and the view, with what the rules before have found.
        column: The column that is asked for.

    >>> from matcher.examples import answer
    >>> cache = "SELECT CAST(item AS BIGINT) + 1 AS next, SUM(qty) AS q FROM sales GROUP BY 1"
    >>> answer(cache, "SELECT SUM(qty) AS q FROM sales WHERE item = 3")
    SELECT SUM(`q`) AS `q` FROM c WHERE (CAST((`next` - 1L) AS INT) = 3)
    >>> answer(
    ...     "SELECT item + 1 AS next, SUM(qty) AS q FROM sales GROUP BY item + 1",
    ...     "SELECT SUM(qty) AS q FROM sales WHERE item = 3",
    ... )
    PREDICATE_COLUMN_MISSING: cache c lacks item (needed for filter)
    """
    wanted = attempt.context.canonical(column)
    for expr in invertible(attempt):
        found = attempt.available[expr]
        if found.expr.type != expr.type:
            continue
        back = _taken_back(expr, wanted, stored(found, expr))
        if back is not None and back.type == column.type:
            attempt.notes.used.add(found.name)
            return back
    return None


def invertible(attempt: ViewAttempt) -> Iterator[Expr]:
    """The stored expressions that a column may come back from.

    Args:
        attempt: The query and the view, with what the rules before have found.
    """
    for expr in attempt.available:
        if isinstance(expr, Call) and expr.op in ("cast", "add", "sub"):
            yield expr


def comes_back(expr: Expr, column: Expr) -> bool:
    """Whether a column comes back from the values of an expression.

    Args:
        expr: The expression.
        column: The column.
    """
    return _taken_back(expr, column, Col(0, "", expr.type)) is not None


def _taken_back(expr: Expr, column: Expr, value: Expr) -> Expr | None:
    """The column that `expr` is of, from the expression's value."""
    if expr == column:
        return value
    if not isinstance(expr, Call):
        return None
    if expr.op == "cast" and len(expr.args) == 1:
        (inner,) = expr.args
        if not _keeps_values(inner.type, expr.type):
            return None
        return _taken_back(inner, column, Call("cast", (value,), inner.type, value.nullable))
    if expr.op not in ("add", "sub") or not _stays_in_its_type(expr):
        return None
    left, right = expr.args
    if isinstance(right, Lit):
        opposite = "sub" if expr.op == "add" else "add"
        return _taken_back(left, column, Call(opposite, (value, right), expr.type, value.nullable))
    if isinstance(left, Lit):  # k + x = v, k - x = v
        args = (value, left) if expr.op == "add" else (left, value)
        return _taken_back(right, column, Call("sub", args, expr.type, value.nullable))
    return None


def _keeps_values(source: str, target: str) -> bool:
    """True of a cast between exact numbers that changes none."""
    if source in INTEGRAL and target in INTEGRAL:
        return INTEGRAL[source] <= INTEGRAL[target]
    wider = decimal_parts(target)
    if wider is None:
        return False
    digits, scale = decimal_parts(source) or (_DIGITS.get(source, 0), 0)
    return digits > 0 and scale <= wider[1] and digits - scale <= wider[0] - wider[1]


def _stays_in_its_type(expr: Expr) -> bool:
    """True if no value of its columns' types takes an expression of whole numbers out of its own,
    on the way or at its end."""
    whole = {column: type_bounds(column) for column in columns(expr) if column.type in INTEGRAL}
    return expression_bounds(expr, whole) is not None
