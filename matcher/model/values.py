"""What Spark makes of constants: whole numbers within their bounds, decimals rounded, casts.

A cast is worked out only where its value is the same with ANSI and without, whatever the session's
other settings: one that overflows or loses more than Spark's own rounding, a date text of an
unusual form, a moment without a stated time zone are left to Spark (None).
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import inf
from struct import pack, unpack
from typing import Final

from matcher.model.expr import Lit
from matcher.model.numbers import whole_number
from matcher.model.types import FLOATS, INTEGRAL, decimal_parts

EPOCH: Final = date(1970, 1, 1)
# Wide enough for sums and products of any two decimals, which are then rounded once.
EXACT: Final = Context(prec=100)
# Spark's unary minus rounds a longer decimal to these, as Scala's does; `0 - x` is exact.
NEGATED_DIGITS: Final = 34
_MICROS_OF_A_DAY: Final = 86_400_000_000
# up to here each whole number has a value of its own
_MOST_WHOLE: Final = {"float": 1 << 24, "double": 1 << 53}
_DATE: Final = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})\s*\Z", re.ASCII)
_TIMESTAMP: Final = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?\s*\Z",
    re.ASCII,
)
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,3})?\Z")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,38}(\.[0-9]{1,38})?\Z")
_INTEGER: Final = re.compile(r"\s*([+-]?\d+)\s*\Z", re.ASCII)


def fits(value: int, type: str) -> bool:
    """True if a whole number type holds the value."""
    bound = 1 << (INTEGRAL[type] - 1)
    return -bound <= value < bound


def single(value: float) -> float:
    """The FLOAT nearest to a number, as the double that it is: `0.1F` is 0.10000000149…"""
    try:
        return float(unpack("<f", pack("<f", value))[0])
    except OverflowError:
        return inf if value > 0 else -inf


def to_decimal(value: Decimal, type: str) -> Lit | None:
    """The number in a decimal type, rounded half up as Spark does; None where it does not fit.

    >>> to_decimal(Decimal("-0.04"), "decimal(3,1)")  # Spark's decimals have no -0
    Decimal('0.0'):decimal(3,1)
    """
    parts = decimal_parts(type)
    assert parts is not None
    precision, scale = parts
    try:
        rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
    except InvalidOperation:
        return None
    if rounded.copy_abs() >= Decimal(10) ** (precision - scale):
        return None
    return Lit(EXACT.plus(rounded), type)


def cast(lit: Lit, type: str, *, utc: bool = False) -> Lit | None:
    """The constant as a constant of another type; None where its value is not certain.

    Args:
        lit: The constant.
        type: The type that it is cast to.
        utc: Whether the session's time zone is known to be UTC.

    >>> cast(Lit(Decimal("0.1"), "decimal(1,1)"), "double"), cast(Lit(300, "int"), "tinyint")
    (0.1:double, None)
    """
    value, source = lit.value, lit.type
    if value is None or source == type:
        return Lit(value, type)
    if isinstance(value, str):
        return _from_string(value, type, utc)
    if isinstance(value, bool):
        return Lit(str(value).lower(), "string") if type == "string" else None
    if source in INTEGRAL and isinstance(value, int):
        return _from_integer(value, type)
    if isinstance(value, Decimal):
        return _from_decimal(value, type)
    if isinstance(value, float):  # a FLOAT is a DOUBLE as well, the other way loses digits
        return Lit(single(value), type) if (source, type) == ("float", "double") else None
    if isinstance(value, int):
        return _from_moment(value, source, type, utc)
    return None


def _from_integer(value: int, type: str) -> Lit | None:
    if type in INTEGRAL:
        return Lit(value, type) if fits(value, type) else None
    if type in FLOATS:
        return Lit(float(value), type) if abs(value) <= _MOST_WHOLE[type] else None
    if decimal_parts(type):
        return to_decimal(Decimal(value), type)
    return Lit(str(value), type) if type == "string" else None


def _from_decimal(value: Decimal, type: str) -> Lit | None:
    if decimal_parts(type):
        return to_decimal(value, type)
    if type == "double":  # the nearest one, to Java as to Python
        return Lit(float(EXACT.plus(value)), type)
    if type == "float":  # Python has no way from digits to a FLOAT but through a DOUBLE
        near = single(float(EXACT.plus(value)))
        if value != near:
            return None
        return Lit(near, type)
    if type in INTEGRAL and value == value.to_integral_value() and fits(int(value), type):
        return Lit(int(value), type)
    return None


def _from_moment(value: int, source: str, type: str, utc: bool) -> Lit | None:
    if source == "date" and (type == "timestamp_ntz" or (type == "timestamp" and utc)):
        return Lit(value * _MICROS_OF_A_DAY, type)
    if (source, type) == ("timestamp", "timestamp_ntz") and utc:
        return Lit(value, type)
    return None


# -- texts --------------------------------------------------------------------------------------


def _from_string(text: str, type: str, utc: bool) -> Lit | None:
    if type == "date":
        return _date(text)
    if type == "timestamp_ntz" or (type == "timestamp" and utc):
        return _timestamp(text, type)
    if type in FLOATS:
        return _floating(text, type)
    if decimal_parts(type):
        return to_decimal(EXACT.create_decimal(text), type) if _DECIMAL.match(text) else None
    found = _INTEGER.match(text) if type in INTEGRAL else None
    number = whole_number(found[1]) if found else None
    return None if number is None or not fits(number, type) else Lit(number, type)


def _date(text: str) -> Lit | None:
    found = _DATE.match(text)
    if found is None:
        return None
    try:
        return Lit((date(*map(int, found.groups())) - EPOCH).days, "date")
    except ValueError:
        return None


def _timestamp(text: str, type: str) -> Lit | None:
    found = _TIMESTAMP.match(text)
    if found is None:
        return None
    *fields, fraction = found.groups()
    try:
        moment = datetime(*(int(f or 0) for f in fields))  # type: ignore[arg-type]
    except ValueError:
        return None
    micros = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    return Lit(micros + int((fraction or "0").ljust(6, "0")), type)


def _floating(text: str, type: str) -> Lit | None:
    """None where Spark should decide.

    >>> _floating("-Infinity", "double").value, _floating("+-inf", "double")
    (-inf, None)
    """
    word = text.strip(" ").lower()
    sign = word[:1] in ("+", "-")
    if not (_NUMBER.match(word) or word[sign:] in ("inf", "infinity") or word == "nan"):
        return None
    value = float(word)
    if type == "double" or value != value or abs(value) in (0.0, inf):
        return Lit(value, type)
    return Lit(value, type) if _is_float(value, word) else None


def _is_float(value: float, word: str) -> bool:
    """True if the number is how Spark shows the FLOAT that it makes of the text: six digits are
    kept, and the way through DOUBLE rounds the same unless that is in the middle of two."""
    digits = word.lstrip("+-").split("e")[0].replace(".", "").strip("0")
    near = single(value)
    other = 2 * value - near  # the neighbour, if the number is in the middle
    decided = near == value or single(other) != other
    return len(digits) <= 6 and 1e-37 < abs(near) < inf and decided
