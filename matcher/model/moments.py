"""What a variance, covariance, correlation, skewness or kurtosis needs beside itself, so that
groups can be merged into larger ones as Spark merges its partial results.

Of two arguments only the rows count in which neither is NULL. Beside each mean the least value is
stored: in a group whose values are all the same it is the mean to the last digit, which SUM / COUNT
need not be. So values that do not differ over all groups are known as such, and the result is NULL
(or a division by zero) exactly where Spark's is.
"""

from __future__ import annotations

from typing import Final

from matcher.model.expr import Agg, Call, Expr
from matcher.model.types import VARIANCES, sum_type

COVARIANCES: Final = ("covar_pop", "covar_samp", "corr")
HIGHER: Final = ("skewness", "kurtosis")


def moment_partials(agg: Agg) -> dict[str, Agg]:
    """The aggregates to store with `agg`, by the name of their part; none for other aggregates."""
    if agg.distinct:
        return {}
    if agg.func in VARIANCES:
        (arg,) = agg.args
        counted = arg.nullable or agg.filter is not None
        found = {"avg": Agg("avg", agg.args, "double", filter=agg.filter)}
        if counted:
            found["count"] = Agg("count", agg.args, "bigint", nullable=False, filter=agg.filter)
        return found
    if agg.func in HIGHER:
        found = _of_one(agg.args[0], agg.filter)
        if agg.func == "kurtosis":
            found["skew"] = Agg("skewness", agg.args, "double", filter=agg.filter)
        return {"count": _count(agg), **found}
    if agg.func in COVARIANCES:
        x, y = agg.args
        found = {"count": _count(agg)}
        for name, arg, other in (("x", x, y), ("y", y, x)):
            parts = _of_one(arg, _both(agg.filter, other))
            found |= {f"{part}_{name}": partial for part, partial in parts.items()}
        if agg.func == "corr":
            found["covar"] = Agg("covar_pop", agg.args, "double", filter=agg.filter)
        return found
    return {}


def _of_one(arg: Expr, filter: Expr | None) -> dict[str, Agg]:
    return {
        "avg": Agg("avg", (arg,), "double", filter=filter),
        "least": Agg("min", (arg,), "double", filter=filter),
        "var": Agg("var_pop", (arg,), "double", filter=filter),
    }


def _count(agg: Agg) -> Agg:
    return Agg("count", agg.args, "bigint", nullable=False, filter=agg.filter)


def _both(filter: Expr | None, other: Expr) -> Expr | None:
    """The rows that count for one argument: those in which the other is not NULL."""
    if isinstance(other, Call) and other.op == "cast":  # a number as DOUBLE is NULL with it alone
        other = other.args[0] if sum_type(other.args[0].type) is not None else other
    if not other.nullable:
        return filter
    there = Call("isnotnull", (other,), "boolean", False)
    return there if filter is None else Call("and", (filter, there), "boolean")
