"""The state of matching one query block against one view of a cache; the rules fill it in turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import GroupingSet, MatchOptions, Measure, Output, SortKey, StoredColumn
from matcher.model.reasons import Reason
from matcher.model.types import is_blurred, sum_type
from matcher.normalize.normal_form import NormalQuery, OuterJoinKey, PreparedPlan
from matcher.predicates.context import PredicateContext
from matcher.predicates.raising import may_raise
from matcher.predicates.time_buckets import Bucket
from matcher.render.select import NotRenderable, readable, render_literal


@dataclass(slots=True)
class Attempt:
    """One try. Rules of a plan fill `context`, `pending` and `joins_used`, those of a view the
    rest.

    `context` is what the query's predicates say, with the equalities of the record-preserving joins
    that were added; `pending` the query's conjuncts that the cache does not guarantee; `available`
    canonical expressions → stored columns; `missing` the expressions that no stored column gives,
    with what they are needed for; `buckets` what is stored of each time, made when first asked for
    (`coarsen_time`); `derived` the filters that stand for `pending` ones; `guards` those that every
    row of the cache satisfies (`restate_guards`); `set_keys` the derived keys of a query with
    grouping sets, in its own order; `must_regroup` asks for a roll-up though the groups are the
    same: some aggregate must still be computed; `may_join_tables` allows to join tables of the
    query to the cache: `extra`, those that it does not have, and `again`, those that it has, by the
    record-preserving join that says they have a unique key. Of outer joins: `hung_extra` are those
    of the query that are joined to the cache, by `conditions`; `inner_of` LEFT ones of the cache
    that are inner in the query; `ignored` tables of the cache's LEFT joins that do not matter;
    `filtered` is what holds once the rows without a partner in `inner_of` are filtered out; `kept`
    are the sides of FULL ones of the cache that all rows must have, each with the columns that are
    never NULL in its own rows.
    """

    query: NormalQuery
    view: PreparedPlan
    options: MatchOptions
    context: PredicateContext
    grouping_set: GroupingSet | None = None
    pending: tuple[Expr, ...] = ()
    joins_used: tuple[str, ...] = ()
    steps: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    available: dict[Expr, StoredColumn] = field(default_factory=dict)
    stored_aggs: dict[Expr, Measure] = field(default_factory=dict)
    missing: list[tuple[Expr, str]] = field(default_factory=list)
    filters: list[Expr] = field(default_factory=list)
    derived: dict[Expr, Expr] = field(default_factory=dict)
    guards: frozenset[Expr] = frozenset()
    keys: dict[Expr, Expr] = field(default_factory=dict)
    buckets: dict[Expr, list[Bucket]] | None = None
    must_regroup: bool = False
    may_join_tables: bool = False
    extra: tuple[int, ...] = ()
    again: dict[int, str] = field(default_factory=dict)
    hung_extra: tuple[OuterJoinKey, ...] = ()
    inner_of: tuple[OuterJoinKey, ...] = ()
    kept: tuple[tuple[frozenset[int], frozenset[Col]], ...] = ()
    ignored: frozenset[int] = frozenset()
    filtered: PredicateContext | None = None
    conditions: dict[int, tuple[Expr, ...]] = field(default_factory=dict)
    regroup: bool = False
    set_keys: tuple[Expr, ...] = ()
    outputs: tuple[Output, ...] = ()
    having: tuple[Expr, ...] = ()
    order_by: tuple[SortKey, ...] = ()

    @property
    def guaranteed(self) -> PredicateContext:
        """What holds for the rows of the cache that are looked at."""
        return self.filtered or self.view.context

    def view_name(self) -> str:
        """The cache and grouping set as people name them."""
        if self.grouping_set is None:
            return f"cache {self.view.name}"
        keys = ", ".join(self.set_columns())
        return f"grouping set ({keys}) of cache {self.view.name}"

    def is_blurred_key(self, derived: Expr | None) -> bool:
        """True for a group key of a type that has values which are equal and not the same."""
        return self.view.keys is not None and isinstance(derived, Col) and is_blurred(derived.type)

    def set_columns(self) -> tuple[str, ...]:
        """Names of the key columns of this view."""
        return tuple(c.name for _, c in self.view.stored(self.grouping_set))


def stored(column: StoredColumn, expr: Expr) -> Col:
    """A reference to a stored column, with the type of what it stands for."""
    return Col(0, column.name, expr.type, column.expr.nullable)


def may_be_error(attempt: Attempt, exprs: Iterable[Expr]) -> bool:
    """True if some of them may be an error, so that it counts of which rows it is worked out: Spark
    works out `x * (10 / k)` for no row in which x is NULL."""
    ansi = attempt.options.ansi
    return any(may_raise(expr, ansi=ansi, overflow=False) for expr in exprs)


def spell(expr: Expr) -> str:
    """An expression for people; see `readable`."""
    return readable(expr)


def is_spellable(lit: Lit) -> bool:
    """True if a constant can be written as SQL."""
    try:
        render_literal(lit)
    except NotRenderable:
        return False
    return True


class Refused(Exception):
    """Raised inside a rule when an attempt cannot succeed; caught by the matcher, becomes the miss
    reason."""

    def __init__(self, reason: Reason, lacking: int = 0) -> None:
        super().__init__(reason.detail)
        self.reason = reason
        self.lacking = lacking


def per_group_sum(attempt: Attempt, column: Expr) -> Expr:
    """The stored value where rows are the query's groups, else the SUM of them.

    A SUM of decimals has ten digits more than what it adds, so a sum of sums needs a cast back.
    """
    if not attempt.regroup:
        return column
    return Agg("sum", (column,), sum_type(column.type) or column.type)


def cast_to(expr: Expr, type: str) -> Expr:
    """`expr` as `type`; itself where it has it already."""
    return expr if expr.type == type else Call("cast", (expr,), type, expr.nullable)
