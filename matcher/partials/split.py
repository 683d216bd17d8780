"""A query's block split into states that merge.

The states are groups of the query's own keys, or of finer ones, with what each aggregate is put
together from: SUM and COUNT of an AVG, the extreme of a MAX_BY beside it. What DISTINCT aggregates
look at becomes a key. The states of two parts of the rows, one below the other, are the rows of a
cache with several rows a group, and `matcher.partials.merge` answers the block from them by the
rules that answer it from a cache.

HAVING, ORDER BY and LIMIT stand above the merge. The first rows of a block without groups are among
the first rows of its parts, so there both are asked of the parts as well.

A BIGINT sum is asked for as DECIMAL under ANSI: that of one part may overflow where the whole does
not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from matcher.model.expr import Agg, Call, Expr, Lit, aggregates, is_constant
from matcher.model.ir import Block, CachePlan, MatchOptions, Measure, StoredColumn
from matcher.model.message import Arg, Number, Sql, Word
from matcher.model.moments import COVARIANCES, HIGHER, moment_partials
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.row_order import AVERAGES, adds_floats
from matcher.model.types import INTEGRAL, VARIANCES, decimal_parts, sum_type
from matcher.normalize.stored_block import stored_block
from matcher.predicates.aggregate_filters import as_filter
from matcher.render.placeholders import STATES
from matcher.render.select import NotRenderable, readable, render_stored
from matcher.rules.grouping_sets import why_not_by_sets
from matcher.rules.roll_up.distinct import MERGES, SEVERAL_SIZES, unites_sizes
from matcher.rules.roll_up.sums import SAFE_SUM_PRECISION

LONG_DECIMAL: Final = "decimal(20,0)"
WIDE_SUM: Final = "decimal(30,0)"
_AS_THEY_ARE: Final = frozenset(
    ("sum", "count", "min", "max", "bit_and", "bit_or", "bit_xor", "collect_set", *MERGES)
)
_PICKS: Final = frozenset({"first", "last"})
_BY: Final = frozenset({"max_by", "min_by"})
# They need the values themselves, or each value once: what they look at becomes a key.
_OF_VALUES: Final = frozenset({"approx_count_distinct", "percentile"})
_DISTINCT: Final = frozenset({"count", "sum", "avg", "bit_xor"})
_MOMENTS: Final = frozenset({*VARIANCES, *COVARIANCES, *HIGHER})
_KNOWN: Final = _AS_THEY_ARE | AVERAGES | _PICKS | _BY | _OF_VALUES | _MOMENTS


@dataclass(frozen=True, slots=True)
class States:
    """The states of a block that merge.

    Args:
        block: The query for them, to be answered from a cache; its outputs are c0, c1, ….
        stored: The same as a definition, for `render_stored` over the tables of a part; the
            columns have the same types and order.
        plan: The same as the rules of the merge see them, with sums in the types of the query.
        wide: The columns that are DECIMAL in `block` and `stored` and BIGINT in `plan`.
    """

    block: Block
    stored: CachePlan
    plan: CachePlan
    wide: frozenset[str]

    @property
    def averaged(self) -> dict[str, Expr]:
        """The sums and keys of whole numbers, by the column that holds them: an AVG merges exactly
        if the absolute values of all rows of all parts add up to 2^53 at most. Those of which that
        is known are the `exact_sums` of the merge."""
        sums = {
            m.name: m.agg.args[0]
            for m in self.plan.measures
            if m.agg.func in ("sum", "try_sum") and m.agg.args[0].type in INTEGRAL
        }
        return sums | {k.name: k.expr for k in self.plan.keys or () if k.expr.type in INTEGRAL}


def split(block: Block, options: MatchOptions) -> States | Reason:
    """The states of a block that merge, or why there are none.

    Args:
        block: The query's block.
        options: The session's switches.

    >>> from matcher.examples import block_of
    >>> query = block_of("SELECT store, AVG(price) AS a FROM sales GROUP BY store")
    >>> states = split(query, MatchOptions())
    >>> print(render_stored(states.stored, ["sales"]))
    SELECT t0.`store` AS `c0`,
      SUM(t0.`price`) AS `c1`,
      COUNT(t0.`price`) AS `c2`
    FROM sales AS t0
    GROUP BY t0.`store`
    >>> split(block_of("SELECT TRY_SUM(store) AS m FROM sales"), MatchOptions()).code.value
    'NOT_MERGEABLE'
    """
    reason = _why_not(block, options)
    if reason is not None:
        return reason
    if block.group_keys is None:
        plan = _rows(block)
        return _rendered(States(stored_block(plan), plan, plan, frozenset()))
    found = tuple(dict.fromkeys(a for e in block.shown() for a in aggregates(e)))
    keys = _keys(block.group_keys, found)
    plan = _named(block, keys, _measures(found, keyed=bool(keys)))
    wide = {m.name: as_wide(m.agg) for m in plan.measures if options.ansi and _is_long_sum(m.agg)}
    stored = replace(
        plan,
        measures=tuple(Measure(m.name, wide.get(m.name, m.agg)) for m in plan.measures),
    )
    return _rendered(States(stored_block(stored), stored, plan, frozenset(wide)))


def _rendered(states: States) -> States | Reason:
    """The states, if they can be written as SQL."""
    try:
        render_stored(states.stored, [r.name for r in states.stored.relations])
    except NotRenderable as error:
        return Reason(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{part} has no SQL spelling, to be computed over a part of the rows",
            "write it with built-in SQL functions",
            part=Sql(str(error)),
        )
    return states


def _rows(block: Block) -> CachePlan:
    """What a block without groups shows and sorts by; its first rows, if it asks for these."""
    shown = [e for e in dict.fromkeys(block.shown()) if not is_constant(e)]
    first = block.limit is not None and bool(block.order_by)
    return CachePlan(
        name=STATES,
        relations=block.relations,
        predicates=block.predicates,
        outer=block.outer,
        keys=None,
        # a query that shows nothing still has so many rows
        columns=_columns(shown or [Lit(1, "int")]),
        order_by=block.order_by if first else (),
        limit=(block.limit or 0) + (block.offset or 0) if first else None,
    )


def _columns(exprs: Iterable[Expr]) -> tuple[StoredColumn, ...]:
    return tuple(StoredColumn(f"c{i}", expr) for i, expr in enumerate(exprs))


def _keys(group_keys: tuple[Expr, ...], found: tuple[Agg, ...]) -> list[Expr]:
    """The block's keys, and what aggregates need the single values of. Constants group nothing,
    but where all keys are constants there is no group over no rows."""
    wanted = [*group_keys, *(expr for agg in map(as_filter, found) for expr in _values(agg))]
    keys = [key for key in dict.fromkeys(wanted) if not is_constant(key)]
    return keys or list(dict.fromkeys(group_keys))[:1]


def _values(agg: Agg) -> tuple[Expr, ...]:
    """What an aggregate needs the single values of: none, if it is put together from results."""
    if not agg.distinct and agg.func not in _OF_VALUES:
        return ()
    args = agg.args if agg.distinct else agg.args[:1]
    return args if agg.filter is None else (*args, agg.filter)


def why_not_by_value(block: Block) -> Reason | None:
    """Why a cache that matches a block has no states of it: an aggregate needs the single values of
    what it looks at, by which the block does not group. None where there is no such aggregate.

    Args:
        block: The query's block, which `split` splits.

    >>> from matcher.examples import block_of
    >>> query = block_of("SELECT store, COUNT(DISTINCT item) AS n FROM sales GROUP BY store")
    >>> print(why_not_by_value(query).detail)
    COUNT(DISTINCT item) over a cache and appended rows needs the single values of item, and \
