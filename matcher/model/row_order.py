"""What shows in which order rows come: a cache gives its rows in another order than the tables do.

Floating point sums, averages and moments do, in their last digits. So does what shows one of
several values that are equal and not the same: MIN and MAX of -0.0 and 0.0, the key of a group of
'a' and 'A' under a collation. None of these is computed from a cache's rows, by the matcher or by
Spark above what a cache gives, but those of numbers under `spark.cachemgr.approximateFloats=true`.

FIRST, COLLECT_LIST, ROW_NUMBER over ties and the like have no stated order in Spark itself
(docs/matching.md has the list).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from sqlglot import exp

from matcher.model.expr import Agg
from matcher.model.ir import Block, MatchOptions
from matcher.model.moments import COVARIANCES, HIGHER
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.types import FLOATS, VARIANCES, is_blurred, is_collated

_SUMS: Final = frozenset({"sum", "avg", "try_sum", "try_avg"})
# Spark works them out in DOUBLE, whatever their arguments are
_MOMENTS: Final = frozenset({*VARIANCES, *COVARIANCES, *HIGHER})
_PICKS: Final = frozenset({"min", "max", "collect_set"})


class Shown(IntEnum):
    """What of the order of a block's rows shows in the query, the greater the more."""

    NOTHING = 0
    PICKS = 1  # one of several equal values of single rows
    ADDS = 2  # sums of floating point numbers


def adds_floats(agg: Agg) -> bool:
    """True if the aggregate depends on the order in which Spark comes by the rows.

    An average of whole numbers does not: Spark adds these in DOUBLE, where all sums up to 2^53 are
    exact.
    """
    return agg.func in _MOMENTS or (
        agg.func in _SUMS and any(arg.type in FLOATS for arg in agg.args)
    )


def picks_among_equals(agg: Agg) -> bool:
    """True if the aggregate shows the first of several values that are equal and not the same."""
    return agg.func in _PICKS and is_blurred(agg.args[0].type)


def refused_below(above: Shown, block: Block, options: MatchOptions) -> Reason | None:
    """Why no cache may give a block's rows, for what stands above it; None if one may.

    Args:
        above: What shows of their order.
        block: The block.
        options: The session's switches.
    """
    if above is Shown.ADDS and not options.approximate_floats:
        return Reason(
            ReasonCode.FLOAT_NOT_EXACT,
            "FLOAT or DOUBLE values are added above, and a cache gives its rows in another order",
            "store the query's grouping, use DECIMAL, or set spark.cachemgr.approximateFloats=true",
        )
    collated = any(is_collated(output.expr.type) for output in block.outputs)
    if above is Shown.PICKS and not block.is_aggregate:
        if collated or not options.approximate_floats:
            return Reason(
                ReasonCode.FLOAT_NOT_EXACT,
                "the first of several equal values is shown above (-0.0 or 0.0, 'a' or 'A'), and "
                "a cache gives its rows in another order",
                "store the query's grouping, use DECIMAL and strings without a collation, or set "
                "spark.cachemgr.approximateFloats=true",
            )
    return None


# How the names of such functions begin in SQL, spelled out or as sqlglot knows them.
_SUMS_BEGIN: Final = ("sum", "avg", "mean", "try_sum", "try_avg")
_MOMENTS_BEGIN: Final = ("std", "var", "corr", "covar", "skew", "kurt", "regr")
_PICKS_BEGIN: Final = ("min", "max", "collect_set", "array_unique_agg")


def shown_by_text(select: exp.Select, below: Block) -> Shown:
    """What a SELECT may show of the order of a block's rows, by the names of its functions alone:
    of what their arguments are nothing is known.

    Args:
        select: The SELECT.
        below: The block, in its FROM or below its window functions.
    """
    types = [output.expr.type for output in below.outputs]
    adding = _MOMENTS_BEGIN + (_SUMS_BEGIN if any(t in FLOATS for t in types) else ())
    names = list(_functions(select))
    if any(name.startswith(adding) for name in names):
        return Shown.ADDS
    grouped = select.args.get("group") or select.args.get("distinct")
    if any(map(is_blurred, types)):
        collated = any(map(is_collated, types))
        if (grouped and collated) or any(name.startswith(_PICKS_BEGIN) for name in names):
            return Shown.PICKS
    return Shown.NOTHING


def _functions(select: exp.Select) -> Iterator[str]:
    """The names of the functions in a SELECT's own clauses."""
    stack = [v for k, v in select.args.items() if k not in ("with_", "from_", "joins", "laterals")]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += item
        elif isinstance(item, exp.Expr) and not isinstance(item, exp.Query):
            if isinstance(item, exp.Func):
                named = isinstance(item, exp.Anonymous)
                yield (item.name if named else item.sql_name()).lower()
            stack += item.args.values()
