"""Products and sums of stored sums in types that keep every digit."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from matcher.model.expr import Call, Expr, Lit
from matcher.model.message import Sql, Word
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.types import FLOATS, INTEGRAL, MAX_DECIMAL, decimal_parts, decimal_type
from matcher.model.values import NEGATED_DIGITS
from matcher.rules.attempt import Refused, ViewAttempt, cast_to, spell

# Digits of a number of rows: 10^15 of them are not met.
_ROW_DIGITS: Final = 15
_LONG_DIGITS: Final = 20
_ZERO: Final = Lit(Decimal(0), "decimal(1,0)")
_NARROW: Final = 1 << 31
# So many digits behind the point are kept whatever is in front of it.
_KEPT_SCALE: Final = 6


def product(factor: Expr, part: Expr, *, of_count: bool, ansi: bool) -> Expr | None:
    """`factor * part` without a lost digit; None if no type holds it.

    Args:
        factor: what all rows behind a stored row share.
        part: their number, or their sum.
        of_count: it is their number.
        ansi: an overflow raises, so that a product must not overflow where the rows do not; else
            whole numbers wrap around, in a product just as in a sum.
    """
    if isinstance(factor, Lit) and factor.value == 1 and factor.type in INTEGRAL:
        return part
    if {factor.type, part.type} & FLOATS:
        sides = (cast_to(factor, "double"), cast_to(part, "double"))
        return Call("mul", sides, "double")
    a, b = decimal_parts(factor.type), decimal_parts(part.type)
    if a is None and b is None:
        if not ansi or (of_count and _is_narrow(factor)):
            return Call("mul", (cast_to(factor, "bigint"), part), "bigint")
        a = (_LONG_DIGITS, 0)
    a = a or (_LONG_DIGITS, 0)
    b = b or ((_ROW_DIGITS if of_count else _LONG_DIGITS), 0)
    precision, scale = a[0] + b[0] + 1, a[1] + b[1]
    if precision > MAX_DECIMAL and scale > 0:
        return None  # digits after the point would be cut off
    sides = (cast_to(factor, decimal_type(*a)), cast_to(part, decimal_type(*b)))
    return Call("mul", sides, decimal_type(precision, scale))


def _is_narrow(factor: Expr) -> bool:
    if isinstance(factor, Lit):
        return isinstance(factor.value, int) and abs(factor.value) < _NARROW
    return factor.type in INTEGRAL and factor.type != "bigint"


def same_type(parts: Sequence[Expr]) -> list[Expr] | None:
    """The parts in one type that loses nothing; None if there is none."""
    kinds = {p.type for p in parts}
    if len(kinds) == 1:
        return list(parts)
    if kinds & FLOATS:
        return [cast_to(p, "double") for p in parts]
    sizes = [decimal_parts(k) or (_LONG_DIGITS, 0) for k in kinds]
    whole, scale = max(p - s for p, s in sizes), max(s for _, s in sizes)
    if whole + scale > MAX_DECIMAL:
        return None
    return [cast_to(p, decimal_type(whole + scale, scale)) for p in parts]


def refuse_wrap(attempt: ViewAttempt, arg: Call) -> None:
    """The argument itself must not wrap around or lose digits where the sums would not.

    BIGINT wraps modulo 2^64 in the sums just as in the rows; a narrower type wraps earlier,
    silently without ANSI and as an error with it, and a rewrite may succeed where the original
    raises.

    Raises:
        Refused: MAY_OVERFLOW.
    """
    kind, parts = arg.type, decimal_parts(arg.type)
    narrow = kind in INTEGRAL and kind != "bigint"
    # no digit was cut off
    most = NEGATED_DIGITS if arg.op == "neg" else MAX_DECIMAL - 1
    exact_decimal = parts is not None and parts[0] <= most and parts[1] == _scale(arg)
    floats = kind in FLOATS and (arg.op == "neg" or attempt.options.approximate_floats)
    if kind == "bigint" or exact_decimal or floats or (narrow and attempt.options.ansi):
        return
    raise Refused(
        Reason(
            ReasonCode.MAY_OVERFLOW,
            "{arg} has type {type}, which can overflow or round where the sums do not",
            "store SUM({arg})",
            arg=Sql(spell(arg)),
            type=Word(kind.upper()),
        )
    )


def opposite(value: Expr) -> Expr | None:
    """`-value` in its type and with every digit; None where Spark has no operator that keeps them.

    Spark's unary minus rounds a decimal to 34 digits. A subtraction does not, but its type has one
    digit more in front of the point, for which one behind it may have to go.

    Args:
        value: Of any type of numbers.

    >>> from matcher.model.expr import Col
    >>> opposite(Col(0, "s", "decimal(22,2)")), opposite(Col(0, "s", "decimal(38,18)"))
    (neg($0.s), None)
    >>> opposite(Col(0, "s", "decimal(38,2)"))
    sub(Decimal('0'):decimal(1,0), $0.s)
    """
    parts = decimal_parts(value.type)
    if parts is None or parts[0] <= NEGATED_DIGITS:
        return Call("neg", (value,), value.type)
    kind = sum_of_sums_type(_ZERO.type, value.type)
    return None if kind is None else cast_to(Call("sub", (_ZERO, value), kind), value.type)


def _scale(arg: Call) -> int:
    """The digits after the point that the result needs for those of its operands."""
    scales = [p[1] for p in map(decimal_parts, (a.type for a in arg.args)) if p is not None]
    return sum(scales) if arg.op == "mul" else max(scales, default=0)


def sum_of_sums_type(left: str, right: str) -> str | None:
    """The type of `left ± right` of two stored sums; None where Spark would cut digits off behind
    the point (`DecimalType.adjustPrecisionScale`).

    >>> sum_of_sums_type("decimal(30,10)", "decimal(22,2)")
    'decimal(31,10)'
    >>> sum_of_sums_type("decimal(38,10)", "decimal(38,10)") is None
    True
    """
    a, b = decimal_parts(left), decimal_parts(right)
    if a is None or b is None:
        return left
    scale = max(a[1], b[1])
    precision = max(a[0] - a[1], b[0] - b[1]) + scale + 1
    if precision > MAX_DECIMAL and scale > _KEPT_SCALE:
        return None
    return decimal_type(precision, scale)
