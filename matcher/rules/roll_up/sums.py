"""SUM and TRY_SUM: the sum of stored sums, and of arguments that are put together from them.

- `SUM(x)` of a stored one; of a key (or anything made of keys and constants) `k * rows`;
- `SUM(a ± b)` from separate sums where neither is ever NULL, or where b is made of keys:
    `sum_a ± b * count_a`;
- `SUM(k * x)` and `SUM(2 * x)`: the factor times the sum; `SUM(-x)`, `SUM(COALESCE(x, 0))`;
- `SUM(CASE …)` over keys: the part of the branch that the stored row takes.

Exactness: whole numbers are kept as BIGINT where the parts wrap around just as the rows do (without
ANSI), else as DECIMAL, so that no part overflows where the rows do not; decimals only while every
digit is kept; FLOAT and DOUBLE only under `spark.cachemgr.approximateFloats=true`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, Lit, columns
from matcher.model.integer_bounds import expression_bounds, type_bounds
from matcher.model.ir import Measure
from matcher.model.message import Message, Number, Sql, Word
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.types import FLOATS, INTEGRAL, MAX_DECIMAL, decimal_parts, sum_type
from matcher.rules.attempt import Refused, ViewAttempt, cast_to, may_be_error, per_group_sum, spell
from matcher.rules.roll_up.arithmetic import (
    opposite,
    product,
    refuse_wrap,
    same_type,
    sum_of_sums_type,
)
from matcher.rules.roll_up.common import (
    ZERO,
    branches,
    case_of,
    float_not_exact,
    keyed,
    keyed_all,
    lookup,
    may_hold_no_rows,
    never_null,
    not_derivable,
    row_count,
    stored,
    widens,
)
from matcher.rules.roll_up.counts import count_part

# A decimal sum has ten digits more than its argument: fewer rows than this cannot overflow them.
SAFE_SUM_PRECISION: Final = MAX_DECIMAL - 10
# Added to any number of rows that there can be, they stay within 2^53.
_SMALL: Final = 1 << 10
_LONG_DECIMAL: Final = "decimal(20,0)"
# No value of INT is larger, nor the sum or the difference of two: 2^31 of them fit into BIGINT.
_MOST_OF_NARROW: Final = 1 << 32


@dataclass(slots=True)
class Summing:
    """One SUM (or the SUM of an AVG) while its part is put together.

    `like` has the FILTER that stored measures must have; `sources` are the stored columns that
    were added up, and `bounded` says that these alone bound the sum.
    """

    attempt: ViewAttempt
    like: Agg
    sources: list[str] = field(default_factory=list)
    bounded: bool = True

    def part(self, arg: Expr) -> Expr | None:
        """An expression over stored columns whose SUM is SUM(arg); None where nothing gives it.

        Raises:
            Refused: it is there, but could differ.
        """
        measure = self._measure(arg)
        if measure is not None:
            self.sources.append(measure.name)
            return _to_add_up(self.attempt, measure)
        value = keyed(self.attempt, arg)
        if value is not None:
            return self._of_key(arg, value)
        if not isinstance(arg, Call):
            return None
        handler = _PARTS.get(arg.op)
        return None if handler is None else handler(self, arg)

    def _measure(self, arg: Expr) -> Measure | None:
        found = lookup(self.attempt, "sum", (arg,), self.like)
        if found is None and self.like.func in ("avg", "try_avg"):
            # the hidden sum of an AVG: NULL where it overflowed, so never SUM itself
            return lookup(self.attempt, "try_sum", (arg,), self.like)
        return found

    def _of_key(self, arg: Expr, value: Expr) -> Expr | None:
        """Each of the rows adds the key's value once."""
        rows = row_count(self.attempt, self.like)
        if rows is None:
            return None
        if isinstance(value, Lit):
            amount = value.value
            small = isinstance(amount, int) and abs(amount) <= _SMALL
            self.bounded = self.bounded and small
        else:
            column = self.attempt.available.get(self.attempt.context.canonical(arg))
            self.sources.append("" if column is None else column.name)
        if may_hold_no_rows(self.attempt, self.like):
            rows = Call("nullif", (rows, ZERO), "bigint")
        elif _is_zero(value):
            return _zero(value, sum_type(arg.type) or arg.type)  # nothing, however often
        return self._times(value, rows, arg, of_count=True)

    def _times(self, factor: Expr, part: Expr, arg: Expr, *, of_count: bool) -> Expr:
        kinds = {factor.type, part.type, arg.type}
        if kinds & FLOATS and not self.attempt.options.approximate_floats:
            raise float_not_exact(self.like, "adds up by rows, a product rounds differently")
        found = product(factor, part, of_count=of_count, ansi=self.attempt.options.ansi)
        if found is None:
            raise _may_overflow(self.like, arg, "has too many digits times the number of rows")
        return found

    def _cast(self, arg: Call) -> Expr | None:
        inner = arg.args[0]
        if widens(inner.type, arg.type):
            # without ANSI a stored BIGINT sum may have wrapped around, where decimals do not
            if inner.type == "bigint" and arg.type != "bigint" and not self.attempt.options.ansi:
                return None
            part = self.part(inner)
            # a sum of BIGINTs may overflow where one of decimals does not
            to_decimal = part is not None and inner.type in INTEGRAL and arg.type not in INTEGRAL
            return cast_to(part, _LONG_DECIMAL) if part is not None and to_decimal else part
        if arg.type != "double" or not self.attempt.options.approximate_floats:
            return None
        found = self.part(inner)
        return None if found is None else cast_to(found, "double")

    def _plus(self, arg: Call) -> Expr | None:
        attempt = self.attempt
        if may_be_error(attempt, arg.args):
            return None
        self.bounded = False
        values = [keyed(attempt, side) for side in arg.args]
        nullable = [
            side
            for side, value in zip(arg.args, values, strict=True)
            if value is None and not never_null(attempt, side, self.like)
        ]
        if nullable and any(v is not None for v in values):
            return self._plus_key(arg, values)
        left, right = self.part(arg.args[0]), self.part(arg.args[1])
        if left is None or right is None:
            return None
        for side in nullable:
            declare = "declare {side} NOT NULL, or " if isinstance(side, Col) else ""
            raise Refused(
                Reason(
                    ReasonCode.MAY_BE_NULL,
                    "SUM({arg}) from separate sums is wrong where {side} is NULL",
                    declare + "store SUM({arg})",
                    arg=Sql(spell(arg)),
                    side=Sql(spell(side)),
                )
            )
        refuse_wrap(attempt, arg)
        return _combine(self.like, arg, left, right)

    def _plus_key(self, arg: Call, values: list[Expr | None]) -> Expr | None:
        """`x ± k` is NULL where x is: k counts as often as x is not NULL."""
        at = 0 if values[0] is not None else 1
        key, other = values[at], arg.args[1 - at]
        part = self.part(other)
        count = count_part(self.attempt, (other,), self.like)
        if part is None or count is None or key is None:
            return None
        refuse_wrap(self.attempt, arg)
        times = self._times(key, count, arg, of_count=True)
        return _combine(self.like, arg, *((times, part) if at == 0 else (part, times)))

    def _product(self, arg: Call) -> Expr | None:
        if may_be_error(self.attempt, arg.args):
            return None
        self.bounded = False
        for at in (0, 1):
            factor = keyed(self.attempt, arg.args[at])
            if factor is not None:
                part = self.part(arg.args[1 - at])
                if part is None:
                    return None
                refuse_wrap(self.attempt, arg)
                return self._times(factor, part, arg, of_count=False)
        return None

    def _minus(self, arg: Call) -> Expr | None:
        part = self.part(arg.args[0])
        if part is None:
            return None
        refuse_wrap(self.attempt, arg)
        found = opposite(part)
        if found is None:
            raise _may_overflow(self.like, arg, "has too many digits")
        return found

    def _coalesce(self, arg: Call) -> Expr | None:
        """COALESCE(x, 0) adds what x adds, and 0 where every x is NULL."""
        if len(arg.args) != 2 or may_hold_no_rows(self.attempt, self.like):
            return None
        value, default = arg.args
        part = self.part(value) if _is_zero(default) else None
        if part is None:
            return None
        return Call("coalesce", (part, _zero(default, part.type)), part.type, False)

    def _case(self, arg: Call) -> Expr | None:
        conditions, values = branches(arg)
        tests = keyed_all(self.attempt, conditions)
        if tests is None:
            return self._case_of_filtered(conditions, values)
        parts = [self._branch(value, arg) for value in values]
        done = [p for p in parts if p is not None]
        if len(done) < len(parts):
            return None
        alike = same_type(done)
        if alike is None:
            raise _may_overflow(self.like, arg, "has branches of too many digits")
        return case_of(tests, tuple(alike))

    def _branch(self, value: Expr, arg: Call) -> Expr | None:
        if isinstance(value, Lit) and value.value is None:
            return Lit(None, sum_type(arg.type) or arg.type)
        return self.part(value)

    def _case_of_filtered(
        self, conditions: tuple[Expr, ...], values: tuple[Expr, ...]
    ) -> Expr | None:
        """`CASE WHEN p THEN x ELSE 0 END` from a stored `SUM(x) FILTER (WHERE p)`: the rest of the
        rows adds 0, so that the sum is never NULL."""
        if len(conditions) != 1 or len(values) != 2 or may_hold_no_rows(self.attempt, self.like):
            return None
        value, default = values
        like = Agg("sum", (value,), self.like.type, filter=conditions[0])
        measure = lookup(self.attempt, "sum", (value,), like) if _is_zero(default) else None
        # where x is NULL in every row that passes, and in no other, the sum is NULL and not 0
        if measure is None or not never_null(self.attempt, value, self.like):
            return None
        self.sources.append(measure.name)
        found = stored(measure)
        return Call("coalesce", (found, _zero(default, found.type)), found.type, False)


