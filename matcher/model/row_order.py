"""What shows in which order rows come: a cache gives its rows in another order than the tables do.

Floating point sums, averages and moments do, in their last digits. So does what shows one of
several values that are equal and not the same: MIN and MAX of -0.0 and 0.0, the key of a group of
'a' and 'A' under a collation. None of these is computed from a cache's rows, by the matcher or by
Spark above what a cache gives, but those of numbers under `spark.cachemgr.approximateFloats=true`.

Averages of whole numbers, which Spark adds up in DOUBLE, do so where these add up to more than
2^53: whoever knows the rows behind the cache has to prove that they do not.

FIRST, COLLECT_LIST, ROW_NUMBER over ties and the like have no stated order in Spark itself
(docs/matching.md has the list).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Flag, auto
from typing import Final

from sqlglot import exp

from matcher.model.expr import Agg
from matcher.model.ir import Block, MatchOptions
from matcher.model.message import Arg, Word
from matcher.model.moments import COVARIANCES, HIGHER
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.types import (
    FLOATS,
    INTEGRAL,
    VARIANCES,
    decimal_parts,
    is_blurred,
    is_collated,
)

AVERAGES: Final = frozenset({"avg", "try_avg"})
_SUMS: Final = frozenset({"sum", "try_sum"}) | AVERAGES
# Spark works them out in DOUBLE, whatever their arguments are
_MOMENTS: Final = frozenset({*VARIANCES, *COVARIANCES, *HIGHER})
_PICKS: Final = frozenset({"min", "max", "collect_set"})


class Shown(Flag):
    """What of the order of a block's rows shows in the query."""

    NOTHING = 0
    PICKS = auto()  # one of several equal values of single rows
    ADDS = auto()  # sums of floating point numbers
    AVERAGES = auto()  # averages of whole numbers made of the block's in ways that are not known
    UNSEEN = auto()  # what that is cannot be seen: perhaps nothing
    PLACES = auto()  # what is drawn or numbered by the place of a row, as rand() is


def adds_floats(agg: Agg) -> bool:
    """True if the aggregate depends on the order in which Spark comes by the rows, whatever they
    are. An average of whole numbers does where they are large (`averages_integers`)."""
    return agg.func in _MOMENTS or (
        agg.func in _SUMS and any(arg.type in FLOATS for arg in agg.args)
    )


def averages_integers(agg: Agg) -> bool:
    """True if the aggregate adds whole numbers in DOUBLE, where all sums up to 2^53 are exact."""
    return agg.func in AVERAGES and agg.args[0].type in INTEGRAL


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
    if Shown.PLACES in above:
        return left_alone(Word("what is drawn or numbered above"))
    if Shown.UNSEEN in above and not any(_may_show_order(o.expr.type) for o in block.outputs):
        return None
    if Shown.ADDS in above and not options.approximate_floats:
        return Reason(
            ReasonCode.FLOAT_NOT_EXACT,
            "FLOAT or DOUBLE values are added above, and a cache gives its rows in another order",
            "store the query's grouping, use DECIMAL, or set spark.cachemgr.approximateFloats=true",
        )
    if Shown.AVERAGES in above and not options.assume_exact_averages:
        return Reason(
            ReasonCode.AVG_NOT_EXACT,
            "whole numbers are averaged above, which Spark adds up in DOUBLE, and how they come of "
            "the rows that a cache would give is not known",
            "average a column that the subquery gives, without a join between, or CAST it to "
            "DECIMAL",
        )
    collated = any(is_collated(output.expr.type) for output in block.outputs)
    if Shown.PICKS in above and not block.is_aggregate:
        if collated or not options.approximate_floats:
            return Reason(
                ReasonCode.FLOAT_NOT_EXACT,
                "the first of several equal values is shown above (-0.0 or 0.0, 'a' or 'A'), and "
                "a cache gives its rows in another order",
                "store the query's grouping, use DECIMAL and strings without a collation, or set "
                "spark.cachemgr.approximateFloats=true",
            )
    return None


def left_alone(what: Arg) -> Reason:
    """Why nothing is put in place below what depends on where a row stands: a cache gives the same
    rows in another order.

    Args:
        what: What does, as SQL or in words.
    """
    return Reason(
        ReasonCode.NON_DETERMINISTIC,
        "{what} depends on the order and the place in which Spark reads the rows below it, "
        "which would be others in a cache",
        "compute it over the rows of a table that holds the result",
        what=what,
    )


def _may_show_order(kind: str) -> bool:
    return kind in INTEGRAL or decimal_parts(kind) is not None or is_blurred(kind)


# How the names of such functions begin in SQL, spelled out or as sqlglot knows them.
_AVERAGES_BEGIN: Final = ("avg", "mean", "try_avg", "regr_avg")
_SUMS_BEGIN: Final = ("sum", "try_sum", *_AVERAGES_BEGIN)
_MOMENTS_BEGIN: Final = ("std", "var", "corr", "covar", "skew", "kurt", "regr")
_PICKS_BEGIN: Final = ("min", "max", "collect_set", "array_unique_agg")
_FLOAT_TYPES: Final = frozenset({exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE})
# Calls that give a number of their arguments' type, whole numbers, or no number.
_KEEP_TYPES: Final = (
    *(exp.Sum, exp.Min, exp.Max, exp.Count, exp.Case, exp.If, exp.Coalesce, exp.Nullif),
    *(exp.Abs, exp.Greatest, exp.Least, exp.And, exp.Or, exp.Not, exp.Upper, exp.Lower, exp.Length),
    *(exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Substring, exp.Concat, exp.Trim),
)
_PLACES: Final = frozenset(
    "rand randn random randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id "
    "input_file_name input_file_block_start input_file_block_length".split()
)


