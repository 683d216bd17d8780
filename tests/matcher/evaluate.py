"""A three-valued evaluator of small expressions: the judge of the property tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matcher.expr import Call, Col, Expr, Lit


def evaluate(expr: Expr, row: Mapping[str, Any]) -> Any:
    """The value of `expr` in `row` (column name → value, None for NULL)."""
    if isinstance(expr, Col):
        return row[expr.name]
    if isinstance(expr, Lit):
        return expr.value
    assert isinstance(expr, Call)
    if expr.op in ("and", "or"):
        return _connect(expr.op, [evaluate(a, row) for a in expr.args])
    values = [evaluate(a, row) for a in expr.args]
    if expr.op == "isnull":
        return values[0] is None
    if expr.op == "isnotnull":
        return values[0] is not None
    if expr.op == "nseq":
        return values[0] == values[1]
    if expr.op == "in":
        return _membership(values)
    if any(v is None for v in values):
        return None
    return _STRICT[expr.op](*values)


def _connect(op: str, values: list[Any]) -> Any:
    decisive = op == "or"
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def _membership(values: list[Any]) -> Any:
    if values[0] is None:
        return None
    if values[0] in [v for v in values[1:] if v is not None]:
        return True
    return None if None in values[1:] else False


_STRICT = {
    "not": lambda a: not a,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "add": lambda a, b: a + b,
    "startswith": lambda a, b: a.startswith(b),
}
