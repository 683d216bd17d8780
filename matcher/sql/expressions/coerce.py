"""Casts that Spark inserts, and constants worked out: operands in, typed and folded expressions
out.

A constant is folded only where its value is certain without a session: a cast that could fail, a
date text of an unusual form, a timestamp without a stated time zone stay as written, as casts that
Spark evaluates.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import inf
from typing import Final

from matcher.model.errors import NotSupported
from matcher.model.expr import FALSE, TRUE, Call, Expr, Lit
from matcher.model.message import Sql, Word
from matcher.model.operators import compared
from matcher.model.reasons import ReasonCode
from matcher.model.types import FLOATS, INTEGRAL, decimal_parts
from matcher.predicates.domains import single
from matcher.sql.expressions.scope import unsupported
from matcher.sql.expressions.types import (
    UNKNOWN,
    TextSettings,
    arithmetic_type,
    as_decimal,
    common_type,
    is_numeric,
)
from matcher.sql.expressions.unwrap import unwrap
from matcher.sql.numbers import whole_number

_EPOCH: Final = date(1970, 1, 1)
_EXACT: Final = Context(prec=100)
_DATE: Final = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})\s*\Z", re.ASCII)
_TIMESTAMP: Final = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?\s*\Z",
    re.ASCII,
)
_MOST_WRITTEN: Final = 39  # the 38 digits of a decimal and its point
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,3})?\Z")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,38}(\.[0-9]{1,38})?\Z")
_INTEGER: Final = re.compile(r"\s*([+-]?\d+)\s*\Z", re.ASCII)


def number_literal(text: str) -> Lit:
    """The constant that a number without suffix is in Spark: INT, BIGINT, DECIMAL, or DOUBLE with
    an exponent.

    >>> number_literal("1.50")
    Decimal('1.50'):decimal(3,2)
    """
    if "e" in text.lower():
        try:
            return Lit(float(text), "double")
        except ValueError as error:  # 1E is a number to the parser
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION, "{number} is no number", number=Sql(text[:40])
            ) from error
    if "." not in text:
        value = whole_number(text)
        for kind in ("int", "bigint"):
            if value is not None and _fits(value, kind):
                return Lit(value, kind)
    if len(text.lstrip("-0")) > _MOST_WRITTEN:
        raise _too_precise(text)
    number = Decimal(text)
    _, digits, exponent = number.as_tuple()
    scale = -int(exponent)
    precision = max(len(digits), scale, 1)
    if precision > 38:
        raise _too_precise(text)
    return Lit(number, f"decimal({precision},{scale})")


def _too_precise(text: str) -> NotSupported:
    shown = text if len(text) <= 60 else f"{text[:40]}…"
    return unsupported(
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "{constant} has more than 38 digits",
        constant=Sql(shown),
    )


def _fits(value: int, kind: str) -> bool:
    bound = 1 << (INTEGRAL[kind] - 1)
    return -bound <= value < bound


def cast_to(expr: Expr, type: str, settings: TextSettings, op: str = "cast") -> Expr:
    """`expr` as `type`: itself if it has that type, a constant if the value is certain, else a
    cast."""
    if expr.type == type:
        return expr
    if isinstance(expr, Lit):
        folded = fold_cast(expr, type, settings)
        if folded is not None:
            return folded
    # NaN and the infinities are no decimals, and NULL also with ANSI
    lost = expr.type in FLOATS and decimal_parts(type) is not None
    nullable = expr.nullable or op == "try_cast" or not settings.ansi or lost
    return Call(op, (expr,), type, nullable)


def fold_cast(lit: Lit, type: str, settings: TextSettings) -> Lit | None:
    """The constant as a constant of another type, or None where Spark should decide."""
    value, source = lit.value, lit.type
    if value is None:
        return Lit(None, type)
    if isinstance(value, str):
        return _from_string(value, type, settings)
    if isinstance(value, bool):
        return Lit(str(value).lower(), "string") if type == "string" else None
    if source in INTEGRAL and isinstance(value, int):
        return _from_integer(value, type)
    if isinstance(value, Decimal):
        return _from_decimal(value, type)
    if source == "date" and isinstance(value, int) and type in ("timestamp", "timestamp_ntz"):
        known = type == "timestamp_ntz" or settings.utc
        return Lit(value * 86_400_000_000, type) if known else None
    return None


def _from_integer(value: int, type: str) -> Lit | None:
    if type in INTEGRAL:
        return Lit(value, type) if _fits(value, type) else None
    if type == "double":
        return Lit(float(value), type) if abs(value) <= 1 << 53 else None
    parts = decimal_parts(type)
    if parts:
        return _to_decimal(Decimal(value), parts, type)
    return Lit(str(value), "string") if type == "string" else None


def _from_decimal(value: Decimal, type: str) -> Lit | None:
    parts = decimal_parts(type)
    if parts:
        return _to_decimal(value, parts, type)
    if type == "double":
        return Lit(float(value), type)
    if type in INTEGRAL and value == value.to_integral_value() and _fits(int(value), type):
        return Lit(int(value), type)
    return None


def _to_decimal(value: Decimal, parts: tuple[int, int], type: str) -> Lit | None:
    precision, scale = parts
    try:
        rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:
        return None
    rounded = _EXACT.plus(rounded)  # a decimal has no -0
    return Lit(rounded, type) if rounded.copy_abs() < Decimal(10) ** (precision - scale) else None


def _from_string(text: str, type: str, settings: TextSettings) -> Lit | None:
    if type == "date":
        found = _DATE.match(text)
        if found is None:
            return None
        try:
            return Lit((date(*map(int, found.groups())) - _EPOCH).days, "date")
        except ValueError:
            return None
    if type == "timestamp_ntz" or (type == "timestamp" and settings.utc):
        return _timestamp(text, type)
    if type in FLOATS:
        return _floating(text, type)
    parts = decimal_parts(type)
    if parts and _DECIMAL.match(text):
        return _to_decimal(_EXACT.create_decimal(text), parts, type)
    found = _INTEGER.match(text) if type in INTEGRAL else None
    number = whole_number(found[1]) if found else None
    return None if number is None or not _fits(number, type) else Lit(number, type)


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


# -- comparisons --------------------------------------------------------------------------------


def compare(op: str, left: Expr, right: Expr, settings: TextSettings) -> Expr:
    """`eq ne lt le gt ge nseq` with Spark's casts.

    A constant is written in the other side's type where its value is representable there, which is
    what Spark's UnwrapCastInBinaryComparison ends in.

    Raises:
        NotSupported: the two types cannot be compared, or we do not know how.
    """
    left, right = align([left, right], settings, f"comparison {op}")
    if op == "nseq" and left == right:
        return TRUE
    nullable = op != "nseq" and (left.nullable or right.nullable)
    if isinstance(left, Lit) and isinstance(right, Lit):
        folded = _compare_literals(op, left, right)
        if folded is not None:
            return folded
    unwrapped = unwrap(op, left, right, settings)
    return unwrapped or Call(op, (left, right), "boolean", nullable)


def refuse_mixed_strings(operands: Sequence[Expr], what: str, settings: TextSettings) -> None:
    """Raise where strings stand beside values of other types, of which Spark makes strings without
    ANSI: '01' is not 1 then, though `x = '01'` is x = 1.

    Raises:
        NotSupported: they do.
    """
    kinds = {operand.type for operand in operands} - {"void"}
    if not settings.ansi and "string" in kinds and len(kinds) > 1:
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{what} of strings and other types without ANSI",
            what=Word(what),
        )


def align(
    operands: list[Expr], settings: TextSettings, what: str, *, listed: bool = False
) -> list[Expr]:
    """The operands in one type: that of the one that is no constant where the constants fit it,
    else the common type.

    Args:
        operands: two, or a value and the list that it is looked for in.
        settings: the session's.
        what: names the operation in a refusal.
        listed: True for a list.

    Raises:
        NotSupported: they have no common type that is known here.
    """
    for operand in operands:
        refuse_char(operand)
    wanted = _common(operands, settings, listed)
    typed = {o.type for o in operands if not isinstance(o, Lit)}
    target = next(iter(typed), "")
    fits = len(typed) == 1 and not _is_rounded(target, wanted)
    if fits and (len(operands) == 2 or _is_kept(operands, wanted)):
        fitted = [o if not isinstance(o, Lit) else _fit(o, target, settings) for o in operands]
        if all(f is not None for f in fitted):
            return [f for f in fitted if f is not None]
    if wanted is None:
        kinds = ", ".join(dict.fromkeys(o.type for o in operands[1:]))
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{what} of {operand} with {kinds}",
            what=Word(what),
            operand=Word(operands[0].type),
            kinds=Word(kinds),
        )
    return [cast_to(o, wanted, settings) for o in operands]


def _common(operands: list[Expr], settings: TextSettings, listed: bool) -> str | None:
    """The common type; in a list an integer constant counts with all digits of its type."""
    first, *others = operands
    wanted: str | None = first.type if listed else _literal_type(first, others[0].type)
    for operand in others:
        if wanted is None or UNKNOWN in (wanted, operand.type):
            return None
        kind = operand.type if listed else _literal_type(operand, wanted)
        wanted = common_type(wanted, kind, settings)
    return wanted


def _is_rounded(type: str, wanted: str | None) -> bool:
    """True if a decimal loses digits behind the point in the common type: 5.3 is
    `CAST(5 AS DECIMAL(38,0))` to Spark."""
    own, common = decimal_parts(type), decimal_parts(wanted or "")
    return own is not None and common is not None and common[1] < own[1]


def _is_kept(operands: list[Expr], wanted: str | None) -> bool:
    """True if a list's common type tells the values of its column apart as their own type does:
    one constant of a list may have them all compared as DOUBLE."""
    return wanted not in FLOATS or {o.type for o in operands if is_numeric(o.type)} <= {wanted}


def _literal_type(operand: Expr, other: str) -> str:
    """An integer constant next to a decimal has just the digits it needs."""
    if isinstance(operand, Lit) and operand.type in INTEGRAL and decimal_parts(other):
        return f"decimal({len(str(abs(int(operand.value or 0))))},0)"
    return operand.type


def _fit(lit: Lit, target: str, settings: TextSettings) -> Lit | None:
    """The constant in the column's type if that loses nothing and is what Spark compares by."""
    if lit.type == target:
        return lit
    if lit.value is None:
        return Lit(None, target)
    if target in FLOATS or decimal_parts(target) or target in INTEGRAL:
        if lit.type in FLOATS and target != lit.type:
            return None
        if lit.type == "string" and target not in INTEGRAL:
            return None  # Spark compares both as DOUBLE
        if target == "float":
            return None
    elif lit.type != "string" or target not in ("date", "timestamp", "timestamp_ntz"):
        return None
    folded = fold_cast(lit, target, settings)
    if folded is not None and isinstance(lit.value, Decimal) and folded.value is not None:
        same = target == "double" or Decimal(str(folded.value)) == lit.value
        return folded if same else None
    return folded


