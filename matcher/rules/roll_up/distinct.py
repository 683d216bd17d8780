"""DISTINCT aggregates, sets, sketches and percentiles: what does not add up by itself.

- `COUNT`, `SUM`, `AVG (DISTINCT k)` of keys; `COLLECT_SET(k)`, `APPROX_COUNT_DISTINCT(k)` and
    `PERCENTILE(k, p)` too, the last weighted by the rows;
- `COUNT(DISTINCT x)` and `COLLECT_SET(x)` from a stored `COLLECT_SET(x)`. The elements of such a
    set come in no stated order, so any order is Spark's own;
- a stored HLL or KLL sketch is merged with Spark's own merge, which Spark applies to the partial
    sketches of any query that reads more than one partition; but not a `HLL_UNION_AGG(s, TRUE)`,
    the size and so the estimate of which follow the order in which Spark meets sketches of several
    sizes;
- `APPROX_COUNT_DISTINCT(x)` and `COUNT(DISTINCT x)` from a stored HLL sketch, only under
    `spark.cachemgr.approximateDistinct=true`.
"""

from __future__ import annotations

from typing import Final

from matcher.model.expr import FALSE, Agg, Call, Expr, Lit
from matcher.model.integer_bounds import EXACT_IN_DOUBLE
from matcher.model.ir import Measure
from matcher.model.message import Message, Sql, Word
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.types import FLOATS, INTEGRAL, decimal_parts, has_exact_equality
from matcher.rules.attempt import Refused, ViewAttempt, spell
from matcher.rules.attempt import stored as column_of
from matcher.rules.derive_columns import where_to_add
from matcher.rules.roll_up.common import (
    NeedsRegrouping,
    float_not_exact,
    has_no_keys,
    keyed,
    keyed_all,
    lookup,
    not_derivable,
    present,
    row_count,
    stored,
)

_DISTINCT: Final = frozenset("count sum avg bit_xor".split())
# What Spark writes where there is nothing to unite, lgConfigK = 12.
_EMPTY: Final = Lit(bytes.fromhex("0201070C03040008").ljust(40, b"\0"), "binary")
SEVERAL_SIZES: Final = "sketches of several sizes come to one that depends on their order"
"""Why a union of such sketches is not put together from others."""
MERGES: Final[dict[str, str]] = {
    "hll_sketch_agg": "hll_union_agg",
    "hll_union_agg": "hll_union_agg",
    **{
        f"kll_{what}_agg_{kind}": f"kll_merge_agg_{kind}"
        for what in ("sketch", "merge")
        for kind in ("bigint", "float", "double")
    },
}


