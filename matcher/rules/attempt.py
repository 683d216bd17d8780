"""The state of matching one query block against a cache: first the plan, then one of its views.

Both parts are frozen. A rule of a plan takes a `PlanAttempt` and returns it with its own findings,
a rule of a view does so with a `ViewAttempt`. What the deriving of expressions comes by on its way,
deep in recursion, is written down in the `Notes` of a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import (
    GroupingSet,
    LeftOut,
    MatchOptions,
    Measure,
    Output,
    SortKey,
    StoredColumn,
)
from matcher.model.message import CacheName, ColumnName, Message, listed
from matcher.model.reasons import Reason
from matcher.model.types import is_blurred, sum_type
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.outer_join_keys import OuterJoinKey
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.predicates.context import PredicateContext
from matcher.predicates.raising import may_raise
from matcher.predicates.time_buckets import Bucket
from matcher.render.select import NotRenderable, readable, render_literal


@dataclass(frozen=True, slots=True)
class PlanAttempt:
    """A query and a cache by their tables and predicates.

    Attributes:
        context: what the query's predicates say, with the equalities of the record-preserving joins
            that were added.
        may_join_tables: tables of the query may be joined to the cache.
        required: predicates of the cache that the query must imply.
        pending: the query's conjuncts that the cache does not guarantee.
        joins_used: names of the record-preserving joins that are relied on.
        extra: tables of the query that are joined because the cache does not have them.
        extra_outer_joins: the query's outer, semi and anti joins to such tables.
        left_out: tables that the query had besides, and that change nothing in it.
        ignored: tables of the cache's LEFT joins that do not matter.
        inner_of: LEFT joins of the cache that are inner in the query.
        kept: the sides of FULL joins of the cache that all rows must have, each with the columns
            that are never NULL in its own rows.
        filtered: what holds once the rows without a partner in `inner_of` are filtered out.
    """

    query: NormalQuery
    view: PreparedPlan
    options: MatchOptions
    context: PredicateContext
    may_join_tables: bool = False
    required: tuple[Expr, ...] = ()
    pending: tuple[Expr, ...] = ()
    joins_used: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    extra: tuple[int, ...] = ()
    extra_outer_joins: tuple[OuterJoinKey, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    ignored: frozenset[int] = frozenset()
    inner_of: tuple[OuterJoinKey, ...] = ()
    kept: tuple[tuple[frozenset[int], frozenset[Col]], ...] = ()
    filtered: PredicateContext | None = None

    @property
    def guaranteed(self) -> PredicateContext:
        """What holds for the rows of the cache that are looked at."""
        return self.filtered or self.view.context


@dataclass(slots=True)
class Notes:
    """What is noted while expressions are derived from the columns of a view.

    Attributes:
        used: names of the stored columns that are read.
        missing: the expressions that no stored column gives, with what they are needed for.
        again: tables of the cache that are joined to it again, by the record-preserving join that
            says they have a unique key.
        key_filters: the equalities by which these are joined.
        joins_used: further record-preserving joins that are relied on.
        buckets: what is stored of each time, made when first asked for (`coarsen_time`).
        by_constants: the values of the query's constants have decided something that does not show
            in the rewrite.
        groups_by_constants: they may have decided that its groups are the cache's.
    """

    used: set[str] = field(default_factory=set)
    missing: list[tuple[Expr, str]] = field(default_factory=list)
    again: dict[int, str] = field(default_factory=dict)
    key_filters: list[Expr] = field(default_factory=list)
    joins_used: list[str] = field(default_factory=list)
    buckets: dict[Expr, list[Bucket]] | None = None
    by_constants: bool = False
    groups_by_constants: bool = False


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a rewrite.

    Attributes:
        own: those that pick the cache's rows: the grouping set, the rows found by its outer joins.
        derived: the query's pending conjuncts, with the filters that stand for them.
        restated: those that every row of the cache satisfies, and their filters (`restate_guards`).
        conditions: for each of the `extra_outer_joins` tables the condition of its join.
    """

    own: tuple[Expr, ...] = ()
    derived: Mapping[Expr, Expr] = field(default_factory=dict)
    restated: Mapping[Expr, Expr] = field(default_factory=dict)
    conditions: Mapping[int, tuple[Expr, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a rewrite.

    Attributes:
        keys: the query's canonical keys, with what they are derived from.
        set_keys: what the keys of a query with grouping sets are derived from, in its own order.
        regroup: the stored rows are aggregated again.
        same: each stored row is one of the query's groups, whether it is aggregated again or not.
    """

    keys: Mapping[Expr, Expr] = field(default_factory=dict)
    set_keys: tuple[Expr, ...] = ()
    regroup: bool = False
    same: bool = False


@dataclass(frozen=True, slots=True)
class Carried:
    """What stands above the groups of a rewrite."""

    outputs: tuple[Output, ...] = ()
    having: tuple[Expr, ...] = ()
    order_by: tuple[SortKey, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewAttempt:
    """A query and one view of a cache: its rows, or one of its grouping sets.

    Attributes:
        must_regroup: a roll-up is asked for though the groups are the same: some aggregate must
            still be computed.
        available: canonical expressions and the stored columns that hold them.
        stored_aggs: the same of the stored aggregates.
    """

    shared: PlanAttempt
    grouping_set: GroupingSet | None = None
    must_regroup: bool = False
    available: Mapping[Expr, StoredColumn] = field(default_factory=dict)
    stored_aggs: Mapping[Expr, Measure] = field(default_factory=dict)
    filters: Filters = Filters()
    groups: Groups = Groups()
    carried: Carried = Carried()
    notes: Notes = field(default_factory=Notes)

    @property
    def query(self) -> NormalQuery:
        """The query's block."""
        return self.shared.query

    @property
    def view(self) -> PreparedPlan:
        """The cache."""
        return self.shared.view

    @property
    def options(self) -> MatchOptions:
        """How the session computes."""
        return self.shared.options

    @property
    def context(self) -> PredicateContext:
        """What holds for the rows that the query asks for."""
        return self.shared.context

    @property
    def joined_tables(self) -> tuple[int, ...]:
        """The tables that the rewrite joins, in the order of their numbers."""
        return *self.shared.extra, *self.notes.again

    def compensating(self) -> tuple[Expr, ...]:
        """The filters that the cache does not guarantee."""
        return *self.filters.own, *self.notes.key_filters, *self.filters.derived.values()

    def view_name(self) -> Message:
        """The cache and grouping set as people name them."""
        cache = CacheName(self.view.name)
        if self.grouping_set is None:
            return Message("cache {cache}", cache=cache)
        keys = listed(ColumnName, self.set_columns())
        return Message("grouping set ({keys}) of cache {cache}", keys=keys, cache=cache)

    def is_blurred_key(self, derived: Expr | None) -> bool:
        """True for a group key, or a field of one, of a type that has values which are equal and
        not the same: Spark takes the zeros inside of a struct for one as well."""
        if self.view.keys is None or derived is None or not is_blurred(derived.type):
            return False
        while isinstance(derived, Call) and derived.op == "field":
            derived = derived.args[0]
        return isinstance(derived, Col)

    def set_columns(self) -> tuple[str, ...]:
        """Names of the key columns of this view."""
        return tuple(c.name for _, c in self.view.stored(self.grouping_set))


def stored(column: StoredColumn, expr: Expr) -> Col:
    """A reference to a stored column, with the type of what it stands for."""
    return Col(0, column.name, expr.type, column.expr.nullable)


def may_be_error(attempt: ViewAttempt, exprs: Iterable[Expr]) -> bool:
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
        super().__init__(reason)
        self.reason = reason
        self.lacking = lacking


def per_group_sum(attempt: ViewAttempt, column: Expr) -> Expr:
    """The stored value where rows are the query's groups, else the SUM of them.

    A SUM of decimals has ten digits more than what it adds, so a sum of sums needs a cast back.
    """
    if not attempt.groups.regroup:
        return column
    return Agg("sum", (column,), sum_type(column.type) or column.type)


def cast_to(expr: Expr, type: str) -> Expr:
    """`expr` as `type`; itself where it has it already."""
    return expr if expr.type == type else Call("cast", (expr,), type, expr.nullable)