def _compare_literals(op: str, left: Lit, right: Lit) -> Lit | None:
    if op == "nseq" and (left.value is None or right.value is None):
        return TRUE if left.value is None and right.value is None else FALSE
    if left.value is None or right.value is None:
        return Lit(None, "boolean")
    a, b = left.value, right.value
    if isinstance(a, float) or isinstance(b, float) or type(a) is not type(b):
        return None
    return TRUE if compared(op, a, b) else FALSE


def refuse_char(expr: Expr) -> None:
    """CHAR(n) columns compare padded, which is not modelled here."""
    if expr.type.startswith("char("):
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{type} column in an expression",
            type=Word(expr.type),
        )


# -- arithmetic ---------------------------------------------------------------------------------


def arithmetic(op: str, left: Expr, right: Expr, settings: TextSettings) -> Expr:
    """`add sub mul div mod idiv` over numbers, with Spark's casts and result type.

    Raises:
        NotSupported: an operand is no number.
    """
    left, right = (_as_number(side, settings) for side in (left, right))
    if op == "idiv":
        return _whole_division(left, right, settings)
    if decimal_parts(left.type) or decimal_parts(right.type):
        if not FLOATS & {left.type, right.type}:
            return _decimal_arithmetic(op, left, right, settings)
        wanted: str | None = "double"
    elif op == "div":
        wanted = "double"
    else:
        wanted = common_type(left.type, right.type, settings)
    assert wanted is not None  # numbers have a common type
    left, right = cast_to(left, wanted, settings), cast_to(right, wanted, settings)
    if isinstance(left, Lit) and isinstance(right, Lit) and wanted in INTEGRAL:
        folded = _fold_integers(op, left, right, wanted)
        if folded is not None:
            return folded
    nullable = op in ("div", "mod") or left.nullable or right.nullable
    return Call(op, (left, right), wanted, nullable)


