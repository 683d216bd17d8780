"""Aggregates: each one of the query from what the cache stores, exactly, with Spark's result type,
or not at all.

- any aggregate: the same one, stored, where the groups are the same;
- COUNT: SUM of stored counts, 0 over nothing; COUNT(x) also from COUNT(*) where x is never NULL;
- SUM: SUM of stored sums, cast back: whole numbers, decimals that cannot overflow, floats if
    allowed;
- SUM(a ± b): SUM(sum_a ± sum_b), where a and b are never NULL and a ± b cannot wrap around;
- MIN, MAX: of stored ones, or of a key;
- AVG: SUM / COUNT, never from AVG; DESIGN §5 says when that is exact;
- COUNT(DISTINCT k) and other DISTINCT ones: of group keys.

Over a cache without aggregation every known aggregate is computed from its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from matcher.expr import Agg, Call, Col, Expr, Lit, transform
from matcher.ir import Measure
from matcher.reasons import Reason, ReasonCode
from matcher.rules.attempt import Attempt, Refused, cast_to, per_group_sum, spell
from matcher.rules.derive_columns import derive
from matcher.types import FLOATS, INTEGRAL, MAX_DECIMAL, decimal_parts, decimal_type

# Aggregates that may be computed from rows; their value does not depend on the order of rows
# (float rounding aside).
_FROM_ROWS: Final = frozenset(
    "sum count min max avg stddev_samp stddev_pop var_samp var_pop corr covar_samp covar_pop "
    "bit_and bit_or bit_xor skewness kurtosis".split()
)
_ZERO: Final = Lit(0, "bigint")
# A decimal sum has ten digits more than its argument: fewer rows than this cannot overflow them.
_SAFE_SUM_PRECISION: Final = MAX_DECIMAL - 10
_LONG_DECIMAL: Final = (20, 0)
_MARGIN_DIGITS: Final = 10


def roll_up_aggregate(attempt: Attempt, agg: Agg) -> Expr | None:
    """`agg` over the view's rows, or None after noting a missing column.

    Raises:
        Refused: the reason why the aggregate cannot be had from this view.
    """
    if attempt.view.keys is None:
        return _from_rows(attempt, agg)
    canonical = attempt.context.canonical(agg)
    assert isinstance(canonical, Agg)
    measure = attempt.stored_aggs.get(canonical)
    if measure is not None and not attempt.regroup:
        return _column(measure, agg.type)
    if agg.distinct and agg.func not in ("min", "max"):
        return _distinct_of_keys(attempt, agg)
    handler = _ROLL_UPS.get(agg.func)
    if handler is None:
        raise Refused(_not_derivable(attempt, agg))
    found = handler(attempt, agg)
    if found is None and agg.filter is not None:
        found = _filtered(attempt, agg, handler)
    if found is None:
        raise Refused(_not_derivable(attempt, agg))
    return cast_to(found, agg.type)


def _filtered(
    attempt: Attempt, agg: Agg, handler: Callable[[Attempt, Agg], Expr | None]
) -> Expr | None:
    """FILTER over group keys: filter the stored groups instead of the rows."""
    assert agg.filter is not None
    if not attempt.regroup:
        raise NeedsRegrouping
    noted = len(attempt.missing)
    condition = derive(attempt, agg.filter, "aggregate")
    if condition is None:
        del attempt.missing[noted:]
        return None
    bare = Agg(agg.func, agg.args, agg.type, agg.nullable, agg.distinct, None, agg.params)
    found = handler(attempt, bare)
    if found is None:
        return None
    kept = condition

    def visit(node: Expr) -> Expr | None:
        if isinstance(node, Agg):
            return Agg(node.func, node.args, node.type, True, node.distinct, kept)
        return None

    total = transform(found, visit)
    # a group may have no row that passes: SUM of counts is NULL there, COUNT is 0
    return Call("coalesce", (total, _ZERO), "bigint") if agg.func == "count" else total


def _from_rows(attempt: Attempt, agg: Agg) -> Expr | None:
    if agg.func not in _FROM_ROWS or agg.params:
        raise Refused(_not_derivable(attempt, agg))
    args = [derive(attempt, arg, "aggregate") for arg in agg.args]
    flt = None if agg.filter is None else derive(attempt, agg.filter, "aggregate")
    if any(a is None for a in args) or (agg.filter is not None and flt is None):
        return None
    done = tuple(a for a in args if a is not None)
    return Agg(agg.func, done, agg.type, agg.nullable, agg.distinct, flt)


def _column(measure: Measure, type: str) -> Expr:
    return cast_to(Col(0, measure.name, measure.agg.type, measure.agg.nullable), type)


def _lookup(attempt: Attempt, func: str, args: tuple[Expr, ...], like: Agg) -> Measure | None:
    """The stored measure `func(args)` with the FILTER of `like`."""
    wanted = Agg(func, args, like.type, filter=like.filter)
    return attempt.stored_aggs.get(attempt.context.canonical(wanted))


def _sum_of(attempt: Attempt, measure: Measure) -> Expr:
    return per_group_sum(attempt, _column(measure, measure.agg.type))


def _count(attempt: Attempt, agg: Agg) -> Expr | None:
    found = _count_measure(attempt, agg.args, agg)
    if found is None:
        return None
    total = _sum_of(attempt, found)
    # Over no rows SUM is NULL where COUNT is 0; a group always has rows.
    over_nothing = attempt.regroup and not attempt.query.group_keys
    return Call("coalesce", (total, _ZERO), "bigint", nullable=False) if over_nothing else total


def _count_measure(attempt: Attempt, args: tuple[Expr, ...], like: Agg) -> Measure | None:
    direct = _lookup(attempt, "count", args, like)
    if direct is not None or len(args) > 1:
        return direct
    if not args or _never_null(attempt, args[0], like):
        return _lookup(attempt, "count", (), like)
    return None


def _never_null(attempt: Attempt, arg: Expr, like: Agg) -> bool:
    """By schema, by the query's own predicates, or counted when the cache was refreshed."""
    context = attempt.context
    if context.never_null(context.canonical(arg)):
        return True
    measure = _lookup(attempt, "sum", (arg,), like) or _lookup(attempt, "count", (arg,), like)
    return measure is not None and measure.name in attempt.view.plan.non_null


