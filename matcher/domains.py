"""Sets of values that a predicate allows for one operand: unions of intervals over an ordered
type, and whether NULL passes.

`domain_of` reads `x < 5`, `x IN (1, 2)`, `x IS NULL`, `x LIKE 'ab%'` (as `startswith`), and ORs
and ANDs of such over one
operand, into a `Domain`; containment of predicates is then containment of sets (Goldstein and
Larson's range subsumption,
extended from one interval to many). Only conditions of a WHERE clause are meant, where NULL counts
as false.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import isnan
from typing import Any, Final

from matcher.expr import Call, Expr, Lit
from matcher.types import FLOATS, INTEGRAL, decimal_parts

Value = Any  # int, str, Decimal, float: one kind a domain, ordered as Spark orders the type


@dataclass(frozen=True, slots=True)
class Interval:
    """Values from `low` to `high`; None is unbounded."""

    low: Value = None
    low_closed: bool = False
    high: Value = None
    high_closed: bool = False

    @property
    def is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        if self.low == self.high:
            return not (self.low_closed and self.high_closed)
        return bool(self.low > self.high)

    def contains(self, other: Interval) -> bool:
        return not _starts_before(other, self) and not _ends_after(other, self)


def _starts_before(a: Interval, b: Interval) -> bool:
    """True if `a` holds a value below all of `b`."""
    if b.low is None:
        return False
    if a.low is None or a.low < b.low:
        return True
    return bool(a.low == b.low and a.low_closed and not b.low_closed)


def _ends_after(a: Interval, b: Interval) -> bool:
    if b.high is None:
        return False
    if a.high is None or a.high > b.high:
        return True
    return bool(a.high == b.high and a.high_closed and not b.high_closed)


def _intersect(a: Interval, b: Interval) -> Interval:
    low = b if _starts_before(a, b) else a
    high = b if _ends_after(a, b) else a
    return Interval(low.low, low.low_closed, high.high, high.high_closed)


@dataclass(frozen=True, slots=True)
class Domain:
    """Disjoint intervals in ascending order, and whether NULL is allowed."""

    intervals: tuple[Interval, ...]
    null: bool = False

    def contains(self, other: Domain) -> bool:
        """True if every value of `other` is one of this domain's."""
        if other.null and not self.null:
            return False
        return all(
            any(mine.contains(theirs) for mine in self.intervals) for theirs in other.intervals
        )

    def intersect(self, other: Domain) -> Domain:
        parts = (_intersect(a, b) for a in self.intervals for b in other.intervals)
        return Domain(tuple(p for p in parts if not p.is_empty), self.null and other.null)

    def union(self, other: Domain) -> Domain:
        return Domain(_merge(self.intervals + other.intervals), self.null or other.null)

    @property
    def is_empty(self) -> bool:
        return not self.intervals and not self.null

    @property
    def single(self) -> Value:
        """The one value allowed, or None when there are more, fewer, or NULL is among them."""
        if len(self.intervals) != 1 or self.null:
            return None
        only = self.intervals[0]
        return only.low if only.low is not None and only.low == only.high else None


EVERYTHING: Final = Domain((Interval(),), null=True)
NOT_NULL: Final = Domain((Interval(),))
NULL_ONLY: Final = Domain((), null=True)
NOTHING: Final = Domain(())


