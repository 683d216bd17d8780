"""Coarser time buckets from finer ones: a calendar function of d from another one that is stored.

A stored `trunc(d, 'MM')` is a day of d's own month, so any function with one value a month has the
same value there: `year(d)` is `year(stored)`. What is stored as numbers (a year, or a year and a
month) is made a date first. A comparison of d itself with a constant becomes one of the stored
bucket if the constant is the bucket's very first moment; one day off, and rows of one bucket would
fall on both sides.

What holds in every time zone, and what only in some, is said in `matcher.predicates.time_zones`.
"""

from __future__ import annotations

from typing import Final

from matcher.model.expr import Call, Col, Expr, Lit
from matcher.model.ir import StoredColumn
from matcher.model.operators import ORDER_COMPARISONS
from matcher.predicates.time_buckets import (
    DAY_MICROS,
    NESTS,
    TIME_OPS,
    WITHIN_A_DAY,
    Bucket,
    TimeFunction,
    first_moment,
    local_micros,
    read_time_function,
    starts_bucket,
    time_of,
    year_of,
)
from matcher.predicates.time_zones import fixed_offset, keeps_days
from matcher.rules.attempt import ViewAttempt

_TIMES: Final = frozenset({"date", "timestamp", "timestamp_ntz"})


def coarsen_time(attempt: ViewAttempt, expr: Expr) -> Expr | None:
    """`expr` from a stored time bucket, or None where it does not follow from one.

    Args:
        attempt: The query and the view, with what the rules before have found.
        expr: The expression that is asked for.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT TRUNC(day, 'MM') AS m, COUNT(*) AS n FROM sales GROUP BY TRUNC(day, 'MM')",
    ...     "SELECT YEAR(day) AS y FROM sales WHERE day >= DATE'2024-02-01' GROUP BY YEAR(day)",
    ... )
    SELECT YEAR(`m`) AS `y` FROM c WHERE (`m` >= DATE'2024-02-01') GROUP BY YEAR(`m`)
    >>> answer(
    ...     "SELECT TRUNC(day, 'MM') AS m, COUNT(*) AS n FROM sales GROUP BY TRUNC(day, 'MM')",
    ...     "SELECT COUNT(*) AS n FROM sales WHERE day >= DATE'2024-02-02'",
    ... )
    PREDICATE_COLUMN_MISSING: cache c lacks day (needed for filter)
    """
    canonical = attempt.context.canonical(expr)
    if not isinstance(canonical, Call) or canonical.op not in TIME_OPS:
        return None
    zone = attempt.options.time_zone
    if canonical.op in ORDER_COMPARISONS:
        return _compare(attempt, canonical, zone)
    if canonical.op in ("isnull", "isnotnull"):
        return _null_test(attempt, canonical, zone)
    wanted = read_time_function(canonical, zone)
    if wanted is None:
        return None
    for bucket in _buckets(attempt, wanted.of):
        if wanted.unit in NESTS[bucket.unit]:
            found = _apply(wanted, bucket, zone)
            if found is not None:
                return _used(attempt, bucket, found)
    return None


def _used(attempt: ViewAttempt, bucket: Bucket, found: Expr) -> Expr:
    attempt.notes.used.update(column.name for column in bucket.columns)
    return found


def _buckets(attempt: ViewAttempt, of: Expr) -> list[Bucket]:
    """What the view stores of the time `of`, widest first, so that little is computed twice."""
    if attempt.notes.buckets is None:
        attempt.notes.buckets = _stored_buckets(attempt)
    return attempt.notes.buckets.get(of, [])


def _stored_buckets(attempt: ViewAttempt) -> dict[Expr, list[Bucket]]:
    zone = attempt.options.time_zone
    functions: dict[Expr, list[tuple[TimeFunction, StoredColumn]]] = {}
    for expr, column in attempt.available.items():
        read = read_time_function(expr, zone)
        if read is not None:
            functions.setdefault(read.of, []).append((read, column))
    order = list(NESTS)
    return {
        of: sorted(_buckets_of(found, zone), key=lambda b: -order.index(b.unit))
        for of, found in functions.items()
        if of not in attempt.available  # all follows from the time itself
    }


def _buckets_of(found: list[tuple[TimeFunction, StoredColumn]], zone: str) -> list[Bucket]:
    buckets = [b for f, c in found if (b := _bucket(f, c, zone)) is not None]
    numbers = {f.expr.op: c for f, c in found if f.expr.type == "int"}
    year = numbers.get("year")
    if year is None:
        return buckets
    of_year = _stored(year)
    first: Expr = Lit(1, "int")
    month: Expr = first
    buckets.append(Bucket("YEAR", _make_date(of_year, first, first), (year,), year=of_year))
    if "quarter" in numbers:
        column = numbers["quarter"]
        thrice = Call("mul", (_stored(column), Lit(3, "int")), "int")
        month = Call("sub", (thrice, Lit(2, "int")), "int")
        buckets.append(Bucket("QUARTER", _make_date(of_year, month, first), (year, column)))
    if "month" in numbers:
        column = numbers["month"]
        month = _stored(column)
        buckets.append(Bucket("MONTH", _make_date(of_year, month, first), (year, column)))
        if "day" in numbers:
            last = numbers["day"]
            day = _make_date(of_year, month, _stored(last))
            buckets.append(Bucket("DAY", day, (year, column, last)))
    return buckets