no cache that matches stores them
    """
    keys = block.group_keys or ()
    for agg in (a for e in block.shown() for a in aggregates(e)):
        values = [e for e in _values(as_filter(agg)) if e not in keys and not is_constant(e)]
        if values:
            spelled = ", ".join(dict.fromkeys(map(readable, values)))
            return not_mergeable(
                "{agg} over a cache and appended rows needs the single values of {call}, and "
                "no cache that matches stores them",
                "refresh the cache, or store {call} as a key of it",
                agg=Sql(readable(agg)),
                call=Sql(spelled),
            )
    return None


def _named(block: Block, keys: list[Expr], measures: list[Agg]) -> CachePlan:
    return CachePlan(
        name=STATES,
        relations=block.relations,
        predicates=block.predicates,
        outer=block.outer,
        keys=_columns(keys),
        measures=tuple(Measure(f"c{len(keys) + i}", agg) for i, agg in enumerate(measures)),
    )


def _measures(found: tuple[Agg, ...], *, keyed: bool) -> list[Agg]:
    return list(dict.fromkeys(part for agg in found for part in _parts(agg, keyed=keyed)))


def _parts(agg: Agg, *, keyed: bool) -> list[Agg]:
    """The aggregates that one is put together from."""
    if agg.distinct:
        return []
    if agg.func in _OF_VALUES:
        return [_count((), agg)] if agg.func == "percentile" else []
    if agg.func in AVERAGES:
        (arg,) = agg.args
        # AVG does not overflow where a BIGINT sum does; such an AVG is not taken from its sum
        func = "try_sum" if arg.type == "bigint" else "sum"
        total = Agg(func, agg.args, sum_type(arg.type) or arg.type, filter=agg.filter)
        return [total, _count(agg.args, agg)]
    if agg.func in _PICKS:
        # the NULL of a part without rows is no row's value
        return [agg] if keyed and agg.filter is None else [agg, _count((), agg)]
    if agg.func in _BY:
        by = agg.args[1]
        return [agg, Agg(agg.func.removesuffix("_by"), (by,), by.type, filter=agg.filter)]
    if agg.func in _MOMENTS:
        return [agg, *moment_partials(agg).values(), _count(agg.args, agg)]
    return [agg]


def _count(args: tuple[Expr, ...], like: Agg) -> Agg:
    return Agg("count", args, "bigint", nullable=False, filter=like.filter)


def _is_long_sum(agg: Agg) -> bool:
    return agg.func == "sum" and agg.args[0].type == "bigint"


def as_wide(agg: Agg) -> Agg:
    """A BIGINT sum in a type that it cannot overflow."""
    plain = as_filter(agg)
    args = (Call("cast", plain.args, LONG_DECIMAL, plain.args[0].nullable),)
    return Agg("sum", args, WIDE_SUM, filter=plain.filter)


def _why_not(block: Block, options: MatchOptions) -> Reason | None:
    """What of the block does not merge."""
    if any(join.kind == "full" for join in block.outer):
        return not_mergeable("a FULL JOIN", "refresh the cache")
    if block.group_keys is None:
        return None
    if block.grouping_sets is not None:
        reason = why_not_by_sets(block)
        if reason is not None:
            return reason
    for expr in block.shown():
        for agg in aggregates(expr):
            reason = why_not_merged(agg, options)
            if reason is not None:
                return reason
    return None


def why_not_merged(agg: Agg, options: MatchOptions) -> Reason | None:
    """What keeps an aggregate from being put together from its results over parts of the rows; None
    if nothing does. Whether an AVG of whole numbers is exact is asked by the merge.

    Args:
        agg: The aggregate.
        options: The session's switches.

    >>> from matcher.model.expr import Col
    >>> why_not_merged(Agg("try_sum", (Col(0, "x", "int"),), "bigint"), MatchOptions()).detail
    'TRY_SUM(x) of parts is NULL where one overflowed, and where there was nothing to add'
    """
    if agg.func == "try_sum":
        return not_mergeable(
            "{agg} of parts is NULL where one overflowed, and where there was nothing to add",
            "use SUM",
            agg=Sql(readable(agg)),
        )
    if agg.func not in (_DISTINCT if agg.distinct else _KNOWN):
        return not_mergeable(
            "{agg} does not follow from its results over parts of the rows",
            "use SUM, COUNT, MIN, MAX or AVG, or refresh the cache",
            agg=Sql(readable(agg)),
        )
    if unites_sizes(agg):
        return not_mergeable(
            "{agg} of parts: {why}",
            "use sketches of one size, and FALSE",
            agg=Sql(readable(agg)),
            why=Word(SEVERAL_SIZES),
        )
    if adds_floats(agg) and not options.approximate_floats:
        return Reason(
            ReasonCode.FLOAT_NOT_EXACT,
            "{agg} adds up in DOUBLE, and the sum of the parts' sums may differ in the last digits",
            "use DECIMAL, or set spark.cachemgr.approximateFloats=true",
            agg=Sql(readable(agg)),
        )
    if agg.func in ("sum", *AVERAGES):
        return _why_not_added(agg)
    return None


def _why_not_added(agg: Agg) -> Reason | None:
    kind = agg.args[0].type
    if sum_type(kind) is None:
        return not_mergeable(
            "{agg} of {type} is not put together from parts",
            "use a numeric type, or refresh the cache",
            agg=Sql(readable(agg)),
            type=Word(kind.upper()),
        )
    parts = decimal_parts(kind)
    if parts is not None and parts[0] > SAFE_SUM_PRECISION:
        return Reason(
            ReasonCode.MAY_OVERFLOW,
            "{agg} of {type} may overflow in one part and not in all rows",
            "use a DECIMAL of at most {digits} digits",
            agg=Sql(readable(agg)),
            type=Word(kind.upper()),
            digits=Number(SAFE_SUM_PRECISION),
        )
    return None


def not_mergeable(template: str, remedy: str, /, **args: Arg) -> Reason:
    """The reason NOT_MERGEABLE."""
    return Reason(ReasonCode.NOT_MERGEABLE, template, remedy, **args)
