"""AVG and TRY_AVG: SUM / COUNT, never from AVG, where that is exact (docs/contract.md):

- DECIMAL: where the quotient keeps ten digits more than AVG shows;
- whole numbers, which Spark averages in DOUBLE: where the sums are proven to stay within 2^53, and
    no table joined to the cache repeats rows;
- FLOAT and DOUBLE: only where inexact results are allowed.
"""

from __future__ import annotations

from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, columns
from matcher.model.integer_bounds import Bounds, is_exact, type_bounds
from matcher.model.message import CacheName, Message, Several, Sql, TableName, Word, listed
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.types import FLOATS, INTEGRAL, MAX_DECIMAL, avg_type, decimal_parts, decimal_type
from matcher.model.types import sum_type as type_of_sum
from matcher.rules.attempt import Refused, ViewAttempt, cast_to, per_group_sum, spell
from matcher.rules.join_tables import joined_once
from matcher.rules.roll_up.common import ZERO, not_derivable
from matcher.rules.roll_up.counts import count_part
from matcher.rules.roll_up.sums import Summing, refuse_inexact_sum

_LONG_DECIMAL: Final = (20, 0)
_MARGIN_DIGITS: Final = 10


def roll_up_average(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """AVG(x); TRY_AVG(x) is the same, since nothing that is let through can overflow.

    Args:
        attempt: The query and the view, with what the rules before have found.
        agg: The aggregate that is asked for.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, AVG(price) AS p FROM sales GROUP BY item",
    ...     "SELECT AVG(price) AS a FROM sales",
    ... )
    SELECT CAST((CAST(SUM(`__sum_0`) AS DECIMAL(19,2)) / CAST(NULLIF(SUM(`__count_0`), 0L)
    AS DECIMAL(20,0))) AS DECIMAL(13,6)) AS `a` FROM c
    """
    arg = agg.args[0]
    if avg_type(arg.type) is None:
        raise not_derivable(
            attempt,
            agg,
            Message("averages of {type} are not rolled up", type=Word(arg.type.upper())),
        )
    summing = Summing(attempt, agg)
    part = summing.part(arg)
    count = count_part(attempt, (arg,), agg)
    if part is None or count is None:
        return None
    _refuse_inexact(attempt, agg, summing)
    total = per_group_sum(attempt, part)
    rows = Call("nullif", (per_group_sum(attempt, count), ZERO), "bigint")
    if decimal_parts(arg.type) is None:
        dividend, divisor, kind = cast_to(total, "double"), "double", "double"
    else:
        dividend = cast_to(total, type_of_sum(arg.type) or arg.type)
        divisor, kind = decimal_type(*_LONG_DECIMAL), "quotient"
    return Call("div", (dividend, cast_to(rows, divisor)), kind)


def _refuse_inexact(attempt: ViewAttempt, agg: Agg, summing: Summing) -> None:
    kind = agg.args[0].type
    if kind in INTEGRAL:
        _refuse_repeated(attempt, agg)
        proven = summing.bounded and set(summing.sources) <= attempt.view.plan.exact_sums
        if proven or attempt.options.assume_exact_averages:
            return
        raise Refused(
            Reason(
                ReasonCode.AVG_NOT_EXACT,
                "{agg}: Spark averages whole numbers in DOUBLE, and the sums of {cache} are not "
                "proven to stay within 2^53",
                "store {agg} at the query's grouping",
                agg=Sql(spell(agg)),
                cache=CacheName(attempt.view.name),
            )
        )
    if kind in FLOATS:
        refuse_inexact_sum(attempt, agg, kind)
        return
    if not decimal_average_is_exact(kind, precision_loss=attempt.options.decimal_precision_loss):
        raise Refused(
            Reason(
                ReasonCode.AVG_NOT_EXACT,
                "{agg} of {type} has more digits than SUM / COUNT keeps",
                "store {agg} at the query's grouping, or use a DECIMAL of fewer digits",
                agg=Sql(spell(agg)),
                type=Word(kind.upper()),
            )
        )


def refuse_inexact_of_rows(attempt: ViewAttempt, agg: Agg) -> None:
    """Raise where an average of whole numbers shows the order of the rows of a cache without
    groups, which is not that of the table's: where their values are not proven to stay, all
    together, within the 2^53 up to which DOUBLE adds exactly.

    Args:
        attempt: The query and the view, with what the rules before have found.
        agg: An average of whole numbers.

    Raises:
        Refused: they are not.
    """
    _refuse_repeated(attempt, agg)
    plan = attempt.view.plan
    rows = plan.rows if plan.base_rows is None else plan.base_rows
    if attempt.options.assume_exact_averages:
        return
    if rows is None or not is_exact(agg.args[0], _bounds(attempt, agg.args[0]), rows):
        raise Refused(
            Reason(
                ReasonCode.AVG_NOT_EXACT,
                "{agg}: Spark averages whole numbers in DOUBLE, and those of {cache} are not "
                "proven to add up to 2^53 at most",
                "store {agg} at the query's grouping, or average CAST({arg} AS DECIMAL(19,0))",
                agg=Sql(spell(agg)),
                cache=CacheName(plan.name),
                arg=Sql(spell(agg.args[0])),
            )
        )


def _bounds(attempt: ViewAttempt, arg: Expr) -> dict[Col, Bounds]:
    """Of the columns of an argument: as a refresh saw them in the rows behind the cache; of a table
    that is joined to it, by their types alone."""
    relations, places = attempt.query.block.relations, attempt.query.relations
    known = dict(attempt.view.plan.bounds)
    found: dict[Col, Bounds] = {}
    for column in columns(arg):
        if column.type in INTEGRAL:
            place = relations[places.index(column.rel)].key
            seen = known.get((place, column.name.lower()))
            joined = column.rel in attempt.shared.extra
            found[column] = type_bounds(column) if joined or seen is None else seen
    return found


def _refuse_repeated(attempt: ViewAttempt, agg: Agg) -> None:
    if not joined_once(attempt):
        raise Refused(
            Reason(
                ReasonCode.AVG_NOT_EXACT,
                "{agg}: Spark averages whole numbers in DOUBLE, and a table joined to {cache} may "
                "repeat rows until their sum leaves 2^53",
                "join {tables} in the definition of {cache}, or by a key of which a RECORD "
                "PRESERVING JOIN says that it is unique, validated at the version that is read",
                agg=Sql(spell(agg)),
                cache=CacheName(attempt.view.name),
                tables=_extra_names(attempt),
            )
        )


def _extra_names(attempt: ViewAttempt) -> Several:
    relations, places = attempt.query.block.relations, attempt.query.relations
    names = sorted({relations[places.index(rel)].name for rel in attempt.shared.extra})
    return listed(TableName, names)


def decimal_average_is_exact(kind: str, *, precision_loss: bool) -> bool:
    """True if AVG of DECIMALs is what is computed from their SUM and COUNT.

    SUM / COUNT, rounded at the quotient's scale and then to AVG's, equals AVG.

    S / n with n rows is at least 1 / (n · 2 · 10^(s+4)) away from a rounding boundary of scale s +
    4 unless it is on it, so the first rounding at scale d cannot cross it if n < 10^(d-s-4): ten
    digits of margin allow 10^10 rows. That leaves DECIMALs of at most 14 digits, whose sums and
    averages do not overflow either.

    Args:
        kind: The type of the argument.
        precision_loss: Whether a quotient of too many digits loses some of them
            (`spark.sql.decimalOperations.allowPrecisionLoss`).

    >>> decimal_average_is_exact("decimal(12,2)", precision_loss=True)
    True
    >>> decimal_average_is_exact("decimal(20,2)", precision_loss=True)
    False
    """
    parts = decimal_parts(kind)
    if parts is None or not precision_loss:
        return False
    precision, scale = parts
    quotient_scale = max(6, scale + _LONG_DECIMAL[0] + 1)
    digits = precision + 10 - scale
    kept = quotient_scale
    if digits + quotient_scale > MAX_DECIMAL:  # DecimalType.adjustPrecisionScale
        kept = max(MAX_DECIMAL - digits, min(quotient_scale, 6))
    return kept - (scale + 4) >= _MARGIN_DIGITS
