"""What is known of each operator, in one table: its negation, its mirror image, its NULLs.

Names are the canonical ones of `Call.op` (see `matcher.model.expr`). What follows from an
operator's name alone is asked here and nowhere else; tests/matcher/model/test_operators.py holds
each column of the table to an evaluator and to Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator or function.

    Args:
        name: As `Call.op` has it.
        negation: The operator that is TRUE where this one is FALSE, and NULL where this one is.
        flipped: The operator that says the same with its two arguments exchanged.
        signs: Of a comparison, where it is TRUE: -1, 0 or 1 as the first argument is less than the
            second, equal to it or more.
        strict: NULL where any argument is; where the result is not NULL, no argument was.
        null_for_null_only: Not NULL where no argument is; it may be an error.
    """

    name: str
    negation: str | None = None
    flipped: str | None = None
    signs: tuple[int, ...] = ()
    strict: bool = False
    null_for_null_only: bool = False

    @property
    def commutes(self) -> bool:
        """Whether the order of the arguments does not matter."""
        return self.flipped == self.name

    @property
    def needs_order(self) -> bool:
        """Whether the values compared must have an order, and not equality alone."""
        return len(self.signs) > 0 and self.name not in ("eq", "ne", "nseq")


def _comparison(name: str, negation: str, flipped: str, *signs: int) -> Operator:
    return Operator(name, negation, flipped, signs, strict=True, null_for_null_only=True)


def _named(names: str, *, strict: bool, null_for_null_only: bool) -> tuple[Operator, ...]:
    return tuple(
        Operator(name, strict=strict, null_for_null_only=null_for_null_only)
        for name in names.split()
    )


_ROWS: Final = (
    _comparison("eq", "ne", "eq", 0),
    _comparison("ne", "eq", "ne", -1, 1),
    _comparison("lt", "ge", "gt", -1),
    _comparison("le", "gt", "ge", -1, 0),
    _comparison("gt", "le", "lt", 1),
    _comparison("ge", "lt", "le", 0, 1),
    Operator("nseq", flipped="nseq", signs=(0,), null_for_null_only=True),
    Operator("isnull", "isnotnull", null_for_null_only=True),
    Operator("isnotnull", "isnull", null_for_null_only=True),
    Operator("and", flipped="and", null_for_null_only=True),
    Operator("or", flipped="or", null_for_null_only=True),
    Operator("not", strict=True, null_for_null_only=True),
    Operator("add", flipped="add", strict=True),
    Operator("mul", flipped="mul", strict=True),
    *_named(
        # `cmp` is the sign of a comparison, which no query has
        "cmp startswith endswith contains "
        "year quarter month day dayofweek weekday dayofyear weekofyear hour minute second "
        "last_day unix_date datediff "
        "upper lower trim length reverse concat md5 abs sign exp",
        strict=True,
        null_for_null_only=True,
    ),
    *_named(
        # unix_timestamp is not here: it does not look at the pattern where it is given a time
        "sub div idiv mod neg cast like rlike field "
        "ltrim rtrim substring replace crc32 ascii left right lpad rpad instr translate initcap "
        "repeat substring_index "
        "date_add date_sub add_months months_between next_day trunc date_trunc date_format "
        "to_timestamp_ltz to_timestamp_ntz from_unixtime "
        "sqrt round bround ceil floor ln log10 log2 power pmod",
        strict=True,
        null_for_null_only=False,
    ),
)

OPERATORS: Final = {row.name: row for row in _ROWS}

NEGATION: Final = {row.name: row.negation for row in _ROWS if row.negation is not None}
FLIPPED: Final = {row.name: row.flipped for row in _ROWS if row.flipped and row.signs}
COMMUTES: Final = frozenset(row.name for row in _ROWS if row.commutes)
STRICT: Final = frozenset(row.name for row in _ROWS if row.strict)
NULL_FOR_NULL_ONLY: Final = frozenset(row.name for row in _ROWS if row.null_for_null_only)
# `=` and its kind; `<=>` is none of them, for it is never NULL
COMPARISONS: Final = frozenset(row.name for row in _ROWS if row.signs and row.strict)
# the same and IN: never TRUE of a NULL
NULL_REJECTING: Final = COMPARISONS | {"in"}
# whatever tells whether values are equal, or which is less
COMPARES: Final = NULL_REJECTING | {"nseq"}
# what looks at a text's letters
TEXT_TESTS: Final = frozenset({"like", "startswith", "endswith", "contains"})
ORDER_COMPARISONS: Final = frozenset(row.name for row in _ROWS if row.needs_order)

# Aggregates that take no notice of a row in which their argument is NULL, unless a parameter says
# otherwise (`skips_nulls` looks at that). FIRST and LAST do, and so does what gathers rows.
SKIPS_NULLS: Final = frozenset(
    "sum count min max avg try_sum try_avg stddev_samp stddev_pop var_samp var_pop bit_and bit_or "
    "bit_xor collect_set approx_count_distinct".split()
)


def compared(op: str, left: Any, right: Any) -> bool:
    """Whether a comparison of two values that are not NULL, and have an order, is TRUE.

    Args:
        op: One of `COMPARISONS`, or `nseq`.
        left: The first value.
        right: The second.

    >>> compared("le", 1, 1), compared("ne", 1, 1)
    (True, False)
    """
    sign = -1 if left < right else 0 if left == right else 1
    return sign in OPERATORS[op].signs
