"""STDDEV and VARIANCE from stored ones, with the mean and the count of each group; COVAR and CORR
from any one of them, SKEWNESS and KURTOSIS from the same one (a skewness also from a kurtosis).

Inexact like every sum in DOUBLE, so only under `spark.cachemgr.approximateFloats=true`. The groups
are merged one by one as Spark merges its partial aggregates (`CentralMomentAgg`; Chan, Golub and
LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979). The
shortcut over sums of squares would lose all digits where the mean is large.
"""

from __future__ import annotations

from matcher.model.expr import Agg, Call, Expr, Lit
from matcher.model.ir import Measure
from matcher.model.moments import COVARIANCES, HIGHER, moment_partials
from matcher.model.types import VARIANCES
from matcher.render.moments import MERGE_MOMENTS
from matcher.rules.attempt import ViewAttempt, cast_to
from matcher.rules.roll_up.common import (
    NeedsRegrouping,
    float_not_exact,
    lookup,
    stored,
)
from matcher.rules.roll_up.counts import count_part


def roll_up_variance(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP, from any one of them.

    Args:
        attempt: The query and the view, with what the rules before have found.
        agg: The aggregate that is asked for.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, VAR_SAMP(ratio) AS v FROM sales GROUP BY item",
    ...     "SELECT VAR_SAMP(ratio) AS a FROM sales",
    ... )
    FLOAT_NOT_EXACT: VAR_SAMP(ratio) adds up in DOUBLE, and may differ in the last digits
    """
    count = count_part(attempt, agg.args, agg)
    mean = lookup(attempt, "avg", agg.args, agg)
    variance = _stored(attempt, agg)
    if count is None or mean is None or variance is None:
        return None
    if not attempt.options.approximate_floats:
        raise float_not_exact(agg, "adds up in DOUBLE, and may differ in the last digits")
    if not attempt.groups.regroup:
        raise NeedsRegrouping
    args = (cast_to(count, "double"), stored(mean), _squares(variance, count))
    return Agg(MERGE_MOMENTS, args, "double", params=(agg.func,))


def _stored(attempt: ViewAttempt, agg: Agg) -> Measure | None:
    found = (lookup(attempt, func, agg.args, agg, agg.params) for func in VARIANCES)
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


def roll_up_covariance(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """COVAR_POP, COVAR_SAMP and CORR, from any one of them; the order of the two says nothing."""
    for args in (agg.args, agg.args[::-1]):
        for func in COVARIANCES:
            parts = _parts(attempt, func, args, agg)
            if parts is not None:
                return _merged(attempt, agg, _of_two(func, parts))
    return None


def roll_up_higher(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """SKEWNESS and KURTOSIS."""
    for func in HIGHER[HIGHER.index(agg.func) :]:
        parts = _parts(attempt, func, agg.args, agg)
        if parts is not None:
            return _merged(attempt, agg, _of_powers(func, parts))
    return None


def _parts(
    attempt: ViewAttempt, func: str, args: tuple[Expr, ...], like: Agg
) -> dict[str, Expr] | None:
    """The stored `func(args)` and all that is stored with it; None where something is not."""
    measure = lookup(attempt, func, args, like, like.params)
    if measure is None:
        return None
    held = {m.agg: m for m in attempt.view.plan.measures}
    found = {name: held.get(agg) for name, agg in moment_partials(measure.agg).items()}
    parts = {name: stored(m) for name, m in found.items() if m is not None}
    return {"own": stored(measure), **parts} if len(parts) == len(found) else None


def _merged(attempt: ViewAttempt, agg: Agg, args: tuple[Expr, ...]) -> Expr:
    if not attempt.options.approximate_floats:
        raise float_not_exact(agg, "adds up in DOUBLE, and may differ in the last digits")
    if not attempt.groups.regroup:
        raise NeedsRegrouping
    return Agg(MERGE_MOMENTS, args, "double", params=(agg.func,))


def _of_two(func: str, parts: dict[str, Expr]) -> tuple[Expr, ...]:
    """Count, both means, both sums of squared distances, and the sum of the distances' products."""
    count = parts["count"]
    rows = cast_to(count if func != "covar_samp" else _less_one(count), "double")
    covariance = parts["covar"] if func == "corr" else parts["own"]
    squares = [_times(parts[f"var_{name}"], cast_to(count, "double")) for name in "xy"]
    means = [_mean_or_value(parts, f"_{name}") for name in "xy"]
    return (cast_to(count, "double"), *means, *squares, _times(covariance, rows))


def _of_powers(func: str, parts: dict[str, Expr]) -> tuple[Expr, ...]:
    """Count, mean, and the second to fourth powers of the distances, added up."""
    count = cast_to(parts["count"], "double")
    squares = _times(parts["var"], count)
    skew = parts["own"] if func == "skewness" else parts["skew"]
    root = Call("sqrt", (_times(squares, squares, squares),), "double")
    cubes = Call("div", (_times(skew, root), Call("sqrt", (count,), "double")), "double")
    found = (count, _mean_or_value(parts, ""), squares, cubes)
    if func == "skewness":
        return (*found, Lit(0.0, "double"))
    above = Call("add", (parts["own"], Lit(3.0, "double")), "double")
    fourth = Call("div", (_times(above, squares, squares), count), "double")
    return (*found, fourth)


def _mean_or_value(parts: dict[str, Expr], which: str) -> Expr:
    """The mean; where all values are the same, the value."""
    same = Call("eq", (parts[f"var{which}"], Lit(0.0, "double")), "boolean")
    return Call("case", (same, parts[f"least{which}"], parts[f"avg{which}"]), "double")


def _times(*factors: Expr) -> Expr:
    product = factors[0]
    for factor in factors[1:]:
        product = Call("mul", (product, factor), "double")
    return product
