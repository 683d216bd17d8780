"""Casts that Spark inserts: operands in, typed expressions out, with constants worked out wherever
`matcher.predicates.constant_folding` is certain of them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from matcher.model.errors import NotSupported
from matcher.model.expr import TRUE, Call, Expr, Lit
from matcher.model.message import Sql, Word
from matcher.model.numbers import whole_number
from matcher.model.reasons import ReasonCode
from matcher.model.types import FLOATS, INTEGRAL, decimal_parts
from matcher.model.values import EXACT, cast, fits
from matcher.predicates.constant_folding import fold
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

_MOST_WRITTEN: Final = 39  # the 38 digits of a decimal and its point


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
            if value is not None and fits(value, kind):
                return Lit(value, kind)
    if len(text.lstrip("-0")) > _MOST_WRITTEN:
        raise _too_precise(text)
    number = Decimal(text)
    _, digits, exponent = number.as_tuple()
    scale = -int(exponent)
    precision = max(len(digits), scale, 1)
    if precision > 38:
        raise _too_precise(text)
    return Lit(EXACT.plus(number), f"decimal({precision},{scale})")  # Spark's decimals have no -0


def _too_precise(text: str) -> NotSupported:
    shown = text if len(text) <= 60 else f"{text[:40]}…"
    return unsupported(
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "{constant} has more than 38 digits",
        constant=Sql(shown),
    )


def cast_to(expr: Expr, type: str, settings: TextSettings, op: str = "cast") -> Expr:
    """`expr` as `type`: itself if it has that type, a constant if the value is certain, else a
    cast."""
    if expr.type == type:
        return expr
    if isinstance(expr, Lit):
        folded = cast(expr, type, utc=settings.utc)
        if folded is not None:
            return folded
    # NaN and the infinities are no decimals, and NULL also with ANSI
    lost = expr.type in FLOATS and decimal_parts(type) is not None
    nullable = expr.nullable or op == "try_cast" or not settings.ansi or lost
    return Call(op, (expr,), type, nullable)


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
    compared = Call(op, (left, right), "boolean", nullable)
    return fold(compared) or unwrap(op, left, right, settings) or compared


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
    folded = cast(lit, target, utc=settings.utc)
    if folded is not None and isinstance(lit.value, Decimal) and folded.value is not None:
        same = target == "double" or Decimal(str(folded.value)) == lit.value
        return folded if same else None
    return folded


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
    nullable = op in ("div", "mod") or left.nullable or right.nullable
    return _folded(Call(op, (left, right), wanted, nullable))


def _folded(call: Call) -> Expr:
    return fold(call) or call


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
    nullable = op in ("div", "mod") or a.nullable or b.nullable or not settings.ansi
    return _folded(Call(op, (a, b), result, nullable))


def minus(expr: Expr, settings: TextSettings) -> Expr:
    """Unary minus."""
    expr = _as_number(expr, settings)
    return _folded(Call("neg", (expr,), expr.type, expr.nullable))
