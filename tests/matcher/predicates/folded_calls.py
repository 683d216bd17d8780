"""Calls over edge values, for the test that holds the constant folder to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Context, Decimal
from itertools import product
from math import inf, nan
from typing import Any, Final

from matcher.model.expr import Call, Expr, Lit
from matcher.model.types import FLOATS, INTEGRAL, decimal_parts
from matcher.render.select import render_expr

_NINES: Final = "9" * 38
_WIDE: Final = Context(prec=80)
_MICROS: Final = 1_000_000
_DAY: Final = 86_400 * _MICROS
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31

DAYS: Final = tuple(
    (date.fromisoformat(text) - date(1970, 1, 1)).days
    for text in "0001-01-01 0001-01-31 1582-10-10 1899-12-31 1970-01-01 2023-12-31 2024-02-29 "
    "2024-12-30 9999-12-01 9999-12-31".split()
)
WORDS: Final = ("", " ", "abc", "ABC", " abc ", "b", "Äß", "a\U0001f600c", "%", "ab\ncd")
TEXTS: Final = (
    *WORDS,
    *("0 -0 +0 00 1 +1 -1 01 127 128 -128 255 2147483647 2147483648 -2147483648 9007199254740993 "
      "9223372036854775807 9223372036854775808 16777217 1. .5 -.5 0.5 -0.0 1.5 1.25 1.35 2.675 0.1 "
      "1e3 1E3 1e-3 1e-400 -1e-400 1e400 1e39 3.4028236e38 3.4028235e38 1.17549435e-38 1.4e-45 "
      "0.30000001192092896 1e 0x10 1d 1f 1L NaN nan -NaN +NaN Infinity -infinity +inf inf infinit "
      "true TRUE t yes false 0001-01-01 9999-12-31 0000-01-01 10000-01-01 2024-02-29 2023-02-29 "
      "2024-2-9 2024-02-29Z 20240229 2024-02 2024 1994-13-01 1_000").split(),
    "\uff11", "\uff12024-01-01",
    " 1 ", "\t1\n", "\x0b1\x0c", "\x1c1", "\u00a01", "\u20031", "1 1", " 1.5 ", "\t1.5", " NaN ",
    " 2024-02-29 ", "\n2024-02-29", "2024-02-29 1", "2024-02-29 12:34:56", "2024-02-29T12:34:56.7",
    "2024-02-29 12:34:56.123456", "2024-02-29 12:34:56.1234567", "2024-02-29 1:2:3", "2024-02-29 ",
    "2024-02-29 24:00:00", "2024-02-29 12:34", "2024-02-29 12", "2024-02-29 12:34:56 ",
    "2024-02-29 12:34:56Z", "2024-02-29 12:34:56.", "2024-02-29T", _NINES, _NINES + "9",
    "0." + _NINES, "-0." + _NINES, "0." + "0" * 37 + "5", "0" * 40 + "1",
)  # fmt: skip


def _whole(kind: str) -> tuple[int, ...]:
    bound = 1 << (INTEGRAL[kind] - 1)
    return (-bound, -1, 0, 7, bound - 1, 1, -7, -bound + 1)


_DOUBLES: Final = (nan, -inf, 0.0, -0.0, 1.5, inf, 0.1, 5e-324, 1.7976931348623157e308, 1e16)
_SINGLES: Final = (nan, -inf, 0.0, -0.0, 1.5, inf, 0.1, 16777216.0, 3.4028234663852886e38)
_DECIMALS: Final = {
    "decimal(1,0)": "0 9 -9",
    "decimal(3,1)": "0.0 12.5 -0.1 99.9 3.0 0.1",
    "decimal(10,2)": "0.00 1.25 -0.05 99999999.99 -1.35 100.00",
    "decimal(17,16)": "0.1000000000000001 9.9999999999999999 -0.3000000119209290",
    "decimal(38,0)": f"0 -1 {_NINES} 9007199254740993 -{_NINES} 9223372036854775808",
    "decimal(38,18)": f"0 -0.5 1E-18 {_NINES[:20]}.{_NINES[:18]} 2.675 0.1 "
    "0.300000011920928955 16777217 179769313486231570.5",
    "decimal(38,38)": f"0 1E-38 -1E-38 0.{_NINES} 0.5 0.1",
}


def _decimals(kind: str) -> tuple[Decimal, ...]:
    parts = decimal_parts(kind)
    assert parts is not None
    unit = Decimal(1).scaleb(-parts[1])
    return tuple(Decimal(text).quantize(unit, context=_WIDE) for text in _DECIMALS[kind].split())


_RAW: Final[dict[str, tuple[Any, ...]]] = {
    **{kind: _whole(kind) for kind in INTEGRAL},
    "bigint": (*_whole("bigint"), 1 << 24, (1 << 24) + 1, 1 << 53, (1 << 53) + 1, 128, 1 << 31),
    **{kind: _decimals(kind) for kind in _DECIMALS},
    "double": _DOUBLES,
    "float": _SINGLES,
    "boolean": (False, True),
    "date": DAYS,
    "timestamp": (_FIRST_DAY * _DAY, -1, 0, 1, _LAST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1),
    "timestamp_ntz": (_FIRST_DAY * _DAY, -1, 0, 1, (_LAST_DAY + 1) * _DAY - 1),
    "binary": (b"", b"a", b"\xff"),
    "string": WORDS,
}
TYPES: Final = tuple(_RAW)
_NUMERIC: Final = (*INTEGRAL, *FLOATS, *_DECIMALS)
_TEMPORAL: Final = ("date", "timestamp", "timestamp_ntz")


def literals(kind: str, most: int = 99) -> list[Lit]:
    """The first edge values of a type, and NULL."""
    return [*(Lit(value, kind) for value in _RAW[kind][:most]), Lit(None, kind)]


def calls(kinds: dict[tuple[str, str, str], str]) -> Iterator[Call]:
    """Every call that is tested.

    Args:
        kinds: The type that Spark gives an operator over two types of decimals.
    """
    yield from _logic()
    for kind in TYPES:
        yield from _comparisons(kind)
    yield from arithmetic(kinds)
    yield from casts()
    yield from _of_dates()
    yield from _of_texts()


def decimal_pairs() -> Iterator[tuple[str, str, str]]:
    """Each operator over each two types of decimals."""
    yield from product(("add", "sub", "mul", "div", "mod"), _DECIMALS, _DECIMALS)


def casts() -> Iterator[Call]:
    """Each edge value as each type; Spark knows what the folder refuses."""
    texts = [Lit(text, "string") for text in dict.fromkeys(TEXTS)]
    for source, target in product(TYPES, TYPES):
        values = [*texts, Lit(None, "string")] if source == "string" else literals(source)
        for value in values:
            if value.value is not None or _may_be_cast(source, target):
                yield Call("cast", (value,), target)
    for value in (*texts, Lit(None, "string")):
        yield Call("try_cast", (value,), "int")


def _may_be_cast(source: str, target: str) -> bool:
    """Of types that Spark casts into each other; there are more."""
    return (
        (source == "string" != target != "binary")
        or target == "string"
        or any(source in kinds and target in kinds for kinds in (_NUMERIC, _TEMPORAL))
    )


def _logic() -> Iterator[Call]:
    truths = literals("boolean")
    for a, b in product(truths, truths):
        yield Call("and", (a, b), "boolean")
        yield Call("or", (a, b), "boolean")
        for c in literals("int", 2):
            yield Call("case", (a, Lit(1, "int"), b, c), "int")
            yield Call("case", (a, c, b, Lit(2, "int"), c), "int")
            yield Call("coalesce", (Lit(None, "int"), c, Lit(3, "int")), "int")
    for a in truths:
        yield Call("not", (a,), "boolean")
    for kind in TYPES:
        for value in literals(kind):
            yield Call("isnull", (value,), "boolean")
            yield Call("isnotnull", (value,), "boolean")
            yield Call("coalesce", (Lit(None, kind), value), kind)


def _comparisons(kind: str) -> Iterator[Call]:
    values = literals(kind, 5)
    for a, b in product(values, values):
        for op in ("eq", "ne", "lt", "le", "gt", "ge", "nseq"):
            yield Call(op, (a, b), "boolean")
        yield Call("in", (a, b, values[0]), "boolean")


def arithmetic(kinds: dict[tuple[str, str, str], str]) -> Iterator[Call]:
    """Every operator over edge values of each type, and casts of what comes out.

    Args:
        kinds: As in `calls`.
    """
    for kind in (*INTEGRAL, *FLOATS):
        for a, b in product(literals(kind, 8), literals(kind, 8)):
            for op in ("add", "sub", "mul", "mod", *(["div"] if kind == "double" else [])):
                yield Call(op, (a, b), kind)
    for (op, left, right), kind in kinds.items():
        for a, b in product(literals(left, 4), literals(right, 4)):
            yield Call(op, (a, b), kind)
    for kind in _NUMERIC:
        for a in literals(kind):
            yield Call("neg", (a,), kind)
    # what a call gives goes into the next one: a product of a decimal with 0 has no sign
    for op, kind in product(("mul", "neg"), ("decimal(1,0)", "decimal(3,1)", "decimal(38,38)")):
        wanted = kind if op == "neg" else kinds[op, kind, kind]
        for a in literals(kind):
            args = (a,) if op == "neg" else (a, Lit(_RAW[kind][0] * 0, kind))
            for target in ("double", "float", "decimal(38,18)"):
                yield Call("cast", (Call(op, args, wanted),), target)


_NUMBERS: Final = ("tinyint", "smallint", "int")


def _of_dates() -> Iterator[Call]:
    days = literals("date")
    counts = [Lit(n, kind) for kind in _NUMBERS for n in (-1, 31, None)] + [
        Lit(n, "int") for n in (-(1 << 31), -120_000, 24_000, (1 << 31) - 1)
    ]
    for day in days:
        for name in "year quarter month day dayofweek weekday dayofyear weekofyear".split():
            yield Call(name, (day,), "int")
        yield Call("last_day", (day,), "date")
        yield Call("unix_date", (day,), "int")
        for count in counts:
            for name in ("date_add", "date_sub"):
                yield Call(name, (day, count), "date")
            if count.type == "int":
                yield Call("add_months", (day, count), "date")
        for other in days:
            yield Call("datediff", (day, other), "int")
        for unit in (*"YEAR yyyy YY Quarter MONTH mm MON WEEK DAY HOUR x".split(), "", None):
            yield Call("trunc", (day, Lit(unit, "string")), "date")


def _of_texts() -> Iterator[Call]:
    words = literals("string")
    places = [Lit(n, "int") for n in (-1, 0, 1, 2, (1 << 31) - 1, None)]
    for word in words:
        for name in ("upper", "lower", "trim", "ltrim", "rtrim"):
            yield Call(name, (word,), "string")
        yield Call("length", (word,), "int")
        for start in places:
            yield Call("substring", (word, start), "string")
            for length in places:
                yield Call("substring", (word, start, length), "string")
    for a, b in product(words, words):
        for name in ("startswith", "endswith", "contains"):
            yield Call(name, (a, b), "boolean")
        yield Call("concat", (a, b, a), "string")
        yield Call("replace", (a, b, Lit("xy", "string")), "string")
        yield Call("replace", (Lit("abcabc", "string"), a, b), "string")
    patterns = (
        "",
        "%",
        "_",
        "a%",
        "%c",
        "a_c",
        "a\\_c",
        "a\\",
        "%b%",
        "a__cd",
        "a%d",
        "[a]bc",
        None,
    )
    for word, pattern in product(words, patterns):
        yield Call("like", (word, Lit(pattern, "string")), "boolean")
        yield Call("like", (word, Lit(pattern, "string")), "boolean", True, ("b",))


def text(call: Expr) -> str:
    """The call as SQL.

    Raises:
        NotRenderable: It has no spelling.
    """
    return render_expr(call, lambda col: col.name)
