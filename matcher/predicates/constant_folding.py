"""Constants worked out: a call over literals to the literal that Spark would compute.

Only what is certain without a session, and the same in Spark to the last digit: no overflow (under
ANSI it raises), no division by zero, letters outside of ASCII keep their case unfolded, dates stay
within the years 1 to 9999. Everything else stays as written (None).
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from math import isinf, isnan
from typing import Any, Final

from matcher.model.expr import FALSE, TRUE, Call, Expr, Lit
from matcher.model.operators import COMPARISONS, compared
from matcher.model.types import FLOATS, INTEGRAL
from matcher.model.values import EPOCH, EXACT, NEGATED_DIGITS, cast, fits, to_decimal
from matcher.predicates.domains import value_of
from matcher.predicates.like_patterns import matches
from matcher.predicates.raising import settles

NULL: Final = Lit(None, "boolean")


def fold(call: Call) -> Lit | None:
    """The value of a call whose arguments are all constants; None where it is not certain.

    >>> fold(Call("add", (Lit(1, "int"), Lit(2, "int")), "int"))
    3:int
    """
    args = call.args
    if call.op in _LOGIC:
        return _LOGIC[call.op](args)
    values = [a for a in args if isinstance(a, Lit)]
    if len(values) < len(args):
        return None
    if call.op in ("isnull", "isnotnull"):
        return _truth((values[0].value is None) == (call.op == "isnull"))
    if call.op in COMPARISONS or call.op == "nseq":
        return _compare(call.op, values[0], values[1])
    if call.op == "in":
        return _membership(values)
    if call.op in ("cast", "try_cast"):
        return cast(values[0], call.type)
    if call.op in ("add", "sub", "mul", "div", "mod", "neg"):
        return _arithmetic(call, values)
    if call.op not in _FUNCTIONS:
        return None
    if any(v.value is None for v in values):
        return Lit(None, call.type)
    if call.op == "like":
        found = matches(str(values[1].value), call.params, str(values[0].value))
        return None if found is None else _truth(found)
    return _function(call, [v.value for v in values])


def fold_all(expr: Expr) -> Expr:
    """`expr` with every call worked out whose value is certain, from the leaves up."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(fold_all(a) for a in expr.args)
    if any(new is not old for new, old in zip(args, expr.args, strict=True)):
        expr = Call(expr.op, args, expr.type, expr.nullable, expr.params)
    found = fold(expr)
    return expr if found is None else found


def _truth(value: bool) -> Lit:
    return TRUE if value else FALSE


# -- logic --------------------------------------------------------------------------------------


def _and(args: Sequence[Expr]) -> Lit | None:
    if settles(args, FALSE):
        return FALSE
    if not all(isinstance(a, Lit) for a in args):
        return None
    return NULL if any(a != TRUE for a in args) else TRUE


def _or(args: Sequence[Expr]) -> Lit | None:
    if settles(args, TRUE):
        return TRUE
    if not all(isinstance(a, Lit) for a in args):
        return None
    return NULL if any(a != FALSE for a in args) else FALSE


def _not(args: Sequence[Expr]) -> Lit | None:
    only = args[0]
    if not isinstance(only, Lit):
        return None
    return NULL if only.value is None else _truth(not only.value)


