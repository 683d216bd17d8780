"""Spark's types for the text door: type names as parsed, the common type of two operands, decimal
arithmetic.

Sources of the rules: Spark's `AnsiTypeCoercion`, `TypeCoercion` and `DecimalPrecision`. What they
do not cover is refused by
the caller (None), never guessed: a wrong type would change the rewritten query's columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from matcher.model.errors import NotSupported
from matcher.model.message import Number, Sql
from matcher.model.numbers import whole_number
from matcher.model.reasons import ReasonCode
from matcher.model.types import FLOATS, INTEGRAL, MAX_DECIMAL, decimal_parts, decimal_type

UNKNOWN: Final = "unknown"  # the type of a column whose source the text door does not take

_SIMPLE: Final = {
    "TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int", "BIGINT": "bigint",
    "FLOAT": "float", "DOUBLE": "double", "TEXT": "string", "VARCHAR": "string", "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp", "TIMESTAMPLTZ": "timestamp", "TIMESTAMPNTZ": "timestamp_ntz",
    "BOOLEAN": "boolean", "BINARY": "binary", "NULL": "void",
}  # fmt: skip
_RANK: Final = ("tinyint", "smallint", "int", "bigint", "float", "double")
_AS_DECIMAL: Final = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (20, 0)}
_TEMPORAL: Final = ("date", "timestamp_ntz", "timestamp")
_MIN_SCALE: Final = 6


@dataclass(frozen=True, slots=True)
class TextSettings:
    """The session settings that change what a text means. `utc` is True when the session's time
    zone is stated as UTC; `spark` is the minor of the Spark that will run the text, None where
    nobody says."""

    ansi: bool = True
    decimal_precision_loss: bool = True
    utc: bool = False
    spark: tuple[int, int] | None = None

    def is_since(self, major: int, minor: int) -> bool:
        """Whether the text is known to be run by this minor of Spark or a later one."""
        return self.spark is not None and self.spark >= (major, minor)


def type_of(node: exp.DataType) -> str:
    """The catalog spelling of a parsed type; CHAR keeps its length, because Spark pads it in
    comparisons.

    >>> import sqlglot
    >>> type_of(sqlglot.exp.DataType.build("decimal(12, 2)", dialect="spark"))
    'decimal(12,2)'
    >>> type_of(sqlglot.exp.DataType.build("map<int, array<struct<aB: date>>>", dialect="spark"))
    'map<int,array<struct<aB:date>>>'
    """
    name = str(node.this.value if hasattr(node.this, "value") else node.this).upper()
    if name in _SIMPLE and not (name == "INT" and node.expressions):
        return _SIMPLE[name]
    if name == "DECIMAL":
        return _decimal_of(node)
    if name == "STRUCT" and all(isinstance(f, exp.ColumnDef) and f.kind for f in node.expressions):
        return f"struct<{','.join(f'{f.name}:{type_of(f.kind)}' for f in node.expressions)}>"
    inner = node.expressions
    if name in ("ARRAY", "MAP") and inner and all(isinstance(t, exp.DataType) for t in inner):
        return f"{name.lower()}<{','.join(map(type_of, inner))}>"
    return node.sql("spark").lower()


def _decimal_of(node: exp.DataType) -> str:
    written = [p.name for p in node.expressions]
    sizes = [*map(whole_number, written), *(10, 0)[len(written) :]]
    match sizes:
        case [int(precision), int(scale)] if 0 <= scale <= precision <= MAX_DECIMAL:
            return decimal_type(precision, scale)
    raise NotSupported(
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "DECIMAL({written}): Spark has up to {digits} digits",
        written=Sql(", ".join(written)[:40]),
        digits=Number(MAX_DECIMAL),
    )


def is_numeric(type: str) -> bool:
    """True for integers, decimals and floats."""
    return type in INTEGRAL or type in FLOATS or decimal_parts(type) is not None


def as_decimal(type: str) -> tuple[int, int] | None:
    """(precision, scale) that holds every value of an integer or decimal type."""
    return _AS_DECIMAL.get(type) or decimal_parts(type)


def wider_decimal(a: tuple[int, int], b: tuple[int, int]) -> str:
    """The decimal type that both fit into; past 38 digits those behind the point are cut off first
    (`DecimalType.boundedPreferIntegralDigits`).

    >>> wider_decimal((38, 20), (20, 0))
    'decimal(38,18)'
    """
    whole, scale = max(a[0] - a[1], b[0] - b[1]), max(a[1], b[1])
    return decimal_type(whole + scale, min(scale, MAX_DECIMAL - whole))


def common_type(a: str, b: str, settings: TextSettings) -> str | None:
    """The type that Spark gives both operands of a comparison, CASE, COALESCE or IN; None where it
    refuses or we do not know.

    >>> common_type("decimal(12,2)", "int", TextSettings())
    'decimal(12,2)'
    """
    if a == b:
        return a
    if "void" in (a, b):
        return b if a == "void" else a
    if is_numeric(a) and is_numeric(b):
        return _common_number(a, b, settings)
    if a in _TEMPORAL and b in _TEMPORAL:
        return max(a, b, key=_TEMPORAL.index)
    if "string" in (a, b):
        return _with_string(b if a == "string" else a, settings)
    return None


def _common_number(a: str, b: str, settings: TextSettings) -> str | None:
    if decimal_parts(a) or decimal_parts(b):
        if a in FLOATS or b in FLOATS:
            return "double"
        left, right = as_decimal(a), as_decimal(b)
        return wider_decimal(left, right) if left and right else None
    wider = max(a, b, key=_RANK.index)
    return "double" if wider == "float" and settings.ansi else wider


def _with_string(other: str, settings: TextSettings) -> str | None:
    if other in _TEMPORAL or other == "boolean":
        return other
    if other in INTEGRAL:
        return "bigint" if settings.ansi else other
    if other in FLOATS:
        return "double" if settings.ansi else other
    return "double" if decimal_parts(other) else None


def arithmetic_type(
    op: str, a: tuple[int, int], b: tuple[int, int], settings: TextSettings
) -> str | None:
    """Result type of `add sub mul div mod` over two decimals.

    >>> arithmetic_type("mul", (12, 2), (12, 2), TextSettings())
    'decimal(25,4)'
    """
    (p1, s1), (p2, s2) = a, b
    if op in ("add", "sub"):
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif op == "mul":
        precision, scale = p1 + p2 + 1, s1 + s2
    elif op == "div":
        if not settings.decimal_precision_loss:
            return _division_without_loss(a, b)
        scale = max(_MIN_SCALE, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    elif op == "mod":
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    else:
        return None
    if not settings.decimal_precision_loss:
        return decimal_type(precision, scale)
    if precision <= MAX_DECIMAL:
        return decimal_type(precision, scale)
    digits = precision - scale
    return decimal_type(MAX_DECIMAL, max(MAX_DECIMAL - digits, min(scale, _MIN_SCALE)))


def _division_without_loss(a: tuple[int, int], b: tuple[int, int]) -> str:
    (p1, s1), (p2, s2) = a, b
    digits = min(MAX_DECIMAL, p1 - s1 + s2)
    fraction = min(MAX_DECIMAL, max(_MIN_SCALE, s1 + p2 + 1))
    over = digits + fraction - MAX_DECIMAL
    if over > 0:
        fraction -= over // 2 + 1
        digits = MAX_DECIMAL - fraction
    return decimal_type(digits + fraction, fraction)


def rounded_type(type: str, places: int) -> str | None:
    """Result type of ROUND(x, places), as Spark's `RoundBase` computes it."""
    parts = decimal_parts(type)
    if parts is None:
        return type if type in INTEGRAL or type in FLOATS else None
    precision, scale = parts
    least = precision - scale + 1
    if places < 0:
        return decimal_type(max(least, -places + 1), 0)
    kept = min(scale, places)
    return decimal_type(least + kept, kept)