def _stored(column: StoredColumn) -> Col:
    return Col(0, column.name, column.expr.type, column.expr.nullable)


def _make_date(year: Expr, month: Expr, day: Expr) -> Expr:
    return Call("make_date", (year, month, day), "date")


def _bucket(function: TimeFunction, column: StoredColumn, zone: str) -> Bucket | None:
    call, stored = function.expr, _stored(column)
    if call.type == "date":
        return Bucket(function.unit, stored, (column,))
    if call.op != "date_trunc":
        return None
    # the start of a bucket is on its first day, unless the zone skipped that day or moment
    if function.unit != "DAY" and not keeps_days(zone):
        return None
    return Bucket(function.unit, Call("cast", (stored,), "date"), (column,), moment=stored)


def _apply(wanted: TimeFunction, bucket: Bucket, zone: str) -> Expr | None:
    call = wanted.expr
    if call.op == "date_trunc":
        return _truncate(wanted, bucket, zone)
    if wanted.unit in WITHIN_A_DAY:
        # after a gap that ends within an hour, the hour's start is moved into the next one
        usable = fixed_offset(zone) is not None and bucket.moment is not None
        return Call(call.op, (bucket.moment,), call.type) if usable and bucket.moment else None
    if call.op == "date_format":
        if not keeps_days(zone):
            return None
        moment = bucket.moment or Call("cast", (bucket.date,), "timestamp")
        return Call("date_format", (moment, call.args[1]), call.type)
    if call.op == "cast":
        return bucket.date
    if call.op == "year" and bucket.year is not None:
        return bucket.year
    return Call(call.op, (bucket.date, *call.args[1:]), call.type)


def _truncate(wanted: TimeFunction, bucket: Bucket, zone: str) -> Expr | None:
    """`date_trunc`: to a week and more it is the first midnight of `trunc`, in every zone.

    To an hour or a minute it is asked of buckets within a day alone, which are moments, in zones
    that keep days.
    """
    call = wanted.expr
    if bucket.moment is not None and keeps_days(zone):
        if wanted.unit in ("MINUTE", "HOUR") and fixed_offset(zone) is None:
            return None
        return Call("date_trunc", (call.args[0], bucket.moment), "timestamp")
    if wanted.unit == "DAY":
        # a midnight that a zone has twice or not at all depends on the time of that day
        exact = fixed_offset(zone) is not None
        return Call("cast", (bucket.date,), "timestamp") if exact else None
    unit = Lit(wanted.unit, "string")
    return Call("cast", (Call("trunc", (bucket.date, unit), "date"),), "timestamp")


def _null_test(attempt: ViewAttempt, test: Call, zone: str) -> Expr | None:
    """A calendar function is NULL for NULL, and for nothing else."""
    for bucket in _buckets(attempt, time_of(test.args[0], zone)):
        column = bucket.columns[0]
        tested = _stored(column)
        return _used(attempt, bucket, Call(test.op, (tested,), "boolean", False))
    return None


def _compare(attempt: ViewAttempt, test: Call, zone: str) -> Expr | None:
    """`d < c` and the like, where c is the first moment of a stored bucket.

    The constant is always a new object: a remembered decision must not put the next one's constant
    into this place, which may lie inside of a bucket.
    """
    operand, lit = test.args
    value = lit.value if isinstance(lit, Lit) else None
    if operand.type not in _TIMES or lit.type != operand.type or not isinstance(value, int):
        return None
    before = test.op in ("lt", "le")
    limit = value + 1 if test.op in ("le", "gt") else value
    for bucket in _buckets(attempt, time_of(operand, zone)):
        sides = _sides(operand.type, limit, bucket, zone)
        if sides is not None:
            return _used(attempt, bucket, Call("lt" if before else "ge", sides, "boolean"))
    return None


def _sides(kind: str, limit: int, bucket: Bucket, zone: str) -> tuple[Expr, Expr] | None:
    """What is stored, and the constant to compare it with."""
    if kind == "date":
        day = limit if starts_bucket(limit, bucket.unit) else None
    else:
        local = limit if kind == "timestamp_ntz" else local_micros(limit, zone)
        if local is None or not first_moment(local, bucket.unit):
            return None
        if bucket.moment is not None and kind == "timestamp":
            return bucket.moment, Lit(limit, "timestamp")
        day = local // DAY_MICROS if local % DAY_MICROS == 0 else None
    if day is None:
        return None
    if bucket.year is not None:
        return bucket.year, Lit(year_of(day), "int")
    return bucket.date, Lit(day, "date")
