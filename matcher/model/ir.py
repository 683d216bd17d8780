"""The frozen data that the matcher works on: relations, blocks, cache plans, rewrites and misses.

A `Block` is one select-project-join-group unit of a query. A `CachePlan` is a block that was
materialised, with the names of its stored columns; each grouping set of a cube is a view of its own
over the same columns. A `Rewrite` is the compensation over one such view. Nothing here does I/O or
knows Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from matcher.model.budget import DECISION_STEPS
from matcher.model.expr import Agg, Col, Expr
from matcher.model.integer_bounds import Bounds
from matcher.model.reasons import Reason

# What a caller makes of a rewrite that may serve.
Passed = TypeVar("Passed")
ROWS_COLUMN = "__rows"
GROUPING_ID_COLUMN = "__grouping_id"
HIDDEN_PREFIX = "__"
SET_KEY_PREFIX = "__set_key_"


@dataclass(frozen=True, slots=True)
class Relation:
    """One occurrence of a base table, or of the groups of a block below as a relation of the block
    around it.

    `key` is its identity (location or qualified name; of groups a digest of what they are), `name`
    what is shown and, of a table, rendered. `groups` is None for a table.
    """

    key: str
    name: str
    groups: Groups | None = field(default=None, compare=False, repr=False)

    @property
    def tables(self) -> tuple[Relation, ...]:
        """The base tables that it reads: itself, or those of its groups."""
        return base_tables((self,))


@dataclass(frozen=True, slots=True)
class Groups:
    """What a block groups, where that is a relation of the block around it: one row a group, unique
    on `keys`; one row in all where there are none.

    Expressions name `relations` by number, as in a block. `keys` and `aggregates` are its columns,
    each named by what it is; of the aggregates those that are asked for. A condition on keys or
    aggregates alone is one of the block around it. See `matcher.normalize.grouped_relations`.
    """

    relations: tuple[Relation, ...]
    predicates: tuple[Expr, ...]
    keys: tuple[Output, ...]
    aggregates: tuple[Output, ...] = ()
    outer: tuple[OuterJoin, ...] = ()

    @property
    def columns(self) -> tuple[Output, ...]:
        return *self.keys, *self.aggregates

    def expressions(self) -> tuple[Expr, ...]:
        """All that is worked out of its relations; not what these, if groups, are made of."""
        conditions = (part for join in self.outer for part in join.conditions())
        return (*self.predicates, *(column.expr for column in self.columns), *conditions)


def expressions_below(relations: Iterable[Relation]) -> Iterator[Expr]:
    """All that is worked out in the groups among relations, and in those below them."""
    for groups in (relation.groups for relation in relations if relation.groups is not None):
        yield from groups.expressions()
        yield from expressions_below(groups.relations)


def base_tables(relations: Iterable[Relation]) -> tuple[Relation, ...]:
    """The base tables among relations and in the groups among them, one after another, each as
    often as it is read."""
    found: list[Relation] = []
    for relation in relations:
        if relation.groups is None:
            found.append(relation)
        else:
            found += base_tables(relation.groups.relations)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class RecordPreservingJoin:
    """`left INNER JOIN right ON keys` keeps each row of `left` exactly once, where `finds_each`;
    else `left LEFT JOIN right` does. `keys` are (left column, right column), a unique key of
    `right` in either case."""

    name: str
    left: str
    right: str
    keys: tuple[tuple[str, str], ...]
    validated: bool = True
    finds_each: bool = True


@dataclass(frozen=True, slots=True)
class LapsedJoin:
    """A record-preserving join that is declared, and that a cache may not rely on: `broken`, or not
    proven for the rows that the cache holds."""

    join: RecordPreservingJoin
    broken: bool


@dataclass(frozen=True, slots=True)
class Output:
    """An output column: its name, and its expression over base columns (SPJ) or over group keys
    and aggregates."""

    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class SortKey:
    """One ORDER BY key over the same things as an `Output`."""

    expr: Expr
    ascending: bool = True
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a FULL join: its tables (relation numbers), inner joined, and what they are
    filtered and joined by below the join."""

    rels: tuple[int, ...]
    where: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """Tables `right` (relation numbers) that a block joins to its other tables by the conjuncts
    `on`.

    `kind` is `left`, `semi`, `anti` or `full`. Tables of one `right` are inner joined with each
    other. A FULL join is a relation of its own among the others: `right` are the tables of both
    its `sides`.
    `declared` are the columns of them that the block names and their tables declare NOT NULL; in
    all expressions of the block they are nullable. See `matcher.normalize.outer_joins`.
    """

    kind: str
    right: tuple[int, ...]
    on: tuple[Expr, ...]
    declared: tuple[Col, ...] = ()
    sides: tuple[Side, ...] = ()

    def conditions(self) -> tuple[Expr, ...]:
        """All conjuncts of the join: those of ON, and those below it."""
        return (*self.on, *(part for side in self.sides for part in side.where))

    def map(self, change: Callable[[Expr], Expr]) -> OuterJoin:
        """The join with each conjunct changed."""
        sides = tuple(Side(side.rels, tuple(map(change, side.where))) for side in self.sides)
        return replace(self, on=tuple(map(change, self.on)), sides=sides)


