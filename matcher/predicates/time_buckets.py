"""Calendar functions: what each is a function of, and which follow from which.

`month(d)`, `trunc(d, 'MM')` and `date_format(d, 'yyyy-MM')` depend on the calendar day of d alone,
and have one value in each calendar month. So each of them can be computed from any other day of the
same month: from a stored `trunc(d, 'QUARTER')` it cannot, from a stored `trunc(d, 'MM')` it can.
`TimeFunction.unit` is the widest bucket in which a function has one value; buckets nest as NESTS
says. ISO weeks nest in nothing: the week of 1998-12-28 lies in two months and two years.

Sources: Spark's `DateTimeUtils.truncDate`, `truncTimestamp` (units of a week and more go through
the calendar day in the session's zone, smaller ones through `ZonedDateTime.truncatedTo`), and
`DateTimeFormatterHelper` for the letters of a pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from matcher.model.expr import Call, Expr, Lit
from matcher.model.ir import StoredColumn
from matcher.predicates.time_zones import fixed_offset, keeps_days

NESTS: Final[dict[str, frozenset[str]]] = {
    "MINUTE": frozenset({"MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}),
    "HOUR": frozenset({"HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}),
    "DAY": frozenset({"DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}),
    "WEEK": frozenset({"WEEK"}),
    "MONTH": frozenset({"MONTH", "QUARTER", "YEAR"}),
    "QUARTER": frozenset({"QUARTER", "YEAR"}),
    "YEAR": frozenset({"YEAR"}),
}
WITHIN_A_DAY: Final = frozenset({"MINUTE", "HOUR"})
_FIELDS: Final = {
    "year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "last_day": "MONTH", "day": "DAY",
    "weekofyear": "WEEK", "dayofweek": "DAY", "weekday": "DAY", "dayofyear": "DAY",
    "hour": "HOUR", "minute": "MINUTE",
}  # fmt: skip
_UNITS: Final = {
    "YEAR": "YEAR", "YYYY": "YEAR", "YY": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH",
    "MON": "MONTH", "MM": "MONTH", "WEEK": "WEEK", "DAY": "DAY", "DD": "DAY", "HOUR": "HOUR",
    "MINUTE": "MINUTE",
}  # fmt: skip
_LETTERS: Final = {
    "G": "YEAR", "y": "YEAR", "Q": "QUARTER", "q": "QUARTER", "M": "MONTH", "L": "MONTH",
    "d": "DAY", "D": "DAY", "E": "DAY", "F": "DAY",
}  # fmt: skip
_ORDER: Final = ("YEAR", "QUARTER", "MONTH", "DAY")
_QUOTES: Final = frozenset("'[]{}#")
TIME_OPS: Final = frozenset(
    {*_FIELDS, "trunc", "date_trunc", "date_format", "cast", "isnull", "isnotnull",
     "lt", "le", "gt", "ge"}
)  # fmt: skip
DAY_MICROS: Final = 86_400_000_000
_HOUR_MICROS: Final = 3_600_000_000
_EPOCH: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class TimeFunction:
    """`expr` is a function of the time `of`, with one value in each bucket of `unit`."""

    of: Expr
    unit: str
    expr: Call


@dataclass(frozen=True, slots=True)
class Bucket:
    """A day (`date`), and a time if one is stored (`moment`), in the same bucket of `unit` as the
    time in question, by these stored `columns`; `year` is a stored year number."""

    unit: str
    date: Expr
    columns: tuple[StoredColumn, ...]
    moment: Expr | None = None
    year: Expr | None = None


def standard_unit(text: str) -> str:
    """The one spelling of a unit of `trunc` and `date_trunc`; as it is where Spark has none.

    >>> standard_unit("mm")
    'MONTH'
    """
    return _UNITS.get(text.upper(), text)


def time_of(expr: Expr, zone: str) -> Expr:
    """What `expr` has its calendar day from, conversions between DATE and times taken off.

    The day of CAST(d AS TIMESTAMP) is d only where the zone skips no day, and that of a
    TIMESTAMP_NTZ is kept only where the zone skips no minute at all.
    """
    while isinstance(expr, Call) and expr.op == "cast":
        inner = expr.args[0]
        pair = (inner.type, expr.type)
        unchanged = pair in _SAME_DAY
        unchanged = unchanged or (pair == ("date", "timestamp") and keeps_days(zone))
        at_once = pair == ("timestamp_ntz", "timestamp") and fixed_offset(zone) is not None
        if not unchanged and not at_once:
            return expr
        expr = inner
    return expr


_SAME_DAY: Final = frozenset(
    {
        ("timestamp", "date"),
        ("timestamp_ntz", "date"),
        ("date", "timestamp_ntz"),
        ("timestamp", "timestamp_ntz"),
    }
)


def read_time_function(expr: Expr, zone: str) -> TimeFunction | None:
    """`expr` as a function of a time's calendar day (or hour, or minute), or None."""
    if not isinstance(expr, Call):
        return None
    unit, argument = _unit_and_argument(expr)
    if unit is None or argument.type not in ("date", "timestamp", "timestamp_ntz"):
        return None
    return TimeFunction(time_of(argument, zone), unit, expr)


