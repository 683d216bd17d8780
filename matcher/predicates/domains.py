"""Sets of values of one operand: unions of intervals over an ordered type, and whether NULL is in.

Containment of predicates about one operand is containment of such sets (Goldstein and Larson's
range subsumption, extended from one interval to many). What a predicate allows is read in
`matcher.predicates.truth`; what a function makes of a set in `matcher.predicates.monotone`.

Every type with steps is held as whole numbers: days, microseconds, and decimals as their unscaled
value, so that `> 4` and `>= 5` are one set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import isnan
from typing import Any, Final

from matcher.model.budget import tick
from matcher.model.expr import Lit
from matcher.model.types import FLOATS, INTEGRAL, decimal_parts
from matcher.model.values import single

# int, str, float, bytes or NAN: one kind a domain, ordered as Spark orders the type
Value = Any
# So many intervals of a domain are gone through between two looks at the clock, at most.
_INTERVALS_A_TICK: Final = 16


class _Nan:
    """NaN as Spark orders it: equal to itself and above every number."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __repr__(self) -> str:
        return "NAN"


NAN: Final = _Nan()


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


def point(value: Value) -> Interval:
    """The interval of one value."""
    return Interval(value, True, value, True)


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
        if self is EVERYTHING:
            return other
        tick(1 + (len(self.intervals) + len(other.intervals)) // _INTERVALS_A_TICK)
        if len(self.intervals) == len(other.intervals) == 1:
            both = _intersect(self.intervals[0], other.intervals[0])
            return Domain(() if both.is_empty else (both,), self.null and other.null)
        parts = (_intersect(a, b) for a in self.intervals for b in other.intervals)
        return Domain(tuple(p for p in parts if not p.is_empty), self.null and other.null)

    def union(self, other: Domain) -> Domain:
        return Domain(_merge(self.intervals + other.intervals), self.null or other.null)

    def complement(self, *, null: bool) -> Domain:
        """The values that are not in here, and NULL if `null` says so."""
        gaps: list[Interval] = []
        low, closed = None, False
        for item in self.intervals:
            if item.low is not None:
                gaps.append(Interval(low, closed, item.low, not item.low_closed))
            if item.high is None:
                return normal(gaps, null)
            low, closed = item.high, not item.high_closed
        gaps.append(Interval(low, closed, None, False))
        return normal(gaps, null)

    def minus(self, other: Domain) -> Domain:
        return self.intersect(other.complement(null=not other.null))

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

    def points(self, most: int) -> tuple[Value, ...] | None:
        """All values, NULL as None; None where they are more than `most` or no one can list
        them."""
        found: list[Value] = [None] if self.null else []
        for item in self.intervals:
            if item.low is None or item.high is None:
                return None
            if item.low == item.high:
                found.append(item.low)
            elif type(item.low) is int and item.high - item.low < most:
                found += range(item.low, item.high + 1)
            else:
                return None
        return tuple(found) if len(found) <= most else None


EVERYTHING: Final = Domain((Interval(),), null=True)
NOT_NULL: Final = Domain((Interval(),))
NULL_ONLY: Final = Domain((), null=True)
NOTHING: Final = Domain(())


def union_all(domains: Sequence[Domain]) -> Domain:
    """The union of many, in one pass."""
    tick(len(domains))
    return normal([i for d in domains for i in d.intervals], any(d.null for d in domains))


def intersect_all(domains: Sequence[Domain]) -> Domain:
    """The intersection of many, in one pass: what is in no complement."""
    outside = union_all([d.complement(null=False) for d in domains])
    return outside.complement(null=all(d.null for d in domains))


def normal(intervals: list[Interval], null: bool) -> Domain:
    """Open ends over whole numbers become closed ones, so that equal sets look equal."""
    result = []
    for item in intervals:
        low, low_closed, high, high_closed = item.low, item.low_closed, item.high, item.high_closed
        if type(low) is int and not low_closed:
            low, low_closed = low + 1, True
        if type(high) is int and not high_closed:
            high, high_closed = high - 1, True
        result.append(Interval(low, low_closed, high, high_closed))
    return Domain(_merge(tuple(result)), null)


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
    parts = decimal_parts(kind)
    if parts:
        return unscaled(value, parts[1]) if isinstance(value, Decimal) else None
    if kind in FLOATS:
        if not isinstance(value, float):
            return None
        return NAN if isnan(value) else value if kind == "double" else single(value)
    if kind == "binary":
        return value if isinstance(value, bytes) else None
    # Python orders strings by code point, which is the order of their UTF-8 bytes, Spark's binary
    # collation
    return value if kind == "string" and isinstance(value, str) else None


def unscaled(value: Decimal, scale: int) -> int | None:
    """The decimal in units of its type's last digit; None where it has more digits than that.

    >>> unscaled(Decimal("1.5"), 2)
    150
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent < -scale:
        return None
    number: int = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number


def literal_of(value: Value, type: str) -> Lit | None:
    """The constant of that type, the inverse of `value_of`."""
    if value is None or value is NAN:
        return None
    parts = decimal_parts(type)
    if parts:
        digits = tuple(map(int, str(abs(value))))
        return Lit(Decimal((int(value < 0), digits, -parts[1])), type)
    return Lit(bool(value) if type == "boolean" else value, type)


@lru_cache(maxsize=256)
def universe(type: str) -> Domain:
    """All values of a type, NULL included: bounded for whole numbers, decimals and booleans."""
    if type == "boolean":
        return Domain((Interval(0, True, 1, True),), null=True)
    if type == "cmp":  # of `matcher.predicates.truth.ORDER`
        return Domain((Interval(-1, True, 1, True),), null=True)
    if type in INTEGRAL:
        bound = 1 << (INTEGRAL[type] - 1)
        return Domain((Interval(-bound, True, bound - 1, True),), null=True)
    parts = decimal_parts(type)
    if parts:
        bound = 10 ** parts[0] - 1
        return Domain((Interval(-bound, True, bound, True),), null=True)
    return EVERYTHING


def prefix(text: str) -> Interval:
    """All strings that start with `text`: from it up to the next string of no greater length."""
    for end in range(len(text) - 1, -1, -1):
        following = ord(text[end]) + 1
        if 0xD800 <= following <= 0xDFFF:
            following = 0xE000
        if following <= 0x10FFFF:
            return Interval(text, True, text[:end] + chr(following), False)
    return Interval(text, True, None, False)
