"""A three-valued evaluator of small expressions: the judge of the property tests.

It shares no code with the matcher. Floats order as in Spark: NaN equals itself and is above every
number, -0.0 equals 0.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from math import isnan
from typing import Any

from matcher.model.expr import Call, Col, Expr, Lit


def evaluate(expr: Expr, row: Mapping[str, Any]) -> Any:
    """The value of `expr` in `row` (column name → value, None for NULL)."""
    if isinstance(expr, Col):
        return row[expr.name]
    if isinstance(expr, Lit):
        return expr.value
    assert isinstance(expr, Call)
    if expr.op in ("and", "or"):
        return _connect(expr.op, [evaluate(a, row) for a in expr.args])
    if expr.op == "case":
        return _case(expr.args, row)
    values = [evaluate(a, row) for a in expr.args]
    if expr.op in _OF_NULLS:
        return _OF_NULLS[expr.op](values)
    if any(v is None for v in values):
        return None
    if expr.op == "like":
        return _like(*values, expr.params[0] if expr.params else "\\")
    if expr.op == "cast":
        return _cast(values[0], expr.type)
    return _STRICT[expr.op](*values)


def _same(values: list[Any]) -> bool:
    if None in values:
        return values[0] is values[1]
    return _rank(values[0]) == _rank(values[1])


def _rank(value: Any) -> tuple[bool, Any]:
    if isinstance(value, float) and isnan(value):
        return (True, 0)
    return (False, value)


def _connect(op: str, values: list[Any]) -> Any:
    decisive = op == "or"
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def _case(args: tuple[Expr, ...], row: Mapping[str, Any]) -> Any:
    for i in range(0, len(args) - 1, 2):
        if evaluate(args[i], row) is True:
            return evaluate(args[i + 1], row)
    return evaluate(args[-1], row) if len(args) % 2 else None


def _membership(values: list[Any]) -> Any:
    if values[0] is None:
        return None
    if _rank(values[0]) in [_rank(v) for v in values[1:] if v is not None]:
        return True
    return None if None in values[1:] else False


def _like(text: str, pattern: str, escape: str) -> bool:
    regex, position = "", 0
    while position < len(pattern):
        char = pattern[position]
        if char == escape:
            position += 1
            regex += re.escape(pattern[position])
        else:
            regex += {"%": "(?s:.*)", "_": "(?s:.)"}.get(char, re.escape(char))
        position += 1
    return re.fullmatch(regex, text) is not None


def _cast(value: Any, kind: str) -> Any:
    if kind.startswith("decimal"):
        return Decimal(value)
    return float(value) if kind == "double" else value


def _day(days: int) -> date:
    return date(1970, 1, 1) + timedelta(days=days)


def _trunc(days: int, unit: str) -> int:
    day = _day(days)
    first = day.replace(day=1, month=1 if unit == "YEAR" else day.month)
    return (first - date(1970, 1, 1)).days


def _make_date(year: int, month: int, day: int) -> int:
    return (date(year, month, day) - date(1970, 1, 1)).days


# Functions that make something of NULL.
_OF_NULLS = {
    "coalesce": lambda values: next((v for v in values if v is not None), None),
    "isnull": lambda values: values[0] is None,
    "isnotnull": lambda values: values[0] is not None,
    "isnan": lambda values: values[0] is not None and isnan(values[0]),
    "nseq": _same,
    "in": _membership,
}

_STRICT = {
    "make_date": _make_date,
    "not": lambda a: not a,
    "eq": lambda a, b: _rank(a) == _rank(b),
    "ne": lambda a, b: _rank(a) != _rank(b),
    "lt": lambda a, b: _rank(a) < _rank(b),
    "le": lambda a, b: _rank(a) <= _rank(b),
    "gt": lambda a, b: _rank(a) > _rank(b),
    "ge": lambda a, b: _rank(a) >= _rank(b),
    "add": lambda a, b: a + b,
    "startswith": lambda a, b: a.startswith(b),
    "endswith": lambda a, b: a.endswith(b),
    "contains": lambda a, b: b in a,
    "length": len,
    "substring": lambda a, start, length: a[start - 1 : start - 1 + length],
    "year": lambda days: _day(days).year,
    "month": lambda days: _day(days).month,
    "trunc": _trunc,
}
