"""Comparisons of a cast between temporal types with a constant, turned to the uncast column.

Spark's UnwrapCastInBinaryComparison does this before the hook sees a plan, so the text door does it
as well; both doors then compare the same column with the same constants. Casts of numbers need no
such step: the matcher reads through them by itself (`matcher.predicates.monotone`).
"""

from __future__ import annotations

from matcher.model.expr import FALSE, Call, Expr, Lit
from matcher.model.operators import FLIPPED
from matcher.sql.expressions.types import TextSettings

_DAY = 86_400_000_000
_DATE_AS_TIME = ("date", "timestamp")


def unwrap(op: str, left: Expr, right: Expr, settings: TextSettings) -> Expr | None:
    """`CAST(x AS type) op constant` as a predicate over x; None where it stays as it is."""
    if isinstance(left, Lit) and isinstance(right, Call):
        return unwrap(FLIPPED.get(op, op), right, left, settings)
    if not (isinstance(left, Call) and left.op == "cast" and isinstance(right, Lit)):
        return None
    if not isinstance(right.value, int):
        return None
    if op == "ne":
        same = unwrap("eq", left, right, settings)
        return None if same is None else Call("not", (same,), "boolean", same.nullable)
    inner = left.args[0]
    pair = (inner.type, left.type)
    if op == "nseq":
        return _same_moment(inner, right.value) if pair == _DATE_AS_TIME and settings.utc else None
    if pair == ("timestamp_ntz", "date") or (pair == ("timestamp", "date") and settings.utc):
        return _days_of(op, inner, right.value)
    if pair == _DATE_AS_TIME and settings.utc:
        return _moment_of(op, inner, right.value)
    if pair == ("timestamp_ntz", "timestamp") and settings.utc:
        return Call(op, (inner, Lit(right.value, inner.type)), "boolean", inner.nullable)
    return None


def _days_of(op: str, inner: Expr, day: int) -> Expr:
    """A day of a timestamp as a range of moments."""

    def test(name: str, days: int) -> Expr:
        return Call(name, (inner, Lit(days * _DAY, inner.type)), "boolean", inner.nullable)

    if op == "eq":
        parts = (test("ge", day), test("lt", day + 1))
        return Call("and", parts, "boolean", inner.nullable)
    return {
        "ge": lambda: test("ge", day), "gt": lambda: test("ge", day + 1),
        "lt": lambda: test("lt", day), "le": lambda: test("lt", day + 1),
    }[op]()  # fmt: skip


def _same_moment(inner: Expr, micros: int) -> Expr:
    day, rest = divmod(micros, _DAY)
    return FALSE if rest else Call("nseq", (inner, Lit(day, "date")), "boolean", False)


def _moment_of(op: str, inner: Expr, micros: int) -> Expr:
    """A date against a moment, where days start at midnight UTC."""
    day, rest = divmod(micros, _DAY)
    if rest and op == "eq":
        never = (Call("isnull", (inner,), "boolean", False), Lit(None, "boolean"))
        return Call("and", never, "boolean", inner.nullable)
    if rest:
        op = "gt" if op in ("gt", "ge") else "le"
    return Call(op, (inner, Lit(day, "date")), "boolean", inner.nullable)
