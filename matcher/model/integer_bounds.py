"""Bounds of whole numbers, and which sums of them DOUBLE holds exactly.

Spark adds an AVG of whole numbers up in DOUBLE. That is exact, in whatever order, while the
absolute values of all rows add up to 2^53 at most: then AVG is what SUM / COUNT gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from matcher.model.expr import Call, Col, Expr, Lit
from matcher.model.types import INTEGRAL

Bounds = tuple[int, int]
"""The least and the greatest value."""

EXACT_IN_DOUBLE: Final = 1 << 53


def type_bounds(column: Col) -> Bounds:
    """The bounds of a column of whole numbers by its type alone.

    Args:
        column: The column.

    >>> type_bounds(Col(0, "x", "tinyint"))
    (-128, 127)
    """
    limit = 1 << (INTEGRAL[column.type] - 1)
    return (-limit, limit - 1)


def is_exact(expr: Expr, known: Mapping[Col, Bounds], rows: int) -> bool:
    """Whether all sums of an expression's values stay within what DOUBLE holds exactly.

    Args:
        expr: The expression, of whole numbers.
        known: The bounds of its columns.
        rows: How many values there are at most.
    """
    bounds = expression_bounds(expr, known)
    return bounds is not None and max(map(abs, bounds)) * rows <= EXACT_IN_DOUBLE


def expression_bounds(expr: Expr, known: Mapping[Col, Bounds]) -> Bounds | None:
    """Bounds of an integer expression by interval arithmetic, None where nothing is known.

    >>> x, y = Col(0, "x", "bigint"), Col(0, "y", "bigint")
    >>> expression_bounds(Call("mul", (x, y), "bigint"), {x: (-2, 3), y: (0, 10)})
    (-20, 30)
    """
    if isinstance(expr, Col):
        return known.get(expr)
    if isinstance(expr, Lit):
        whole = isinstance(expr.value, int) and not isinstance(expr.value, bool)
        return (expr.value, expr.value) if whole else None  # type: ignore[return-value]
    if not isinstance(expr, Call) or expr.type not in INTEGRAL:
        return None
    parts = [expression_bounds(a, known) for a in expr.args]
    if any(p is None for p in parts):
        return None
    result = _combine(expr, [p for p in parts if p is not None])
    limit = 1 << (INTEGRAL[expr.type] - 1)
    # Past its type's range the value wraps around or is an error, so its bounds say nothing.
    return result if result and -limit <= result[0] and result[1] < limit else None


def _combine(call: Call, parts: list[Bounds]) -> Bounds | None:
    if call.op == "neg":
        return (-parts[0][1], -parts[0][0])
    if call.op == "cast" and call.args[0].type in INTEGRAL:
        return parts[0]
    if call.op == "coalesce":
        return (min(p[0] for p in parts), max(p[1] for p in parts))
    if len(parts) != 2:
        return None
    (a, b), (c, d) = parts
    if call.op == "add":
        return (a + c, b + d)
    if call.op == "sub":
        return (a - d, b - c)
    if call.op == "mul":
        products = (a * c, a * d, b * c, b * d)
        return (min(products), max(products))
    return None