def _unit_and_argument(call: Call) -> tuple[str | None, Expr]:
    op, args = call.op, call.args
    if op in _FIELDS:
        return _FIELDS[op], args[0]
    if op == "cast" and call.type == "date":
        return "DAY", args[0]
    if op == "trunc":
        unit = _text(args[1])
        # shorter units than a week give NULL
        return (unit if unit in ("WEEK", *_ORDER[:3]) else None), args[0]
    if op == "date_trunc":
        unit = _text(args[0])
        return (unit if unit in NESTS else None), args[1]
    if op == "date_format":
        return _pattern_unit(args[1]), args[0]
    return None, call


def _text(expr: Expr) -> str | None:
    if isinstance(expr, Lit) and isinstance(expr.value, str):
        return standard_unit(expr.value)
    return None


def _pattern_unit(pattern: Expr) -> str | None:
    """The widest bucket in which a date pattern prints one text."""
    if not isinstance(pattern, Lit) or not isinstance(pattern.value, str):
        return None
    letters = {c for c in pattern.value if c.isalpha()}
    if not letters or not letters <= _LETTERS.keys() or _QUOTES & set(pattern.value):
        return None
    units = {_LETTERS[c] for c in letters}
    return next(unit for unit in reversed(_ORDER) if unit in units)


def starts_bucket(day: int, unit: str) -> bool:
    """True if the day number is the first of a bucket.

    >>> starts_bucket(0, "YEAR"), starts_bucket(1, "MONTH"), starts_bucket(4, "WEEK")
    (True, False, True)
    """
    try:
        found = _EPOCH + timedelta(days=day)
    except OverflowError:
        return False
    if unit == "WEEK":
        return found.weekday() == 0
    if unit in ("MONTH", "QUARTER", "YEAR"):
        months = {"MONTH": range(1, 13), "QUARTER": (1, 4, 7, 10), "YEAR": (1,)}[unit]
        return found.day == 1 and found.month in months
    return unit == "DAY" or unit in WITHIN_A_DAY


def year_of(day: int) -> int:
    """The year of a day number that `starts_bucket` has accepted."""
    return (_EPOCH + timedelta(days=day)).year


def local_micros(instant: int, zone: str) -> int | None:
    """Local time of an instant, None where that takes a time zone database."""
    offset = fixed_offset(zone)
    return None if offset is None else instant + offset * 1_000_000


def first_moment(micros: int, unit: str) -> bool:
    """True if the local time is the very first moment of a bucket."""
    if unit in WITHIN_A_DAY:
        return micros % (_HOUR_MICROS if unit == "HOUR" else _HOUR_MICROS // 60) == 0
    return micros % DAY_MICROS == 0 and starts_bucket(micros // DAY_MICROS, unit)
