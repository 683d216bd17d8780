"""The SQL that merges counts, means and squared distances of groups into a variance.

Spark has no aggregate for it, so the groups are collected and folded, with the formula by which
Spark merges its own partial aggregates (`CentralMomentAgg.mergeExpressions`).
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
}


def merge_moments(func: str, args: Sequence[str], filter: str) -> str:
    """SQL for `func` over groups.

    Args:
        func: one of the variances and deviations.
        args: SQL of the group's count, mean and sum of squared distances from it; the latter two
            may be NULL where there is nothing to sum.
        filter: a FILTER clause, or nothing.
    """
    count, mean, squares = args
    group = f"NAMED_STRUCT('n', {count}, 'm', COALESCE({mean}, 0D), 'q', COALESCE({squares}, 0D))"
    both = "GREATEST(a.n + b.n, 1D)"
    return (
        f"AGGREGATE(COLLECT_LIST({group}){filter}, "
        "NAMED_STRUCT('n', 0D, 'm', 0D, 'q', 0D), "
        "(a, b) -> NAMED_STRUCT('n', a.n + b.n, "
        f"'m', a.m + (b.m - a.m) * b.n / {both}, "
        f"'q', a.q + b.q + (b.m - a.m) * (b.m - a.m) * a.n * b.n / {both}), "
        f"a -> {_FINISH[func]})"
    )