@dataclass(frozen=True, slots=True)
class Block:
    """A query block. `group_keys` is None without aggregation and () for a global aggregate.

    `predicates` are the conjuncts of WHERE and of all inner join conditions together; they hold
    above the joins in `outer`, which come in order after the inner joins.
    `grouping_sets` holds, for GROUPING SETS,
    CUBE and ROLLUP, the indices into `group_keys` of each set as written (repeated sets included).
    `having`, `order_by`,
    `limit` and `offset` are filled by the text door only: in Catalyst they stay above the replaced
    subtree. SELECT DISTINCT
    is a block grouped by its outputs.
    """

    relations: tuple[Relation, ...]
    predicates: tuple[Expr, ...]
    outputs: tuple[Output, ...]
    group_keys: tuple[Expr, ...] | None = None
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    having: tuple[Expr, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int | None = None
    outer: tuple[OuterJoin, ...] = ()

    @property
    def is_aggregate(self) -> bool:
        return self.group_keys is not None

    @property
    def has_tail(self) -> bool:
        """Whether some of its rows or groups are all that it gives: by LIMIT, or by HAVING of
        groups of one set (conditions on several sets tell which of these are asked for)."""
        return self.limit is not None or bool(self.having and self.grouping_sets is None)

    @property
    def tables(self) -> tuple[Relation, ...]:
        """The base tables that it reads, those of groups below included."""
        return base_tables(self.relations)

    def map(self, change: Callable[[Expr], Expr]) -> Block:
        """The block with each of its expressions changed."""
        keys = self.group_keys
        return replace(
            self.map_shown(change),
            predicates=tuple(map(change, self.predicates)),
            group_keys=None if keys is None else tuple(map(change, keys)),
            outer=tuple(join.map(change) for join in self.outer),
        )

    def map_shown(self, change: Callable[[Expr], Expr]) -> Block:
        """The block with each expression above its groups changed: outputs, HAVING, ORDER BY."""
        return replace(
            self,
            outputs=tuple(Output(o.name, change(o.expr)) for o in self.outputs),
            having=tuple(map(change, self.having)),
            order_by=tuple(
                SortKey(change(k.expr), k.ascending, k.nulls_first) for k in self.order_by
            ),
        )

    def shown(self) -> tuple[Expr, ...]:
        """The expressions above its groups: outputs, HAVING, ORDER BY."""
        return (
            *(output.expr for output in self.outputs),
            *self.having,
            *(key.expr for key in self.order_by),
        )

    def expressions(self) -> tuple[Expr, ...]:
        """All expressions of the block, those of its outer joins last."""
        return (
            *self.predicates,
            *(self.group_keys or ()),
            *self.shown(),
            *(part for join in self.outer for part in join.conditions()),
        )


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a cache's table and the expression of the definition that it holds. Hidden ones
    start with `__`."""

    name: str
    expr: Expr
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class GroupingSet:
    """One stored grouping set: Spark's grouping_id, indices into `CachePlan.keys`, and its size if
    known."""

    grouping_id: int
    keys: tuple[int, ...]
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate that a cache stores in column `name`."""

    name: str
    agg: Agg
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class CachePlan:
    """What the matcher knows of a cache.

    `keys` and `measures` for an aggregated cache, `columns` for one without aggregation (then
    `keys` is None). `grouping_sets`
    is empty for a plain one. `exact_sums` names the SUM measures, and the keys, whose sum of
    absolute values over all rows is proven to stay within 2^53, so that an
    integer AVG may be computed from them; `non_null` the stored columns whose argument was counted
    never NULL at refresh.
    `visible` names the stored columns that are shown, and `shown` the outputs of the definition as
    it shows them, each over stored columns (`Col(0, stored name)`), two of one name as well; empty
    where they are the visible columns under their own names.
    `joins` are the record-preserving joins that held at the cache's snapshot, `lapsed` the others
    between its tables: a miss names them.
    `order_by` and `limit` are those of a top-k cache, which stores its first `limit` rows alone.
    `having` are the conditions that the stored groups have passed: nothing is stored of others.
    `cluster_by` are the stored columns that an ORDER BY without LIMIT asks the table to be
    clustered by, if its clauses lay it out in no other way.
    `partials` are the grouping ids of the sets (0 for a cache that is no cube) in which several
    stored rows may stand for one group: whoever reads them adds them up first.
    For the choice: `partition_by` are the columns that files can be passed over by, `base_rows` the
    rows behind the cache and `base_bytes` the sizes of its tables, as of the last refresh; `bounds`
    are the least and the greatest value of columns of whole numbers in the rows behind the cache,
    by table key and lower-case name, as far as that refresh noted them down. These four and
    `lapsed` are not stored with the plan: whoever registers it knows them.
    """

    name: str
    relations: tuple[Relation, ...]
    predicates: tuple[Expr, ...]
    keys: tuple[StoredColumn, ...] | None
    measures: tuple[Measure, ...] = ()
    columns: tuple[StoredColumn, ...] = ()
    grouping_sets: tuple[GroupingSet, ...] = ()
    rows: int | None = None
    bytes: int | None = None
    visible: tuple[str, ...] = ()
    shown: tuple[Output, ...] = ()
    exact_sums: frozenset[str] = frozenset()
    non_null: frozenset[str] = frozenset()
    joins: tuple[RecordPreservingJoin, ...] = ()
    outer: tuple[OuterJoin, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    limit: int | None = None
    having: tuple[Expr, ...] = ()
    cluster_by: tuple[str, ...] = ()
    partials: frozenset[int] = frozenset()
    partition_by: tuple[str, ...] = ()
    base_rows: int | None = None
    base_bytes: tuple[tuple[str, int], ...] = ()
    bounds: tuple[tuple[tuple[str, str], Bounds], ...] = ()
    lapsed: tuple[LapsedJoin, ...] = ()

    @property
    def is_cube(self) -> bool:
        return bool(self.grouping_sets)

    @property
    def holds_some(self) -> bool:
        """Whether only some of the rows or groups of its tables are stored: the first ones, or
        those that passed a HAVING."""
        return self.limit is not None or bool(self.having)

    def as_shown(self) -> tuple[Output, ...]:
        """The outputs of the definition, each over stored columns."""
        if self.shown:
            return self.shown
        stored = {c.name: c.expr for c in (*(self.keys or ()), *self.columns)}
        stored |= {m.name: m.agg for m in self.measures}
        named = ((name, stored[name]) for name in self.visible)
        return tuple(Output(name, Col(0, name, e.type, e.nullable)) for name, e in named)

    @property
    def tables(self) -> tuple[Relation, ...]:
        """The base tables that it reads, those of groups below included."""
        return base_tables(self.relations)


def reads_groups(block: Block | CachePlan) -> bool:
    """True if the groups of a block below are among the relations."""
    return any(relation.groups is not None for relation in block.relations)


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """Session switches that change what counts as a valid rewrite (`spark.cachemgr.*`), and the
    lower-case names of the caches that the query's hint asks for, at any cost. `time_zone` is the
    session's ("" where it is not known). `most_steps` is what a decision may cost
    (`matcher.model.budget`). `keys` are joins whose right side has a unique key in the
    very rows that the query reads, whatever a cache may have read; with `finds_each` those of the
    left side find one each. `lapsed` are those that are declared, and not proven there."""

    approximate_floats: bool = False
    trust_unvalidated: bool = False
    assume_exact_averages: bool = False
    ansi: bool = True
    decimal_precision_loss: bool = True
    approximate_distinct: bool = False
    time_zone: str = ""
    most_steps: int = DECISION_STEPS
    forced: frozenset[str] = frozenset()
    keys: tuple[RecordPreservingJoin, ...] = ()
    lapsed: tuple[LapsedJoin, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtraJoin:
    """A table of the query that a rewrite joins to the cache: read as the query itself would.

    `kind` is `inner` (its condition is among the rewrite's filters), or `left`, `semi` or `anti`
    with the condition `on`.
    """

    relation: Relation
    kind: str = "inner"
    on: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A table of the query that a rewrite does not read, because of a record-preserving join to
    it."""

    table: str
    join: RecordPreservingJoin


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A valid plan over one cache view. Expressions refer to the cache's columns as `Col(0, stored
    name)`, to those of table i of `extra` as `Col(i + 1, name)`.

    `group_keys` is None when the cache's rows are the query's groups already (filter and project
    only), else the keys to
    aggregate again by. With `grouping_sets` (indices into `group_keys`, as the query writes them)
    the keys are aggregated by each set, and the other expressions name them `SET_KEY_PREFIX` and
    their number. `branches` are rewrites over the same cache whose rows, one below the other, are
    what is read instead of the table; their columns are c0, c1, ….
    `guards` are the filters that every row of the cache satisfies: Spark concludes from them what
    holds for joined rows (`matcher.rules.restate_guards`).
    `steps` names the compensations for people, `joins_used` the
    record-preserving joins relied upon. `by_constants` says that a rule has looked at the values of
    the query's constants, so that others in their places may not be served so, and
    `groups_by_constants` that they may be why there are no `group_keys`. What is `left_out`
    is as if it was not there only while the cache's rows are those that the query sees.
    """

    cache: str
    grouping_set: GroupingSet | None
    filters: tuple[Expr, ...]
    group_keys: tuple[Expr, ...] | None
    outputs: tuple[Output, ...]
    having: tuple[Expr, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int | None = None
    steps: tuple[str, ...] = ()
    joins_used: tuple[str, ...] = ()
    extra: tuple[ExtraJoin, ...] = ()
    cost: float = 0.0
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    branches: tuple[Rewrite, ...] = ()
    guards: frozenset[Expr] = frozenset()
    by_constants: bool = False
    groups_by_constants: bool = False
    left_out: tuple[LeftOut, ...] = ()

    @property
    def compensating(self) -> tuple[Expr, ...]:
        """The filters that rows of the cache may break."""
        return tuple(f for f in self.filters if f not in self.guards)


@dataclass(frozen=True, slots=True)
class Miss:
    """Why one candidate was refused; `lacking` counts the columns that it would need more. One that
    `matched` would serve, were it not stale, say."""

    cache: str
    grouping_set: GroupingSet | None
    reasons: tuple[Reason, ...]
    lacking: int = 0
    matched: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """One line of an explanation: a view of a cache and what became of it (`chosen`, `valid` or
    `refused`)."""

    cache: str
    grouping_set: tuple[str, ...] | None
    outcome: str
    reasons: tuple[Reason, ...] = ()
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Choice(Generic[Passed]):
    """The outcome for one block.

    Args:
        served: The rewrite that is taken, and what the check that let it pass gave; None for a
            miss.
        candidates: Every candidate considered, where somebody asked for them.
        reasons: Why there is no rewrite.
        exhausted: The steps of the decision ended before all caches were compared.
        by_shape: The rewrite is that of an earlier query with this one's constants filled in, and
            is right for any others.
    """

    served: tuple[Rewrite, Passed] | None
    candidates: tuple[Candidate, ...] = ()
    reasons: tuple[Reason, ...] = ()
    exhausted: bool = False
    by_shape: bool = False

    @property
    def rewrite(self) -> Rewrite | None:
        """The rewrite that is taken, if any."""
        return None if self.served is None else self.served[0]
