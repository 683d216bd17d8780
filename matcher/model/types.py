"""Spark's SQL types in catalog spelling, and the result types that aggregates have (sources:
Spark's `Sum`, `Average`,
`DecimalType.bounded`)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MAX_DECIMAL: Final = 38
INTEGRAL: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FLOATS: Final = frozenset({"float", "double"})
VARIANCES: Final = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)\Z")


@lru_cache(maxsize=1024)
def decimal_parts(type: str) -> tuple[int, int] | None:
    """(precision, scale) of a decimal type, else None.

    >>> decimal_parts("decimal(12,2)")
    (12, 2)
    """
    found = _DECIMAL.match(type)
    return (int(found[1]), int(found[2])) if found else None


def decimal_type(precision: int, scale: int) -> str:
    """The type with both parts cut off at 38, as `DecimalType.bounded` does."""
    return f"decimal({min(precision, MAX_DECIMAL)},{min(scale, MAX_DECIMAL)})"


@lru_cache(maxsize=1024)
def struct_fields(type: str) -> tuple[tuple[str, str], ...] | None:
    """Name and type of each field of a struct in catalog spelling; None for another type.

    >>> struct_fields("struct<a:int,b:struct<c:decimal(12,2),d:string>>")
    (('a', 'int'), ('b', 'struct<c:decimal(12,2),d:string>'))
    """
    if not (type.startswith("struct<") and type.endswith(">")):
        return None
    parts = split_types(type.removeprefix("struct<")[:-1])
    found = [re.fullmatch(r"([^:<>]+):(.+)", part) for part in parts]
    return None if None in found else tuple((m[1], m[2]) for m in found if m is not None)


def split_types(inner: str) -> list[str]:
    """What stands between the brackets of a type, at the commas that are in no others.

    >>> split_types("string,decimal(12,2)")
    ['string', 'decimal(12,2)']
    """
    parts, depth = [""], 0
    for letter in inner:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def sum_type(type: str) -> str | None:
    """Result type of SUM over `type`, None where Spark has none that we handle."""
    if type in INTEGRAL:
        return "bigint"
    if type in FLOATS:
        return "double"
    parts = decimal_parts(type)
    return decimal_type(parts[0] + 10, parts[1]) if parts else None


def avg_type(type: str) -> str | None:
    """Result type of AVG over `type`, None where Spark has none that we handle."""
    if type in INTEGRAL or type in FLOATS:
        return "double"
    parts = decimal_parts(type)
    return decimal_type(parts[0] + 4, parts[1] + 4) if parts else None


@lru_cache(maxsize=1024)
def has_exact_equality(type: str) -> bool:
    """True if equal values of the type are identical, so that one may stand for the other.

    Not so for floats (-0.0 = 0.0, all NaNs equal) and collated strings ('a' = 'A').
    """
    return type in INTEGRAL or type in _IDENTICAL or decimal_parts(type) is not None


_IDENTICAL: Final = frozenset({"string", "boolean", "date", "timestamp", "timestamp_ntz", "binary"})


@lru_cache(maxsize=1024)
def is_blurred(type: str) -> bool:
    """True for a type with values that are equal and not the same: -0.0 and 0.0 of FLOAT and
    DOUBLE, 'a' and 'A' of a string with a collation; and where a STRUCT, ARRAY or MAP holds such.

    >>> is_blurred("struct<a:int,b:array<double>>"), is_blurred("struct<double:int>")
    (True, False)
    """
    return holds_floats(type) or is_collated(type)


@lru_cache(maxsize=1024)
def is_collated(type: str) -> bool:
    """True for strings that compare by another collation than their bytes, and for what holds such:
    "string collate …" to Catalyst; the text door does not know the type of such a column."""
    return type == "unknown" or _COLLATED_WITHIN.search(type) is not None


@lru_cache(maxsize=1024)
def holds_floats(type: str) -> bool:
    """True for FLOAT and DOUBLE, and for what holds such.

    >>> holds_floats("array<struct<a:int,b:float>>"), holds_floats("struct<double:int>")
    (True, False)
    """
    return _FLOAT_WITHIN.search(type) is not None


# A field's name is followed by a colon, a type is not.
_FLOAT_WITHIN: Final = re.compile(r"(?:^|[<:,]\s*)(?:float|double)(?=[>,]|\Z)")
_COLLATED_WITHIN: Final = re.compile(r"(?:^|[<:,]\s*)string ")