def _sum(attempt: Attempt, agg: Agg) -> Expr | None:
    kind = agg.args[0].type
    if attempt.regroup:
        _refuse_inexact_sum(attempt, agg, kind)
    parts = _sum_parts(attempt, agg.args[0], agg)
    return None if parts is None else per_group_sum(attempt, parts)


def _refuse_inexact_sum(attempt: Attempt, agg: Agg, kind: str) -> None:
    if kind in FLOATS and not attempt.options.approximate_floats:
        raise Refused(
            Reason(
                ReasonCode.FLOAT_NOT_EXACT,
                f"{spell(agg)} adds {kind.upper()} values, and the sum of sums may differ in "
                "the last digits",
                "store the query's grouping, use DECIMAL, or set "
                "spark.cachemgr.approximateFloats=true",
            )
        )
    parts = decimal_parts(kind)
    if parts is not None and parts[0] > _SAFE_SUM_PRECISION and not attempt.options.ansi:
        raise Refused(
            Reason(
                ReasonCode.MAY_OVERFLOW,
                f"{spell(agg)}: a stored sum of {kind.upper()} that overflowed is NULL and "
                "would be skipped",
                f"use a DECIMAL of at most {_SAFE_SUM_PRECISION} digits",
            )
        )


def _sum_parts(attempt: Attempt, arg: Expr, like: Agg) -> Expr | None:
    """An expression over stored columns whose SUM is SUM(arg)."""
    measure = _lookup(attempt, "sum", (arg,), like)
    if measure is not None:
        return _column(measure, measure.agg.type)
    if isinstance(arg, Call) and arg.op == "cast" and arg.type in INTEGRAL:
        inner = arg.args[0]
        widens = inner.type in INTEGRAL and INTEGRAL[inner.type] <= INTEGRAL[arg.type]
        return _sum_parts(attempt, inner, like) if widens else None
    if not isinstance(arg, Call) or arg.op not in ("add", "sub"):
        return None
    left = _sum_parts(attempt, arg.args[0], like)
    right = _sum_parts(attempt, arg.args[1], like)
    if left is None or right is None:
        return None
    for side in arg.args:
        if not _never_null(attempt, side, like):
            raise Refused(
                Reason(
                    ReasonCode.MAY_BE_NULL,
                    f"SUM({spell(arg)}) from separate sums is wrong where {spell(side)} is NULL",
                    f"declare {spell(side)} NOT NULL, or store SUM({spell(arg)})",
                )
            )
    _refuse_wrap(attempt, arg)
    return Call(arg.op, (left, right), _sum_of_sums_type(left.type, right.type))