def roll_up_distinct(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """A DISTINCT aggregate of keys, or a count of what a stored set or sketch holds.

    Args:
        attempt: The query and the view, with what the rules before have found.
        agg: The aggregate that is asked for.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, store, COUNT(*) AS n FROM sales GROUP BY item, store",
    ...     "SELECT COUNT(DISTINCT store) AS a FROM sales",
    ... )
    SELECT COUNT(DISTINCT `store`) AS `a` FROM c
    >>> answer(
    ...     "SELECT item, COUNT(*) AS n FROM sales GROUP BY item",
    ...     "SELECT COUNT(DISTINCT store) AS a FROM sales",
    ... )
    DISTINCT_NOT_DERIVABLE: COUNT(DISTINCT store) does not add up over groups, and its
    argument is not a key of cache c
    """
    found = _of_keys(attempt, agg) if agg.func in _DISTINCT else None
    if found is None and agg.func == "count" and len(agg.args) == 1:
        found = _size_of_set(attempt, agg) or _estimate(attempt, agg)
    return found


def not_distinct(attempt: ViewAttempt, agg: Agg) -> Refused:
    """The refusal of a DISTINCT aggregate."""
    return Refused(
        Reason(
            ReasonCode.DISTINCT_NOT_DERIVABLE,
            "{agg} does not add up over groups, and its argument is not a key of {view}",
            "{cure}",
            agg=Sql(spell(agg)),
            view=attempt.view_name(),
            cure=where_to_add(attempt, agg.args),
        )
    )


def _of_keys(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    if has_no_keys(attempt):
        return None
    args = _told_apart(attempt, agg)
    flt = None if agg.filter is None else keyed(attempt, agg.filter)
    if args is None or (agg.filter is not None and flt is None):
        return None
    if agg.func != "count":
        _refuse_inexact(attempt, agg)
    if not attempt.groups.regroup:
        raise NeedsRegrouping
    return Agg(agg.func, args, agg.type, agg.nullable, agg.distinct, flt, agg.params)


def _told_apart(attempt: ViewAttempt, agg: Agg) -> tuple[Expr, ...] | None:
    """The arguments from keys. A bare FLOAT or DOUBLE key will do to be counted: Spark takes -0.0
    and 0.0 for one value in COUNT(DISTINCT) as it does in GROUP BY, and all NaNs too."""
    found = keyed_all(attempt, agg.args)
    if found is not None or agg.func != "count":
        return found
    keys = [attempt.available.get(attempt.context.canonical(a)) for a in agg.args]
    if attempt.view.keys is None or None in keys or any(a.type not in FLOATS for a in agg.args):
        return None
    attempt.notes.used |= {k.name for k in keys if k is not None}
    return tuple(column_of(k, a) for k, a in zip(keys, agg.args, strict=True) if k is not None)


def _refuse_inexact(attempt: ViewAttempt, agg: Agg) -> None:
    """A sum in DOUBLE depends on the order of addition, unless all of it stays within 2^53."""
    kind = agg.args[0].type
    if kind in FLOATS and not attempt.options.approximate_floats:
        raise float_not_exact(agg, "adds {type} values in another order", type=Word(kind.upper()))
    if agg.func != "avg" or kind not in INTEGRAL or attempt.options.assume_exact_averages:
        return
    key = attempt.available.get(attempt.context.canonical(agg.args[0]))
    if key is not None and key.name in attempt.view.plan.exact_sums:
        return
    # no more different values than stored rows (unless another table is joined), nor than the
    # type has
    bits = INTEGRAL[kind]
    rows = None if attempt.shared.extra or attempt.notes.again else attempt.view.plan.rows
    values = 1 << bits if rows is None else min(rows, 1 << bits)
    if values << (bits - 1) > EXACT_IN_DOUBLE:
        raise Refused(
            Reason(
                ReasonCode.AVG_NOT_EXACT,
                "{agg}: Spark averages whole numbers in DOUBLE, and the values are not proven "
                "to add up within 2^53",
                "store {agg} at the query's grouping",
                agg=Sql(spell(agg)),
            )
        )


def unites_sizes(agg: Agg) -> bool:
    """True if the aggregate unites HLL sketches of several sizes.

    Args:
        agg: The aggregate.
    """
    return agg.func == "hll_union_agg" and agg.args[1] != FALSE


def united(sketch: Expr, of: Agg) -> Agg:
    """The union of stored HLL sketches, all of one size.

    Over no sketches at all, or NULLs alone, HLL_UNION_AGG gives the empty one of the usual size,
    whatever the size of others: it is left out, as it adds nothing.

    Args:
        sketch: The stored ones.
        of: The aggregate that gave them: `HLL_SKETCH_AGG`, all of which are of the size that it
            says, or `HLL_UNION_AGG`.
    """
    some = sketch if of.func == "hll_sketch_agg" else Call("nullif", (sketch, _EMPTY), "binary")
    return Agg("hll_union_agg", (some, FALSE), "binary", False)


def _has_plain_set(type: str) -> bool:
    """Types of which COLLECT_SET, ARRAY_DISTINCT and COUNT(DISTINCT) find the same equal."""
    return has_exact_equality(type) and type != "binary"


def _merged_sets(measure: Measure) -> Expr:
    column = stored(measure)
    sets = Agg("collect_list", (column,), f"array<{column.type}>", False)
    return Call("array_distinct", (Call("flatten", (sets,), column.type),), column.type, False)


def _size_of_set(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    measure = lookup(attempt, "collect_set", agg.args, agg)
    if measure is None or not _has_plain_set(agg.args[0].type):
        return None
    held = _merged_sets(measure) if attempt.groups.regroup else stored(measure)
    return Call("cast", (Call("size", (held,), "int", False),), "bigint", False)


def _estimate(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    if not attempt.options.approximate_distinct:
        return None
    found = [
        measure
        for expr, measure in attempt.stored_aggs.items()
        if isinstance(expr, Agg)
        and expr.func == "hll_sketch_agg"
        and expr == attempt.context.canonical(_sketch_like(agg, expr))
    ]
    if not found:
        return None
    sketch = _merged(attempt, found[0])
    return Call("hll_sketch_estimate", (sketch,), "bigint", False)


def _sketch_like(agg: Agg, stored_sketch: Agg) -> Agg:
    """The sketch of `agg`'s argument with the precision that is stored."""
    args = (agg.args[0], *stored_sketch.args[1:])
    return Agg("hll_sketch_agg", args, "binary", filter=agg.filter)


def _merged(attempt: ViewAttempt, measure: Measure) -> Expr:
    column, agg = stored(measure), measure.agg
    if not attempt.groups.regroup:
        return column
    if unites_sizes(agg):
        raise not_derivable(attempt, agg, Message(SEVERAL_SIZES))
    by = MERGES[agg.func]
    return united(column, agg) if by == "hll_union_agg" else Agg(by, (column,), "binary", False)


def roll_up_sketch(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """HLL and KLL sketches: stored ones merged; of keys an HLL sketch, which holds each value
    once."""
    measure = lookup(attempt, agg.func, agg.args, agg, agg.params)
    if measure is not None:
        return _merged(attempt, measure)
    return _of_keys(attempt, agg) if agg.func == "hll_sketch_agg" else None


def roll_up_set(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """COLLECT_SET(x); with RESPECT NULLS it holds a NULL that no set stored without it has."""
    if not _has_plain_set(agg.args[0].type):
        return None
    measure = lookup(attempt, "collect_set", agg.args, agg, agg.params)
    if measure is None:
        return _of_keys(attempt, agg)
    return _merged_sets(measure) if attempt.groups.regroup else stored(measure)


def roll_up_approximate_count(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """APPROX_COUNT_DISTINCT(x): of keys exactly what Spark returns, since a value counts once."""
    found = _of_keys(attempt, agg) or _estimate(attempt, agg)
    if found is None:
        raise not_derivable(
            attempt,
            agg,
            Message("store HLL_SKETCH_AGG of it and set spark.cachemgr.approximateDistinct=true"),
        )
    return found


def roll_up_percentile(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """PERCENTILE(k, p) and MEDIAN(k) of keys: each value as often as it has rows."""
    value, share, frequency = agg.args
    key, rows = keyed(attempt, value), row_count(attempt, agg)
    weighted = None if key is None else present(attempt, key, agg)
    once = spell(frequency) in ("1", "1L")
    exact = value.type in INTEGRAL or decimal_parts(value.type) is not None
    if weighted is None or rows is None or not (once and exact):
        raise not_derivable(
            attempt,
            agg,
            Message("percentiles need every value; a stored KLL sketch answers its own kind"),
        )
    if not attempt.groups.regroup:
        raise NeedsRegrouping
    return Agg(agg.func, (weighted, share, rows), agg.type, params=agg.params)
