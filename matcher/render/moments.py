"""The SQL that merges counts, means and sums of powers of groups into a variance, covariance,
correlation, skewness or kurtosis.

Spark has no aggregate for it, so the groups are collected and folded, with the formulas by which
Spark merges its own partial aggregates (`CentralMomentAgg`, `Covariance` and `PearsonCorrelation`,
their `mergeExpressions`) and finishes them (`evaluateExpression`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MERGE_MOMENTS: Final = "merge_moments"

_FINISH: Final = {
    "var_pop": "CASE WHEN a.n > 0D THEN a.q / a.n END",
    "var_samp": "CASE WHEN a.n > 1D THEN a.q / (a.n - 1D) END",
    "stddev_pop": "CASE WHEN a.n > 0D THEN SQRT(a.q / a.n) END",
    "stddev_samp": "CASE WHEN a.n > 1D THEN SQRT(a.q / (a.n - 1D)) END",
    "covar_pop": "CASE WHEN a.n > 0D THEN a.c / a.n END",
    "covar_samp": "CASE WHEN a.n > 1D THEN a.c / (a.n - 1D) END",
    "corr": "CASE WHEN a.n > 1D THEN a.c / SQRT(a.p * a.q) END",
    "skewness": "CASE WHEN a.q <> 0D THEN SQRT(a.n) * a.t / SQRT(a.q * a.q * a.q) END",
    "kurtosis": "CASE WHEN a.q <> 0D THEN a.n * a.f / (a.q * a.q) - 3D END",
}
_BOTH: Final = "GREATEST(a.n + b.n, 1D)"
_STEP: Final = "(b.m - a.m)"
_OTHER_STEP: Final = "(b.l - a.l)"
# Each part of a group, and what it is for two groups together. A part that a group does not have
# (NULL, where there is nothing to add) is 0.
_VARIANCE: Final = {
    "n": "a.n + b.n",
    "m": f"a.m + {_STEP} * b.n / {_BOTH}",
    "q": f"a.q + b.q + {_STEP} * {_STEP} * a.n * b.n / {_BOTH}",
}
_PAIRS: Final = {
    "n": "a.n + b.n",
    # the first group's mean as it is: 0.1 * 3 / 3 is not 0.1
    "m": f"IF(a.n = 0D, b.m, a.m + {_STEP} * b.n / {_BOTH})",
    "l": f"IF(a.n = 0D, b.l, a.l + {_OTHER_STEP} * b.n / {_BOTH})",
    "q": f"a.q + b.q + {_STEP} * {_STEP} * a.n * b.n / {_BOTH}",
    "p": f"a.p + b.p + {_OTHER_STEP} * {_OTHER_STEP} * a.n * b.n / {_BOTH}",
    "c": f"a.c + b.c + {_STEP} * {_OTHER_STEP} * a.n * b.n / {_BOTH}",
}
_POWERS: Final = {
    **_VARIANCE,
    "m": _PAIRS["m"],
    "t": (
        f"a.t + b.t + POWER({_STEP}, 3D) * a.n * b.n * (a.n - b.n) / POWER({_BOTH}, 2D) "
        f"+ 3D * {_STEP} * (a.n * b.q - b.n * a.q) / {_BOTH}"
    ),
    "f": (
        f"a.f + b.f + POWER({_STEP}, 4D) * a.n * b.n * (a.n * a.n - a.n * b.n + b.n * b.n) "
        f"/ POWER({_BOTH}, 3D) + 6D * POWER({_STEP}, 2D) * (a.n * a.n * b.q + b.n * b.n * a.q) "
        f"/ POWER({_BOTH}, 2D) + 4D * {_STEP} * (a.n * b.t - b.n * a.t) / {_BOTH}"
    ),
}
_PARTS: Final = {
    "covar_pop": _PAIRS, "covar_samp": _PAIRS, "corr": _PAIRS,
    "skewness": _POWERS, "kurtosis": _POWERS,
}  # fmt: skip


def merge_moments(func: str, args: Sequence[str], filter: str) -> str:
    """SQL for `func` over groups.

    Args:
        func: what Spark calls the aggregate.
        args: SQL of the group's count (never NULL), and of its other parts in their order: mean and
            squares; both means, both squares and the products; or mean and three powers.
        filter: a FILTER clause, or nothing.
    """
    parts = _PARTS.get(func, _VARIANCE)
    names = list(parts)
    values = [args[0], *(f"COALESCE({arg}, 0D)" for arg in args[1:])]
    group = ", ".join(f"'{n}', {value}" for n, value in zip(names, values, strict=True))
    start = ", ".join(f"'{n}', 0D" for n in names)
    merged = ", ".join(f"'{n}', {text}" for n, text in parts.items())
    return (
        f"AGGREGATE(COLLECT_LIST(NAMED_STRUCT({group})){filter}, "
        f"NAMED_STRUCT({start}), "
        f"(a, b) -> NAMED_STRUCT({merged}), "
        f"a -> {_FINISH[func]})"
    )
