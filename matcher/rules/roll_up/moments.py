"""STDDEV and VARIANCE from stored ones, with the mean and the count of each group.

Inexact like every sum in DOUBLE, so only under `spark.cachemgr.approximateFloats=true`. The groups
are merged one by one as Spark merges its partial aggregates (`CentralMomentAgg`; Chan, Golub and
LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979). The
shortcut over sums of squares would lose all digits where the mean is large.
"""

from __future__ import annotations

from matcher.expr import Agg, Call, Expr, Lit
from matcher.ir import Measure
from matcher.render_moments import MERGE_MOMENTS
from matcher.rules.attempt import Attempt, cast_to
from matcher.rules.roll_up.common import (
    NeedsRegrouping,
    float_not_exact,
    lookup,
    not_derivable,
    stored,
)
from matcher.rules.roll_up.counts import count_part
from matcher.types import VARIANCES


def roll_up_variance(attempt: Attempt, agg: Agg) -> Expr | None:
    """VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP, from any one of them."""
    count = count_part(attempt, agg.args, agg)
    mean = lookup(attempt, "avg", agg.args, agg)
    variance = _stored(attempt, agg)
    if count is None or mean is None or variance is None:
        return None
    if not attempt.options.approximate_floats:
        raise float_not_exact(agg, "adds up in DOUBLE, and may differ in the last digits")
    if not attempt.regroup:
        raise NeedsRegrouping
    args = (cast_to(count, "double"), stored(mean), _squares(variance, count))
    return Agg(MERGE_MOMENTS, args, "double", params=(agg.func,))


def _stored(attempt: Attempt, agg: Agg) -> Measure | None:
    found = (lookup(attempt, func, agg.args, agg) for func in VARIANCES)
    return next((measure for measure in found if measure is not None), None)


def _squares(measure: Measure, count: Expr) -> Expr:
    """The sum of squared distances from the group's mean; 0 or NULL for a group of one."""
    value = stored(measure)
    if measure.agg.func.startswith("stddev"):
        value = Call("mul", (value, value), "double")
    rows = count if measure.agg.func.endswith("pop") else _less_one(count)
    return Call("mul", (value, cast_to(rows, "double")), "double")


def _less_one(count: Expr) -> Expr:
    return Call("sub", (count, Lit(1, "bigint")), "bigint")


def refuse_moment(attempt: Attempt, agg: Agg) -> Expr | None:
    """COVAR, CORR, SKEWNESS, KURTOSIS: what merging them takes is not stored."""
    raise not_derivable(
        attempt, agg, "it is answered at the query's own grouping only, from the stored value"
    )
