"""Which caches may be stored as partial rows: several rows a group, each the result over some of
the base rows, or what such rows took away.

Appending the results over new rows needs aggregates that merge. Taking rows away again needs sums:
SUM, COUNT and BIT_XOR, and a count of rows in each group, by which it is known that none is left.
A refresh must be able to store them for years, so less is taken than what a single query merges: no
FLOAT, no value of any row (FIRST, MAX_BY).
"""

from __future__ import annotations

from typing import Final

from matcher.model.expr import Agg, Col
from matcher.model.ir import CachePlan, MatchOptions, Measure
from matcher.model.message import CacheName, Sql, Word
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.row_order import adds_floats
from matcher.model.types import INTEGRAL, decimal_parts, is_collated
from matcher.partials.split import not_mergeable, why_not_merged
from matcher.render.select import readable
from matcher.rules.roll_up.arithmetic import opposite
from matcher.rules.roll_up.averages import decimal_average_is_exact

ADDED: Final = frozenset({"sum", "count", "avg", "bit_xor"})
EXTREMES: Final = frozenset({"min", "max", "bit_and", "bit_or"})
SKETCHES: Final = frozenset({"hll_sketch_agg", "hll_union_agg"})


def why_not_partials(plan: CachePlan, options: MatchOptions, *, signed: bool) -> Reason | None:
    """What keeps a cache from being stored as partial rows; None if nothing does.

    Args:
        plan: The cache. An AVG of whole numbers asks for its sum among the `exact_sums`, which must
            hold with the rows that are added.
        options: The settings that the cache is refreshed under.
        signed: Whether rows may be taken away as well.

    >>> from matcher.examples import plan_of
    >>> largest = plan_of("SELECT item, MAX(qty) AS most FROM sales GROUP BY item")
    >>> why_not_partials(largest, MatchOptions(), signed=False)
    >>> why_not_partials(largest, MatchOptions(), signed=True).detail
    'MAX(qty) is not known once rows are taken away'
    """
    if plan.limit is not None:
        return not_mergeable(
            "{cache} holds its first rows alone",
            "declare it without ORDER BY … LIMIT",
            cache=CacheName(plan.name),
        )
    if plan.having:
        return not_mergeable(
            "{cache} holds only the groups that passed its HAVING: rows that come may belong to "
            "one that did not",
            "leave HAVING out of its definition",
            cache=CacheName(plan.name),
        )
    if any(join.kind == "full" for join in plan.outer):
        return not_mergeable(
            "{cache} has a FULL JOIN",
            "use LEFT joins",
            cache=CacheName(plan.name),
        )
    if plan.keys is None:
        return _why_not_rows(plan) if signed else None
    for key in plan.keys:
        if is_collated(key.expr.type):
            return not_mergeable(
                "any of the strings may be shown that {key} takes for one",
                "group by a string without a collation, such as its LOWER",
                key=Sql(readable(key.expr)),
            )
    if rows_measure(plan) is None:
        return not_mergeable(
            "{cache} does not count the rows of its groups",
            "create {cache} again: definitions of today store the count",
            cache=CacheName(plan.name),
        )
    for measure in plan.measures:
        reason = _why_not_measure(plan, measure, options, signed)
        if reason is not None:
            return reason
    return None


def _why_not_rows(plan: CachePlan) -> Reason:
    return not_mergeable(
        "{cache} holds single rows, of which none is taken away by adding one",
        "GROUP BY what it selects, with COUNT(*)",
        cache=CacheName(plan.name),
    )