def _whole_division(left: Expr, right: Expr, settings: TextSettings) -> Expr:
    if FLOATS & {left.type, right.type}:
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{type} DIV {other}",
            type=Word(left.type),
            other=Word(right.type),
        )
    sides = [cast_to(s, "bigint", settings) for s in (left, right)]
    if decimal_parts(left.type) or decimal_parts(right.type):
        kinds = [as_decimal(_literal_type(*p)) for p in ((left, right.type), (right, left.type))]
        sides = [
            cast_to(side, f"decimal({kind[0]},{kind[1]})", settings)
            for side, kind in zip((left, right), kinds, strict=True)
            if kind is not None
        ]
    return Call("idiv", tuple(sides), "bigint", True)


def _as_number(expr: Expr, settings: TextSettings) -> Expr:
    if is_numeric(expr.type):
        return expr
    if expr.type == "void":
        return Lit(None, "int")
    raise unsupported(
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "arithmetic on {type}",
        type=Word(expr.type),
    )


def _decimal_arithmetic(op: str, left: Expr, right: Expr, settings: TextSettings) -> Expr:
    sides = []
    for side, other in ((left, right), (right, left)):
        parts = as_decimal(_literal_type(side, other.type))
        assert parts is not None  # FLOAT and DOUBLE are done already
        sides.append((cast_to(side, f"decimal({parts[0]},{parts[1]})", settings), parts))
    (a, a_parts), (b, b_parts) = sides
    result = arithmetic_type(op, a_parts, b_parts, settings)
    assert result is not None  # of the five operators
    if isinstance(a, Lit) and isinstance(b, Lit) and op in ("add", "sub", "mul"):
        x, y = a.value, b.value
        parts = decimal_parts(result)
        if isinstance(x, Decimal) and isinstance(y, Decimal) and parts:
            value = {"add": _EXACT.add, "sub": _EXACT.subtract, "mul": _EXACT.multiply}[op](x, y)
            folded = _to_decimal(value, parts, result)
            if folded is not None:
                return folded
    nullable = op in ("div", "mod") or a.nullable or b.nullable or not settings.ansi
    return Call(op, (a, b), result, nullable)


