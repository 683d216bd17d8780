"""Aggregates: each one of the query from what the cache stores, exactly, with Spark's result type,
or not at all.

- any aggregate: the same one, stored, where the groups are the same;
- else by the handlers of `matcher.rules.roll_up`, one for a kind of aggregate;
- with a FILTER over group keys: the stored groups filtered instead of the rows.

Over a cache without aggregation every known aggregate is computed from its rows, but none that adds
floating point numbers, or large whole ones in DOUBLE: these rows lie in another order than the
table's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from matcher.model.expr import Agg, Call, Col, Expr, transform
from matcher.model.message import CacheName, Message
from matcher.model.moments import COVARIANCES, HIGHER
from matcher.model.row_order import adds_floats, averages_integers, picks_among_equals
from matcher.model.types import VARIANCES, is_collated
from matcher.predicates.aggregate_filters import as_filter, skips_nulls
from matcher.predicates.captured_settings import WRAPPING_SUM
from matcher.predicates.domains import Domain, point
from matcher.predicates.raising import raising
from matcher.rules.attempt import ViewAttempt, cast_to, may_be_error
from matcher.rules.derive_columns import derive
from matcher.rules.roll_up.averages import refuse_inexact_of_rows, roll_up_average
from matcher.rules.roll_up.common import (
    ZERO,
    NeedsRegrouping,
    column,
    float_not_exact,
    keyed,
    not_derivable,
)
from matcher.rules.roll_up.counts import roll_up_count
from matcher.rules.roll_up.distinct import (
    MERGES,
    not_distinct,
    roll_up_approximate_count,
    roll_up_distinct,
    roll_up_percentile,
    roll_up_set,
    roll_up_sketch,
)
from matcher.rules.roll_up.extremes import roll_up_extreme
from matcher.rules.roll_up.moments import roll_up_covariance, roll_up_higher, roll_up_variance
from matcher.rules.roll_up.picks import roll_up_by, roll_up_pick
from matcher.rules.roll_up.sums import roll_up_sum, roll_up_try_sum, roll_up_wrapping_sum

_ZERO: Final = Domain((point(0.0),))
Handler = Callable[[ViewAttempt, Agg], Expr | None]

# Aggregates that may be computed from rows: their value does not depend on the order of rows
# (float rounding aside), or Spark states no order.
_FROM_ROWS: Final = frozenset(
    "sum count min max avg try_sum try_avg stddev_samp stddev_pop var_samp var_pop corr covar_samp "
    "covar_pop bit_and bit_or bit_xor skewness kurtosis first last max_by min_by collect_set "
    "approx_count_distinct hll_sketch_agg hll_union_agg percentile".split()
)


# COUNT is 0 over no rows, and these are NULL. So what is stored of all rows is the largest of the
# one row that has it, or of none.
_OF_TOTAL: Final = frozenset(
    ("count", "sum", "avg", "percentile", *VARIANCES, *COVARIANCES, *HIGHER)
)


def roll_up_aggregate(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """`agg` over the view's rows, or None after noting a missing column.

    Args:
        attempt: The query and the view, with what the rules before have found.
        agg: The aggregate that is asked for.

    Raises:
        Refused: the reason why the aggregate cannot be had from this view.
        NeedsRegrouping: it can, if the groups are aggregated again.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, MAX(qty) AS q FROM sales GROUP BY item",
    ...     "SELECT MAX(qty) AS a FROM sales",
    ... )
    SELECT MAX(`q`) AS `a` FROM c
    >>> answer(
    ...     "SELECT item, MAX(qty) AS q FROM sales GROUP BY item",
    ...     "SELECT MIN(qty) AS a FROM sales",
    ... )
    AGG_NOT_DERIVABLE: MIN(qty) cannot be computed from cache c, which stores MAX(qty)
    """
    if picks_among_equals(agg) and is_collated(agg.args[0].type):
        raise not_derivable(
            attempt, agg, Message("of strings that a collation takes for one, any is shown")
        )
    if attempt.view.keys is None:
        return _from_rows(attempt, agg)
    measure = attempt.stored_aggs.get(attempt.context.canonical(agg))
    if measure is not None and not attempt.groups.regroup:
        return column(measure, agg.type)
    if measure is not None and agg.func in _OF_TOTAL and _is_total(attempt) and not _adds_up(agg):
        total = Agg("max", (column(measure, agg.type),), agg.type, True)
        return Call("coalesce", (total, ZERO), agg.type) if agg.func == "count" else total
    if not attempt.groups.regroup and _raises_by_keys(attempt, agg):
        raise NeedsRegrouping
    agg = as_filter(agg)
    handler = roll_up_distinct if agg.distinct else _ROLL_UPS.get(agg.func)
    if handler is None:
        raise not_derivable(attempt, agg)
    # of rows that a FILTER leaves out an argument is not worked out, nor may it be of a stored row
    shielded = agg.filter is not None and may_be_error(attempt, agg.args)
    found = None if shielded else handler(attempt, agg)
    if found is None and agg.filter is not None:
        found = _filtered(attempt, agg, handler)
    if found is None:
        raise not_distinct(attempt, agg) if agg.distinct else not_derivable(attempt, agg)
    return cast_to(found, agg.type)


def _raises_by_keys(attempt: ViewAttempt, agg: Agg) -> bool:
    """True of `COUNT(10 / k)` over a key: Spark works it out for each row, whichever groups HAVING
    or a filter above keeps, but what is a column of stored groups for those alone."""
    parts = raising(agg, ansi=attempt.options.ansi, overflow=False)
    return any(keyed(attempt, part) is not None for part in parts)


def _is_total(attempt: ViewAttempt) -> bool:
    """Whether the query wants its one row of a cube's empty set, which holds one row, or none where
    the base tables have none."""
    query, chosen = attempt.query, attempt.grouping_set
    alone = not attempt.shared.extra and query.block.grouping_sets is None
    return query.group_keys == () and chosen is not None and not chosen.keys and alone


def _adds_up(agg: Agg) -> bool:
    return agg.func in ("count", "sum") and not agg.distinct and not adds_floats(agg)


def _filtered(attempt: ViewAttempt, agg: Agg, handler: Handler) -> Expr | None:
    """FILTER over group keys: filter the stored groups instead of the rows."""
    assert agg.filter is not None
    condition = keyed(attempt, agg.filter)
    if condition is None:
        return None
    if not attempt.groups.regroup:
        raise NeedsRegrouping
    bare = Agg(agg.func, agg.args, agg.type, agg.nullable, agg.distinct, None, agg.params)
    found = handler(attempt, bare)
    if found is None:
        return None
    kept = condition
    total = transform(found, lambda node: _kept(node, kept) if isinstance(node, Agg) else None)
    # a group may have no row that passes: SUM of counts is NULL there, COUNT is 0
    covered = isinstance(total, Call) and total.op == "coalesce"
    if agg.func == "count" and not agg.distinct and not covered:
        return Call("coalesce", (total, ZERO), "bigint")
    return total


def _kept(agg: Agg, condition: Expr) -> Agg:
    """`agg` of the stored rows that pass.

    Its arguments may raise where the condition fails (`10 / k` for k = 0), and Spark may work out
    what several aggregates share ahead of their FILTERs, but never ahead of a CASE.
    """
    if skips_nulls(agg) and not all(isinstance(a, Col) for a in agg.args):
        args = tuple(Call("case", (condition, a), a.type) for a in agg.args)
        return Agg(agg.func, args, agg.type, True, agg.distinct, agg.filter, agg.params)
    both = condition
    if agg.filter is not None:
        both = Call("and", (agg.filter, condition), "boolean")
    return Agg(agg.func, agg.args, agg.type, True, agg.distinct, both, agg.params)


def _refuse_order(attempt: ViewAttempt, agg: Agg) -> None:
    """Raise where the order of the cache's rows, which is not that of the table's, would show."""
    if averages_integers(agg):
        refuse_inexact_of_rows(attempt, agg)
    if attempt.options.approximate_floats:
        return
    if adds_floats(agg):
        raise float_not_exact(
            agg,
            "adds in DOUBLE, and the rows of {cache} lie in another order",
            cache=CacheName(attempt.view.name),
        )
    if picks_among_equals(agg) and not _holds_no_zero(attempt, agg.args[0]):
        raise float_not_exact(agg, "shows the first of -0.0 and 0.0, and rows lie in another order")


def _holds_no_zero(attempt: ViewAttempt, arg: Expr) -> bool:
    """True for a FLOAT or DOUBLE that is never zero, by what the query asks: by the values of its
    constants, so that the answer holds for no others."""
    values = attempt.context.domain(attempt.context.canonical(arg))
    if values.contains(_ZERO):
        return False
    attempt.notes.by_constants = True
    return True


def _from_rows(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    if agg.func not in _FROM_ROWS:
        raise not_derivable(attempt, agg)
    _refuse_order(attempt, agg)
    args = [derive(attempt, arg, "aggregate") for arg in agg.args]
    flt = None if agg.filter is None else derive(attempt, agg.filter, "aggregate")
    if any(a is None for a in args) or (agg.filter is not None and flt is None):
        return None
    done = tuple(a for a in args if a is not None)
    return Agg(agg.func, done, agg.type, agg.nullable, agg.distinct, flt, agg.params)


_ROLL_UPS: Final[dict[str, Handler]] = {
    "count": roll_up_count,
    "sum": roll_up_sum,
    "try_sum": roll_up_try_sum,
    WRAPPING_SUM: roll_up_wrapping_sum,
    "avg": roll_up_average,
    "try_avg": roll_up_average,
    **dict.fromkeys(("min", "max", "bit_and", "bit_or", "bit_xor"), roll_up_extreme),
    **dict.fromkeys(("first", "last"), roll_up_pick),
    **dict.fromkeys(("max_by", "min_by"), roll_up_by),
    **dict.fromkeys(VARIANCES, roll_up_variance),
    **dict.fromkeys(COVARIANCES, roll_up_covariance),
    **dict.fromkeys(HIGHER, roll_up_higher),
    "collect_set": roll_up_set,
    "approx_count_distinct": roll_up_approximate_count,
    "percentile": roll_up_percentile,
    **dict.fromkeys(MERGES, roll_up_sketch),
}

__all__ = ["NeedsRegrouping", "roll_up_aggregate"]