def shown_by_text(
    select: exp.Select,
    below: Block,
    *,
    direct: bool = False,
    floats: bool = False,
    others: Mapping[str, frozenset[str]] | None = None,
) -> Shown:
    """What a SELECT may show of the order of a block's rows, by the names of its functions alone:
    of what their arguments are nothing is known, but of bare columns of the block.

    Args:
        select: The SELECT.
        below: The block, in its FROM or below its window functions.
        direct: Whether the names of columns in it are those of the block's outputs.
        floats: Whether FLOAT or DOUBLE values may have been worked out of them in between.
        others: If other tables are joined to the block, the types of their columns by lower-case
            name: the order of their rows is then that of the block's.
    """
    types = [output.expr.type for output in below.outputs]
    floats = floats or any(t in FLOATS for t in types)
    adding = _MOMENTS_BEGIN + (_SUMS_BEGIN if floats else ())
    calls = list(_functions(select))
    names = [_name(call) for call in calls]
    found = Shown.NOTHING
    if not _PLACES.isdisjoint(names) or _samples(select):
        found |= Shown.PLACES
    sums = [call for call in calls if _name(call).startswith(_SUMS_BEGIN)]
    if any(name.startswith(adding) for name in names) or any(
        makes_floats(call.iter_expressions()) for call in sums
    ):
        found |= Shown.ADDS
    averages = [call for call in calls if _name(call).startswith(_AVERAGES_BEGIN)]
    if direct:
        whole = {o.name.lower() for o in below.outputs if o.expr.type in INTEGRAL}
        averages = [call for call in averages if _may_be_of(call, whole)]
    if averages and any(t in INTEGRAL for t in types):
        found |= Shown.AVERAGES
    if others is not None:
        own = {o.name.lower(): o.expr.type for o in below.outputs}
        if not _kinds(sums, own, others).isdisjoint({*FLOATS, ""}):
            found |= Shown.ADDS
        if not _kinds(averages, own, others).isdisjoint({*INTEGRAL, ""}):
            found |= Shown.AVERAGES
    grouped = select.args.get("group") or select.args.get("distinct")
    if any(map(is_blurred, types)):
        collated = any(map(is_collated, types))
        if (grouped and collated) or any(name.startswith(_PICKS_BEGIN) for name in names):
            found |= Shown.PICKS
    return found


def _kinds(
    calls: Iterable[exp.Func], own: Mapping[str, str], others: Mapping[str, frozenset[str]]
) -> set[str]:
    """The types of the columns that calls are of, "" for one of which nothing is known."""
    names = {column.name.lower() for call in calls for column in call.find_all(exp.Column)}
    kinds = {kind for name in names for kind in others.get(name, ())}
    return kinds.union(own[n] if n in own else "" for n in names if n in own or n not in others)


def makes_floats(parts: Iterable[exp.Expr]) -> bool:
    """True if FLOAT or DOUBLE values may be worked out of other numbers, as a quotient is. Of bare
    columns the caller knows better.

    Args:
        parts: Expressions of a SELECT.
    """
    stack = list(parts)
    while stack:
        item = stack.pop()
        if isinstance(item, exp.Query):
            continue
        if isinstance(item, exp.Cast):
            if item.to.this in _FLOAT_TYPES:
                return True
        elif isinstance(item, exp.Div | exp.Anonymous):
            return True
        elif isinstance(item, exp.Func) and not isinstance(item, _KEEP_TYPES):
            return True
        elif isinstance(item, exp.Literal) and not item.is_string and "e" in item.name.lower():
            return True
        stack += item.iter_expressions()
    return False


def _samples(select: exp.Select) -> bool:
    """True if the SELECT draws a sample of the rows of a subquery, a CTE or a view in its FROM."""
    clause = select.args.get("from_")
    items = [] if clause is None else [clause.this]
    items += [join.this for join in select.args.get("joins") or ()]
    return any(item.args.get("sample") for item in items)


def _may_be_of(call: exp.Func, columns: Collection[str]) -> bool:
    """False for a call of one column that is none of these, which are in lower case."""
    argument = call.this
    return not isinstance(argument, exp.Column) or argument.name.lower() in columns


def _name(call: exp.Func) -> str:
    return (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()


def _functions(select: exp.Select) -> Iterator[exp.Func]:
    """The calls in a SELECT's own clauses."""
    stack = [v for k, v in select.args.items() if k not in ("with_", "from_", "joins", "laterals")]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += item
        elif isinstance(item, exp.Expr) and not isinstance(item, exp.Query):
            if isinstance(item, exp.Func):
                yield item
            stack += item.args.values()