def _fold_integers(op: str, left: Lit, right: Lit, type: str) -> Lit | None:
    a, b = left.value, right.value
    if a is None or b is None:
        return Lit(None, type)
    assert isinstance(a, int) and isinstance(b, int)
    if op == "mod":
        return None if b == 0 else Lit(abs(a) % abs(b) * (1 if a >= 0 else -1), type)
    value = {"add": a + b, "sub": a - b, "mul": a * b}.get(op)
    return Lit(value, type) if value is not None and _fits(value, type) else None


def minus(expr: Expr, settings: TextSettings) -> Expr:
    """Unary minus."""
    expr = _as_number(expr, settings)
    if isinstance(expr, Lit):
        value = expr.value
        if isinstance(value, Decimal | float):
            return Lit(-value, expr.type)
        if isinstance(value, int) and _fits(-value, expr.type):
            return Lit(-value, expr.type)
    return Call("neg", (expr,), expr.type, expr.nullable)


# -- dates --------------------------------------------------------------------------------------


def shift_date(days: int, months: int, more_days: int) -> Lit | None:
    """A DATE constant moved by months (the day cut off at the month's end), then by days."""
    try:
        start = _EPOCH + timedelta(days=days)
        index = start.year * 12 + start.month - 1 + months
        year, month = divmod(index, 12)
        last = calendar.monthrange(year, month + 1)[1]
        moved = date(year, month + 1, min(start.day, last)) + timedelta(days=more_days)
    except (ValueError, OverflowError):
        return None
    return Lit((moved - _EPOCH).days, "date")
