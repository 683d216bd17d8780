"""Functions that keep the order of their argument: sets of values through them, both ways.

`year(d) = 1994` and `d BETWEEN '1994-01-01' AND '1994-12-31'` are the same condition: the second is
the *preimage* of the first, exactly. So a predicate over such a function is read as one over its
argument, and a range of the argument that is made of whole years can be asked of a stored
`year(d)`.

A function is here only if it is total (no error, NULL for NULL alone), never falls where its
argument rises, and needs no session: a cast between TIMESTAMP and DATE needs the time zone, and
`x + 1` may overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from math import inf
from struct import pack, unpack
from typing import Final

from matcher.model.expr import Call, Expr, Lit
from matcher.model.types import INTEGRAL, decimal_parts
from matcher.model.values import EPOCH, single
from matcher.predicates.constant_folding import shift_days, truncated
from matcher.predicates.domains import NAN, Domain, Interval, Value, normal, prefix

_FIRST: Final = (date(1, 1, 1) - EPOCH).days
_LAST: Final = (date(9999, 12, 31) - EPOCH).days
_DAY: Final = 86_400_000_000
_EXACT_IN_DOUBLE: Final = 2.0**53


@dataclass(frozen=True, slots=True)
class Monotone:
    """One function over `argument`.

    `up` is its value at a point (None: not known there). `at_least` gives, for a value v, the
    interval of arguments whose image is ≥ v, `above` that of those > v; None where that is not
    known.
    """

    argument: Expr
    up: Callable[[Value], Value]
    at_least: Callable[[Value], Interval | None]
    above: Callable[[Value], Interval | None]


def monotone(expr: Expr) -> Monotone | None:
    """The order-keeping function that `expr` applies to one argument, if it is one."""
    if not isinstance(expr, Call) or not expr.args or isinstance(expr.args[0], Lit):
        return None
    argument = expr.args[0]
    if expr.op == "cast" and len(expr.args) == 1:
        return _widening(argument, expr.type)
    if expr.op == "year" and argument.type == "date":
        return Monotone(argument, _year, _from_year, lambda v: _from_year(v + 1))
    if expr.op == "unix_date" and argument.type == "date":
        return _scaled(argument, 1)
    if expr.op == "trunc" and argument.type == "date" and isinstance(expr.args[1], Lit):
        return _truncation(argument, str(expr.args[1].value))
    if expr.op == "substring" and len(expr.args) == 3 and argument.type == "string":
        start, length = expr.args[1:]
        if isinstance(start, Lit) and start.value == 1 and isinstance(length, Lit):
            return _cut(argument, length.value) if isinstance(length.value, int) else None
    return None


def preimage(function: Monotone, values: Domain) -> Domain | None:
    """The arguments that the function takes into `values`; None where an end is not known."""
    found = []
    for item in values.intervals:
        low, high = Interval(), Interval()
        if item.low is not None:
            from_low = (function.at_least if item.low_closed else function.above)(item.low)
            if from_low is None:
                return None
            low = from_low
        if item.high is not None:
            beyond = (function.above if item.high_closed else function.at_least)(item.high)
            if beyond is None:
                return None
            high = Interval(None, False, beyond.low, not beyond.low_closed)
            if beyond.low is None:  # nothing lies below
                continue
            if beyond.is_empty:  # nothing lies beyond
                high = Interval()
        if low.is_empty:
            continue
        found.append(Interval(low.low, low.low_closed, high.high, high.high_closed))
    return normal(found, values.null)


def image(function: Monotone, values: Domain) -> Domain:
    """A set that holds what the function makes of `values` (exact at closed ends)."""
    found = []
    for item in values.intervals:
        low = None if item.low is None else function.up(item.low)
        high = None if item.high is None else function.up(item.high)
        closed = high is not None and (item.high_closed or not _first_of(function, item.high, high))
        found.append(Interval(low, low is not None, high, closed))
    return normal(found, values.null)


def _first_of(function: Monotone, argument: Value, value: Value) -> bool:
    """True if no smaller argument has this value."""
    start = function.at_least(value)
    return start is not None and start.low_closed and start.low == argument


def chain(expr: Expr) -> list[Monotone]:
    """The order-keeping functions from `expr` inwards, outermost first."""
    found: list[Monotone] = []
    step = monotone(expr)
    while step is not None:
        found.append(step)
        step = monotone(step.argument)
    return found


_NONE: Final = Interval(0, False, 0, False)


def _year(days: Value) -> Value:
    if not _FIRST <= days <= _LAST:
        return None
    return date.fromordinal(days + EPOCH.toordinal()).year


def _from_year(year: Value) -> Interval | None:
    if not 1 <= year <= 9999:
        return None
    return Interval((date(year, 1, 1) - EPOCH).days, True)


def _truncation(argument: Expr, unit: str) -> Monotone | None:
    if truncated(0, unit) is None:
        return None
    months = {"Y": 12, "Q": 3, "M": 1}.get(unit[0].upper(), 0)

    def up(days: Value) -> Value:
        return truncated(days, unit)

    def at_least(days: Value) -> Interval | None:
        return Interval(days, True) if truncated(days, unit) == days else above(days)

    def above(days: Value) -> Interval | None:
        first = truncated(days, unit)
        following = None if first is None else shift_days(first, months, 0 if months else 7)
        return None if following is None else Interval(following, True)

    return Monotone(argument, up, at_least, above)


def _scaled(argument: Expr, factor: int, divisor: int = 1) -> Monotone:
    """Whole numbers times `factor`, or divided by `divisor` and rounded down."""

    def up(value: Value) -> Value:
        return value * factor // divisor

    def at_least(value: Value) -> Interval | None:
        return Interval(-(-value * divisor // factor), True)

    def above(value: Value) -> Interval | None:
        return at_least(value + 1)

    return Monotone(argument, up, at_least, above)


def _widening(argument: Expr, target: str) -> Monotone | None:
    """Casts that lose nothing, and those of NTZ timestamps to their day."""
    source = argument.type
    if source in INTEGRAL:
        if target in INTEGRAL:
            return _scaled(argument, 1) if INTEGRAL[target] >= INTEGRAL[source] else None
        if target == "double":
            return _as_double(argument, inf if INTEGRAL[source] <= 32 else _EXACT_IN_DOUBLE)
        parts = decimal_parts(target)
        digits = len(str(1 << (INTEGRAL[source] - 1)))
        return (
            _scaled(argument, 10 ** parts[1]) if parts and parts[0] - parts[1] >= digits else None
        )
    if (source, target) == ("date", "timestamp_ntz"):
        return _scaled(argument, _DAY)
    if (source, target) == ("timestamp_ntz", "date"):
        return _scaled(argument, 1, _DAY)
    old, new = decimal_parts(source), decimal_parts(target)
    if old and new and new[1] >= old[1] and new[0] - new[1] >= old[0] - old[1]:
        return _scaled(argument, 10 ** (new[1] - old[1]))
    if (source, target) == ("float", "double"):
        return Monotone(argument, lambda v: v, _least_float, _float_above)
    return None


def _as_double(argument: Expr, bound: float) -> Monotone:
    """Whole numbers as DOUBLE, which holds each of them up to `bound`."""

    def at_least(value: Value) -> Interval | None:
        if value is NAN or value == float("inf"):
            return _NONE
        if value == float("-inf"):
            return Interval()
        return Interval(-int(-value // 1), True) if abs(value) < bound else None

    def above(value: Value) -> Interval | None:
        if value is NAN or value == float("inf"):
            return _NONE
        if value == float("-inf"):
            return Interval()
        return Interval(int(value // 1) + 1, True) if abs(value) < bound else None

    return Monotone(argument, float, at_least, above)


def _least_float(value: Value) -> Interval:
    """From the smallest FLOAT that is no less than a DOUBLE."""
    if value is NAN:
        return Interval(NAN, True)
    near = single(value)
    return Interval(near if near >= value else _next_float(near), True)


def _float_above(value: Value) -> Interval:
    if value is NAN:
        return _NONE
    near = single(value)
    if near == inf:
        return Interval(inf, value < inf)
    return Interval(near if near > value else _next_float(near), True)


def _next_float(value: float) -> float:
    """The FLOAT after `value`."""
    if value == 0.0:
        return float(unpack("<f", pack("<I", 1))[0])
    bits = unpack("<i", pack("<f", value))[0]
    return float(unpack("<f", pack("<i", bits + (1 if value > 0 else -1)))[0])


def _cut(argument: Expr, length: int) -> Monotone | None:
    """The first `length` characters."""
    if length < 1:
        return None

    def at_least(value: Value) -> Interval | None:
        return Interval(value, True) if len(value) <= length else None

    def above(value: Value) -> Interval | None:
        if len(value) < length:
            return Interval(value, False)
        if len(value) > length:
            return None
        beyond = prefix(value)
        return _NONE if beyond.high is None else Interval(beyond.high, True)

    return Monotone(argument, lambda v: v[:length], at_least, above)