def _refuse_wrap(attempt: Attempt, arg: Call) -> None:
    """`a ± b` itself must not wrap around or lose digits where the sums would not.

    BIGINT wraps modulo 2^64 in the sums just as in the rows; a narrower type wraps earlier,
    silently without ANSI and as an error
    with it, and a rewrite may succeed where the original raises.
    """
    kind, parts = arg.type, decimal_parts(arg.type)
    narrow = kind in INTEGRAL and kind != "bigint"
    exact_decimal = parts is not None and parts[0] < MAX_DECIMAL and _same_scale(arg)
    if kind == "bigint" or exact_decimal or (narrow and attempt.options.ansi):
        return
    raise Refused(
        Reason(
            ReasonCode.MAY_OVERFLOW,
            f"{spell(arg)} has type {kind.upper()}, which can overflow or round where the sums "
            "do not",
            f"store SUM({spell(arg)})",
        )
    )


def _same_scale(arg: Call) -> bool:
    """The sum's scale is the larger of the two: no digit was cut off."""
    scales = [p[1] for p in map(decimal_parts, (a.type for a in arg.args)) if p is not None]
    mine = decimal_parts(arg.type)
    return len(scales) == 2 and mine is not None and mine[1] == max(scales)


def _sum_of_sums_type(left: str, right: str) -> str:
    a, b = decimal_parts(left), decimal_parts(right)
    if a is None or b is None:
        return left
    scale = max(a[1], b[1])
    return decimal_type(max(a[0] - a[1], b[0] - b[1]) + scale + 1, scale)


def _extreme(attempt: Attempt, agg: Agg) -> Expr | None:
    measure = _lookup(attempt, agg.func, agg.args, agg)
    if measure is not None:
        column = _column(measure, measure.agg.type)
        return Agg(agg.func, (column,), agg.type) if attempt.regroup else column
    return _of_keys(attempt, agg)


def _of_keys(attempt: Attempt, agg: Agg) -> Expr | None:
    """An aggregate that repeated rows do not change, of the group keys themselves."""
    noted = len(attempt.missing)
    args = [derive(attempt, arg, "aggregate") for arg in agg.args]
    flt = None if agg.filter is None else derive(attempt, agg.filter, "aggregate")
    lost = any(a is None or attempt.is_float_key(a) for a in args)
    if lost or (agg.filter is not None and flt is None):
        del attempt.missing[noted:]
        return None
    if not attempt.regroup:
        raise NeedsRegrouping
    done = tuple(a for a in args if a is not None)
    return Agg(agg.func, done, agg.type, agg.nullable, agg.distinct, flt)


class NeedsRegrouping(Exception):
    """The groups are the same, but this aggregate must still be computed: try again with a
    roll-up."""


def _distinct_of_keys(attempt: Attempt, agg: Agg) -> Expr:
    found = _of_keys(attempt, agg) if agg.func in ("count", "sum", "avg") else None
    if found is None:
        raise Refused(
            Reason(
                ReasonCode.DISTINCT_NOT_DERIVABLE,
                f"{spell(agg)} does not add up over groups, and its argument is not a key of "
                f"{attempt.view_name()}",
                f"add {', '.join(spell(a) for a in agg.args)} to the GROUP BY of "
                f"{attempt.view.name}",
            )
        )
    return found