def _merge(intervals: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """Sort, and join what overlaps or touches without a gap."""
    ordered = sorted(
        (i for i in intervals if not i.is_empty),
        key=lambda i: (i.low is not None, _Key(i.low), not i.low_closed),
    )
    merged: list[Interval] = []
    for item in ordered:
        if merged and _touches(merged[-1], item):
            last = merged[-1]
            high = item if _ends_after(item, last) else last
            merged[-1] = Interval(last.low, last.low_closed, high.high, high.high_closed)
        else:
            merged.append(item)
    return tuple(merged)


def _touches(a: Interval, b: Interval) -> bool:
    if a.high is None or b.low is None or b.low < a.high:
        return True
    if b.low == a.high:
        return a.high_closed or b.low_closed
    # consecutive whole numbers (days and the like are ints too): [1, 2] and [3, 5] leave no gap
    return type(b.low) is int and a.high_closed and b.low_closed and b.low == a.high + 1


class _Key:
    """Orders None (unbounded) before all values."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __lt__(self, other: _Key) -> bool:
        return self.value is not None and other.value is not None and self.value < other.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.value == other.value


def value_of(lit: Lit) -> Value:
    """The literal as a value that orders as Spark orders its type, or None if the type has no such
    order here."""
    value, kind = lit.value, lit.type
    if value is None:
        return None
    if kind in INTEGRAL or kind in ("date", "timestamp", "timestamp_ntz"):
        return value if isinstance(value, int) else None
    if kind == "boolean":
        return int(bool(value))
    if decimal_parts(kind):
        return Decimal(value) if isinstance(value, Decimal) else None
    if kind in FLOATS:
        # NaN is equal to itself and above everything in Spark, never so in Python
        return None if not isinstance(value, float) or isnan(value) else value
    # Python orders strings by code point, which is the order of their UTF-8 bytes, Spark's binary
    # collation
    return value if kind == "string" and isinstance(value, str) else None


def domain_of(predicate: Expr) -> tuple[Expr, Domain] | None:
    """The operand of a canonical predicate and the values it allows, or None when it is not about
    one operand.

    >>> from matcher.expr import Col
    >>> x = Col(0, "x", "int")
    >>> domain_of(Call("gt", (x, Lit(4, "int")), "boolean"))[1].intervals[0].low
    5
    """
    if not isinstance(predicate, Call):
        return None
    op, args = predicate.op, predicate.args
    if op == "isnull":
        return args[0], NULL_ONLY
    if op == "isnotnull":
        return args[0], NOT_NULL
    if op in ("and", "or"):
        return _combine(op, args)
    if op == "in":
        return _membership(args)
    if op == "not" and isinstance(args[0], Call) and args[0].op == "in":
        inside = _membership(args[0].args, for_not=True)
        return None if inside is None else (inside[0], _complement(inside[1]))
    if len(args) == 2 and isinstance(args[1], Lit) and not isinstance(args[0], Lit):
        values = _compare(op, args[1])
        return None if values is None else (args[0], values)
    return None


def _compare(op: str, lit: Lit) -> Domain | None:
    value = value_of(lit)
    if value is None:
        return None
    if op in ("eq", "nseq"):
        return Domain((Interval(value, True, value, True),))
    if op == "ne":
        return _complement(Domain((Interval(value, True, value, True),)))
    if op == "startswith" and isinstance(value, str):
        return Domain((_prefix(value),))
    whole = type(value) is int
    if op == "lt":
        return Domain((Interval(None, False, value - 1 if whole else value, whole),))
    if op == "le":
        return Domain((Interval(None, False, value, True),))
    if op == "gt":
        return Domain((Interval(value + 1 if whole else value, whole, None, False),))
    if op == "ge":
        return Domain((Interval(value, True, None, False),))
    return None


def _prefix(text: str) -> Interval:
    """All strings that start with `text`: from it up to the next string of no greater length."""
    for end in range(len(text) - 1, -1, -1):
        following = ord(text[end]) + 1
        if 0xD800 <= following <= 0xDFFF:
            following = 0xE000
        if following <= 0x10FFFF:
            return Interval(text, True, text[:end] + chr(following), False)
    return Interval(text, True, None, False)


def _membership(args: tuple[Expr, ...], *, for_not: bool = False) -> tuple[Expr, Domain] | None:
    points = []
    for item in args[1:]:
        if not isinstance(item, Lit):
            return None
        if item.value is None:
            if for_not:  # x NOT IN (…, NULL) is never true
                return args[0], EVERYTHING
            continue
        value = value_of(item)
        if value is None:
            return None
        points.append(Interval(value, True, value, True))
    return args[0], Domain(_merge(tuple(points)))


def _complement(domain: Domain) -> Domain:
    """The non-null values outside of `domain`: what NOT leaves in a WHERE clause."""
    if domain.null:
        return NOTHING
    gaps = []
    low, closed = None, False
    for item in domain.intervals:
        if item.low is not None:
            gaps.append(Interval(low, closed, item.low, not item.low_closed))
        if item.high is None:
            return _whole(gaps)
        low, closed = item.high, not item.high_closed
    gaps.append(Interval(low, closed, None, False))
    return _whole(gaps)


def _whole(gaps: list[Interval]) -> Domain:
    """Open ends over whole numbers become closed ones, so that equal sets look equal."""
    result = []
    for gap in gaps:
        low, low_closed, high, high_closed = gap.low, gap.low_closed, gap.high, gap.high_closed
        if type(low) is int and not low_closed:
            low, low_closed = low + 1, True
        if type(high) is int and not high_closed:
            high, high_closed = high - 1, True
        result.append(Interval(low, low_closed, high, high_closed))
    return Domain(tuple(i for i in result if not i.is_empty))


def _combine(op: str, parts: tuple[Expr, ...]) -> tuple[Expr, Domain] | None:
    found: tuple[Expr, Domain] | None = None
    for part in parts:
        one = domain_of(part)
        if one is None or (found is not None and one[0] != found[0]):
            return None
        if found is None:
            found = one
        else:
            joined = found[1].intersect(one[1]) if op == "and" else found[1].union(one[1])
            found = (found[0], joined)
    return found