def _case(args: Sequence[Expr]) -> Lit | None:
    for i in range(len(args) // 2):
        condition, value = args[2 * i], args[2 * i + 1]
        if not isinstance(condition, Lit):
            return None
        if condition == TRUE:
            return value if isinstance(value, Lit) else None
    if len(args) % 2 == 0:
        return Lit(None, args[1].type)
    return args[-1] if isinstance(args[-1], Lit) else None


def _coalesce(args: Sequence[Expr]) -> Lit | None:
    for arg in args:
        if not isinstance(arg, Lit):
            return None
        if arg.value is not None:
            return arg
    return Lit(None, args[0].type)


_LOGIC: Final[dict[str, Callable[[Sequence[Expr]], Lit | None]]] = {
    "and": _and, "or": _or, "not": _not, "case": _case, "coalesce": _coalesce,
}  # fmt: skip


def _compare(op: str, left: Lit, right: Lit) -> Lit | None:
    if op == "nseq" and (left.value is None or right.value is None):
        return _truth(left.value is None and right.value is None)
    if left.value is None or right.value is None:
        return NULL
    a, b = value_of(left), value_of(right)
    if left.type != right.type or a is None or b is None:
        return None
    return _truth(compared(op, a, b))


def _membership(values: list[Lit]) -> Lit | None:
    found = [_compare("eq", values[0], v) for v in values[1:]]
    return None if None in found else _or([f for f in found if f is not None])


# -- numbers ------------------------------------------------------------------------------------


def _arithmetic(call: Call, values: list[Lit]) -> Lit | None:
    if any(v.value is None for v in values):
        return Lit(None, call.type)
    raw: list[Any] = [v.value for v in values]
    if call.type in INTEGRAL and all(isinstance(v, int) for v in raw):
        result = _whole(call.op, raw)
        return Lit(result, call.type) if result is not None and fits(result, call.type) else None
    if call.type in FLOATS and call.op == "neg" and isinstance(raw[0], float):
        return Lit(-raw[0], call.type)
    if call.type == "double" and all(isinstance(v, float) for v in raw):
        return _floating(call.op, raw)
    if all(isinstance(v, Decimal) for v in raw) and call.op in _DECIMAL:
        if call.op == "neg" and len(raw[0].as_tuple().digits) > NEGATED_DIGITS:
            return None
        return to_decimal(_DECIMAL[call.op](*raw), call.type)
    return None


def _whole(op: str, raw: list[int]) -> int | None:
    if op == "neg":
        return -raw[0]
    a, b = raw
    if op == "mod":  # the sign of the dividend
        return None if b == 0 else abs(a) % abs(b) * (1 if a >= 0 else -1)
    return {"add": a + b, "sub": a - b, "mul": a * b}.get(op)


def _floating(op: str, raw: list[float]) -> Lit | None:
    """IEEE 754 arithmetic is the same everywhere, as long as it stays with ordinary numbers."""
    a, b = raw
    if op not in ("add", "sub", "mul", "div") or (op == "div" and b == 0.0):
        return None
    result = {"add": a + b, "sub": a - b, "mul": a * b}.get(op)
    result = a / b if result is None else result
    return None if isnan(result) or isinf(result) else Lit(result, "double")


_DECIMAL: Final[dict[str, Callable[..., Decimal]]] = {
    "add": EXACT.add, "sub": EXACT.subtract, "mul": EXACT.multiply, "neg": EXACT.minus,
}  # fmt: skip


# -- dates and texts ----------------------------------------------------------------------------


def shift_days(days: int, months: int, more_days: int) -> int | None:
    """A day moved by months (cut off at the month's end), then by days.

    >>> shift_days(30, 1, 0)  # 1970-01-31 and a month
    58
    """
    try:
        start = EPOCH + timedelta(days=days)
        year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        moved = date(year, month + 1, min(start.day, last)) + timedelta(days=more_days)
    except (ValueError, OverflowError):
        return None
    return (moved - EPOCH).days


def truncated(days: int, unit: str) -> int | None:
    """The first day of the year, quarter, month or week (Monday) that a day is in."""
    try:
        day = EPOCH + timedelta(days=days)
    except OverflowError:
        return None
    unit = unit.upper()
    if unit in ("YEAR", "YYYY", "YY"):
        first = day.replace(month=1, day=1)
    elif unit == "QUARTER":
        first = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    elif unit in ("MONTH", "MM", "MON"):
        first = day.replace(day=1)
    elif unit == "WEEK" and days - day.weekday() >= (date.min - EPOCH).days:
        return days - day.weekday()
    else:
        return None
    return (first - EPOCH).days


def _last_day(days: int) -> int | None:
    first = truncated(days, "MONTH")
    return None if first is None else shift_days(first, 1, -1)


def _day_part(name: str, days: int) -> int | None:
    try:
        day = EPOCH + timedelta(days=days)
    except OverflowError:
        return None
    return {
        "year": day.year, "quarter": (day.month + 2) // 3, "month": day.month, "day": day.day,
        "dayofweek": day.isoweekday() % 7 + 1, "weekday": day.weekday(),
        "dayofyear": day.timetuple().tm_yday, "weekofyear": day.isocalendar()[1],
    }[name]  # fmt: skip


def _substring(text: str, start: int, length: int | None = None) -> str | None:
    if start < 1 or (length is not None and length < 0):
        return None
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def _case_of(change: Callable[[str], str]) -> Callable[[str], str | None]:
    return lambda text: change(text) if text.isascii() else None


_DAY_PARTS: Final = frozenset(
    "year quarter month day dayofweek weekday dayofyear weekofyear".split()
)
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **{name: lambda days, name=name: _day_part(name, days) for name in _DAY_PARTS},
    "like": lambda *_: None,
    "date_add": lambda days, n: shift_days(days, 0, n),
    "date_sub": lambda days, n: shift_days(days, 0, -n),
    "add_months": lambda days, n: shift_days(days, n, 0),
    "datediff": lambda a, b: a - b,
    "unix_date": lambda days: days,
    "last_day": lambda days: _last_day(days),
    "trunc": truncated,
    "startswith": lambda text, part: text.startswith(part),
    "endswith": lambda text, part: text.endswith(part),
    "contains": lambda text, part: part in text,
    "upper": _case_of(str.upper),
    "lower": _case_of(str.lower),
    "length": len,
    "substring": _substring,
    "concat": lambda *parts: "".join(parts),
    "trim": lambda text: text.strip(" "),
    "ltrim": lambda text: text.lstrip(" "),
    "rtrim": lambda text: text.rstrip(" "),
    "replace": lambda text, old, new: text.replace(old, new) if old else None,
}
_NUMBERS_OF_DAYS: Final = frozenset(
    "date_add date_sub add_months datediff unix_date last_day".split()
)


def _function(call: Call, raw: list[Any]) -> Lit | None:
    name = call.op
    first = call.args[0].type
    if name in _DAY_PARTS or name in _NUMBERS_OF_DAYS or name == "trunc":
        if first != "date" or not all(type(v) is int for v in raw[:1]):
            return None
    elif any(a.type != "string" for a in call.args[:1]):
        return None
    result = _FUNCTIONS[name](*raw)
    if result is None:
        return None
    if isinstance(result, bool):
        return _truth(result)
    # days of no calendar may be further apart than an INT says
    return None if call.type == "int" and not fits(result, "int") else Lit(result, call.type)