def _average(attempt: Attempt, agg: Agg) -> Expr | None:
    arg = agg.args[0]
    total = _lookup(attempt, "sum", (arg,), agg) or _lookup(attempt, "try_sum", (arg,), agg)
    count = _count_measure(attempt, (arg,), agg)
    if total is None or count is None:
        return None
    _refuse_inexact_average(attempt, agg, total)
    number = _sum_of(attempt, count)
    rows = Call("nullif", (number, _ZERO), "bigint")
    if decimal_parts(arg.type) is None:
        dividend, divisor, kind = cast_to(_sum_of(attempt, total), "double"), "double", "double"
    else:
        dividend = cast_to(_sum_of(attempt, total), total.agg.type)
        divisor, kind = decimal_type(*_LONG_DECIMAL), "quotient"
    return Call("div", (dividend, cast_to(rows, divisor)), kind)


def _refuse_inexact_average(attempt: Attempt, agg: Agg, total: Measure) -> None:
    kind = agg.args[0].type
    if kind in INTEGRAL and attempt.extra:
        raise Refused(
            Reason(
                ReasonCode.AVG_NOT_EXACT,
                f"{spell(agg)}: Spark averages whole numbers in DOUBLE, and a table joined to "
                f"{attempt.view.name} may repeat rows until their sum leaves 2^53",
                "declare a cache that holds all tables of the query",
            )
        )
    if kind in INTEGRAL:
        if attempt.options.assume_exact_averages or total.name in attempt.view.plan.exact_sums:
            return
        detail = (
            f"{spell(agg)}: Spark averages whole numbers in DOUBLE, and the sums of "
            f"{attempt.view.name} are not "
            "proven to stay within 2^53"
        )
        raise Refused(
            Reason(ReasonCode.AVG_NOT_EXACT, detail, f"store {spell(agg)} at the query's grouping")
        )
    if kind in FLOATS:
        _refuse_inexact_sum(attempt, agg, kind)
        return
    if not _decimal_average_is_exact(attempt, kind):
        raise Refused(
            Reason(
                ReasonCode.AVG_NOT_EXACT,
                f"{spell(agg)} of {kind.upper()} has more digits than SUM / COUNT keeps",
                f"store {spell(agg)} at the query's grouping, or use a DECIMAL of fewer digits",
            )
        )


def _decimal_average_is_exact(attempt: Attempt, kind: str) -> bool:
    """SUM / COUNT, rounded at the quotient's scale and then to AVG's, equals AVG.

    S / n with n rows is at least 1 / (n · 2 · 10^(s+4)) away from a rounding boundary of scale s +
    4 unless it is on it, so
    the first rounding at scale d cannot cross it if n < 10^(d-s-4): ten digits of margin allow
    10^10 rows.
    """
    parts = decimal_parts(kind)
    if parts is None or not attempt.options.decimal_precision_loss:
        return False
    precision, scale = parts
    if precision > _SAFE_SUM_PRECISION or precision + 4 > MAX_DECIMAL:
        return False
    quotient_scale = max(6, scale + _LONG_DECIMAL[0] + 1)
    digits = precision + 10 - scale
    kept = quotient_scale
    if digits + quotient_scale > MAX_DECIMAL:  # DecimalType.adjustPrecisionScale
        kept = max(MAX_DECIMAL - digits, min(quotient_scale, 6))
    return kept - (scale + 4) >= _MARGIN_DIGITS


def _not_derivable(attempt: Attempt, agg: Agg) -> Reason:
    stored = ", ".join(spell(m.agg) for _, m in attempt.view.measures if not m.hidden)
    return Reason(
        ReasonCode.AGG_NOT_DERIVABLE,
        f"{spell(agg)} cannot be computed from {attempt.view_name()}, which stores "
        f"{stored or 'no aggregate'}",
        f"add {spell(agg)} to the SELECT list of {attempt.view.name}",
    )


_ROLL_UPS: Final[dict[str, Callable[[Attempt, Agg], Expr | None]]] = {
    "count": _count,
    "sum": _sum,
    "min": _extreme,
    "max": _extreme,
    "bit_and": _extreme,
    "bit_or": _extreme,
    "avg": _average,
}