def _why_not_measure(
    plan: CachePlan, measure: Measure, options: MatchOptions, signed: bool
) -> Reason | None:
    agg = measure.agg
    shown = readable(agg)
    if agg.distinct:
        return not_mergeable(
            "{call} does not add up",
            "GROUP BY its argument; queries count what is DISTINCT",
            call=Sql(shown),
        )
    if adds_floats(agg):
        return Reason(
            ReasonCode.FLOAT_NOT_EXACT,
            "{call} adds up in DOUBLE, and the sum of sums may differ in the last digits",
            "use DECIMAL",
            call=Sql(shown),
        )
    if signed and agg.func in ("sum", "try_sum") and opposite(Col(0, "", agg.type)) is None:
        return not_mergeable(
            "{call} is a {type}, of which Spark's minus rounds digits away",
            "use a DECIMAL of fewer digits, or refresh {cache} FULL",
            call=Sql(shown),
            type=Word(agg.type.upper()),
            cache=CacheName(plan.name),
        )
    if agg.func == "try_sum":  # the sum of an AVG, which is asked for with it
        return None if measure.hidden else why_not_merged(agg, options)
    if signed and agg.func not in ADDED and agg.func in EXTREMES | SKETCHES:
        return not_mergeable(
            "{call} is not known once rows are taken away",
            "leave it out of {cache}, or refresh it FULL",
            call=Sql(shown),
            cache=CacheName(plan.name),
        )
    if agg.func not in ADDED | EXTREMES | SKETCHES or _picks_a_spelling(agg):
        return not_mergeable(
            "{call} does not follow from its results over parts of the rows",
            "store SUM, COUNT, MIN, MAX or AVG in {cache}, or refresh it FULL",
            call=Sql(shown),
            cache=CacheName(plan.name),
        )
    return why_not_merged(agg, options) or _why_not_counted(plan, agg, options, signed)


def _picks_a_spelling(agg: Agg) -> bool:
    return agg.func in ("min", "max") and is_collated(agg.args[0].type)


def _why_not_counted(
    plan: CachePlan, agg: Agg, options: MatchOptions, signed: bool
) -> Reason | None:
    counted = agg.func in ("sum", "avg") or (signed and agg.func == "bit_xor")
    if counted and count_measure(plan, agg) is None:
        arguments = ", ".join(map(readable, agg.args))
        where = "" if agg.filter is None else f" FILTER (WHERE {readable(agg.filter)})"
        return not_mergeable(
            "{agg} is NULL where nothing is left to add, and {cache} does not count its arguments",
            "add COUNT({arg}){where} to the SELECT list of {cache}",
            agg=Sql(readable(agg)),
            cache=CacheName(plan.name),
            arg=Sql(arguments),
            where=Sql(where),
        )
    return _why_not_average(plan, agg, options) if agg.func == "avg" else None


def _why_not_average(plan: CachePlan, agg: Agg, options: MatchOptions) -> Reason | None:
    kind = agg.args[0].type
    total = sum_measure(plan, agg)
    if total is None:
        return not_mergeable(
            "{agg} is computed from its sum, which {cache} does not store",
            "create {cache} again: definitions of today store the sum",
            agg=Sql(readable(agg)),
            cache=CacheName(plan.name),
        )
    if kind in INTEGRAL and total.name not in plan.exact_sums:
        return Reason(
            ReasonCode.AVG_NOT_EXACT,
            "{agg}: Spark averages whole numbers in DOUBLE, and the sums of {cache} are not "
            "proven to stay within 2^53",
            "store SUM and COUNT in {cache}, or refresh it FULL",
            agg=Sql(readable(agg)),
            cache=CacheName(plan.name),
        )
    if decimal_parts(kind) is not None and not decimal_average_is_exact(
        kind, precision_loss=options.decimal_precision_loss
    ):
        return Reason(
            ReasonCode.AVG_NOT_EXACT,
            "{agg} of {type} has more digits than SUM / COUNT keeps",
            "store SUM and COUNT in {cache}, or use a DECIMAL of fewer digits",
            agg=Sql(readable(agg)),
            type=Word(kind.upper()),
            cache=CacheName(plan.name),
        )
    return None


def rows_measure(plan: CachePlan) -> Measure | None:
    """The stored number of rows of each group."""
    return _find(plan, Agg("count", (), "bigint"))


def count_measure(plan: CachePlan, agg: Agg) -> Measure | None:
    """The stored number of rows that an aggregate of one argument takes a value from."""
    found = _find(plan, Agg("count", agg.args, "bigint", filter=agg.filter))
    if found is None and agg.filter is None and not agg.args[0].nullable:
        return rows_measure(plan)
    return found


def sum_measure(plan: CachePlan, agg: Agg) -> Measure | None:
    """The stored sum that goes with an AVG."""
    for func in ("try_sum", "sum"):
        found = _find(plan, Agg(func, agg.args, agg.type, filter=agg.filter))
        if found is not None:
            return found
    return None


def _find(plan: CachePlan, agg: Agg) -> Measure | None:
    return next((m for m in plan.measures if m.agg == agg), None)