_PARTS: Final = {
    "cast": Summing._cast,
    "add": Summing._plus,
    "sub": Summing._plus,
    "mul": Summing._product,
    "neg": Summing._minus,
    "coalesce": Summing._coalesce,
    "case": Summing._case,
}


def roll_up_sum(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """SUM(x).

    Args:
        attempt: The query and the view, with what the rules before have found.
        agg: The aggregate that is asked for.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, SUM(qty) AS q FROM sales GROUP BY item",
    ...     "SELECT SUM(qty) AS a FROM sales",
    ... )
    SELECT SUM(`q`) AS `a` FROM c
    >>> answer(
    ...     "SELECT item, COUNT(*) AS n FROM sales GROUP BY item",
    ...     "SELECT SUM(item) AS a FROM sales",
    ... )
    SELECT SUM((CAST(`item` AS BIGINT) * `n`)) AS `a` FROM c
    >>> answer(
    ...     "SELECT item, SUM(ratio) AS q FROM sales GROUP BY item",
    ...     "SELECT SUM(ratio) AS a FROM sales",
    ... )
    FLOAT_NOT_EXACT: SUM(ratio) adds DOUBLE values, and the sum of sums may differ in the
    last digits
    """
    kind = agg.args[0].type
    if sum_type(kind) is None:
        raise not_derivable(
            attempt, agg, Message("sums of {type} are not rolled up", type=Word(kind.upper()))
        )
    if attempt.groups.regroup:
        refuse_inexact_sum(attempt, agg, kind)
    part = Summing(attempt, agg).part(agg.args[0])
    return None if part is None else per_group_sum(attempt, part)


def roll_up_try_sum(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """TRY_SUM(x) of stored SUMs, which did not overflow if the session's settings are ANSI, or of
    those stored for an AVG, where all sums are proven small.

    Any other stored TRY_SUM that is NULL may have overflowed, or have had nothing to add.
    """
    kind = agg.args[0].type
    if kind not in INTEGRAL and decimal_parts(kind) is None:
        raise not_derivable(
            attempt, agg, Message("TRY_SUM of {type} is not rolled up", type=Word(kind.upper()))
        )
    measure = lookup(attempt, "sum", agg.args, agg) if attempt.options.ansi else None
    measure = measure or _small_try_sum(attempt, agg)
    if measure is None:
        raise not_derivable(
            attempt, agg, Message("a stored sum must be one that raises on overflow")
        )
    if not attempt.groups.regroup:
        return stored(measure)
    part = _to_add_up(attempt, measure)
    total = Agg("try_sum", (part,), sum_type(part.type) or part.type)
    return total if total.type == agg.type else Call("try_cast", (total,), agg.type)


def _to_add_up(attempt: ViewAttempt, measure: Measure) -> Expr:
    """A stored sum, in a type in which more of them overflow no earlier than their total does:
    Spark adds up the rows in another order, x, -x and x where the stored sums are x, x and -x.

    Of a definition that nothing was stored of yet, nothing is proven, nor read.
    """
    found, plan = stored(measure), attempt.view.plan
    if not (attempt.options.ansi and attempt.groups.regroup) or plan.rows is None:
        return found
    proven = measure.name in plan.exact_sums and not attempt.shared.extra
    if proven or _stays_small(measure.agg.args[0]):
        return found
    return cast_to(found, _LONG_DECIMAL)


def _stays_small(arg: Expr) -> bool:
    """Whether sums of so many values as there can be stay within BIGINT, by their types alone."""
    if arg.type != "bigint":
        return True
    of_types = {c: type_bounds(c) for c in columns(arg) if c.type in INTEGRAL}
    bounds = expression_bounds(arg, of_types)
    return bounds is not None and max(map(abs, bounds)) <= _MOST_OF_NARROW


def _small_try_sum(attempt: ViewAttempt, agg: Agg) -> Measure | None:
    """The stored TRY_SUM, if no sum of its values overflows."""
    measure = lookup(attempt, "try_sum", agg.args, agg)
    small = measure is not None and measure.name in attempt.view.plan.exact_sums
    return measure if small and not attempt.shared.extra else None


def roll_up_wrapping_sum(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """SUM(x) of whole numbers without ANSI, of stored SUMs with ANSI, which did not overflow.

    Their own sum must not raise either, where the query's would have started again from the other
    end: so the groups are those that are stored, or all sums are proven small.
    """
    measure = lookup(attempt, "sum", agg.args, agg)
    if measure is None or not attempt.options.ansi:
        raise not_derivable(attempt, agg)
    if not attempt.groups.regroup:
        return stored(measure)
    if attempt.shared.extra or measure.name not in attempt.view.plan.exact_sums:
        raise not_derivable(attempt, agg)
    return per_group_sum(attempt, stored(measure))


def refuse_inexact_sum(attempt: ViewAttempt, agg: Agg, kind: str) -> None:
    """Raise where a sum of sums of `kind` could differ from the sum."""
    if kind in FLOATS and not attempt.options.approximate_floats:
        raise float_not_exact(
            agg,
            "adds {type} values, and the sum of sums may differ in the last digits",
            type=Word(kind.upper()),
        )
    parts = decimal_parts(kind)
    if parts is not None and parts[0] > SAFE_SUM_PRECISION and not attempt.options.ansi:
        raise Refused(
            Reason(
                ReasonCode.MAY_OVERFLOW,
                "{agg}: a stored sum of {type} that overflowed is NULL and would be skipped",
                "use a DECIMAL of at most {digits} digits",
                agg=Sql(spell(agg)),
                type=Word(kind.upper()),
                digits=Number(SAFE_SUM_PRECISION),
            )
        )


def _is_zero(expr: Expr) -> bool:
    """True for a constant 0, but not for -0.0, which SUM turns into 0.0."""
    value = expr.value if isinstance(expr, Lit) else None
    return value == 0 and not str(value).startswith("-")


def _zero(literal: Expr, type: str) -> Expr:
    return ZERO if type == "bigint" else cast_to(literal, type)


def _combine(agg: Agg, arg: Call, left: Expr, right: Expr) -> Expr:
    if left.type != right.type and "bigint" in (left.type, right.type):
        left, right = (
            cast_to(side, _LONG_DECIMAL) if side.type == "bigint" else side
            for side in (left, right)
        )
    kind = sum_of_sums_type(left.type, right.type)
    if kind is None:
        raise _may_overflow(agg, arg, "has too many digits in separate sums")
    return Call(arg.op, (left, right), kind)


def _may_overflow(agg: Agg, arg: Expr, why: str) -> Refused:
    return Refused(
        Reason(
            ReasonCode.MAY_OVERFLOW,
            "{agg}: {arg} of {type} {why}",
            "store {agg}",
            agg=Sql(spell(agg)),
            arg=Sql(spell(arg)),
            type=Word(arg.type.upper()),
            why=Word(why),
        )
    )
