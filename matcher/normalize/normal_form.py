"""Blocks and cache plans in the form that they are compared in.

1. Tables get small numbers from one `Interner` a registry, and a column's `rel` becomes its
    table's number (the second
   occurrence of a table in a block gets the number plus `OCCURRENCE`). So expressions of a query
   and of a cache are
   equal objects as they stand, with no mapping, unless a table occurs twice.
2. The predicates become a `PredicateContext` (classes, domains, residuals).
3. The columns that a query cannot do without, and those that a cache mentions, let the index
    refuse most caches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Lock
from typing import Final

from matcher.model.budget import tick
from matcher.model.expr import (
    FALSE,
    Agg,
    Call,
    Col,
    Expr,
    Lit,
    aggregates,
    columns,
    conjuncts,
    count_nodes,
    rebuild,
    transform,
    walk,
)
from matcher.model.hash_consing import Sharing
from matcher.model.ir import (
    Block,
    CachePlan,
    GroupingSet,
    LeftOut,
    Measure,
    OuterJoin,
    Output,
    Relation,
    SortKey,
    StoredColumn,
)
from matcher.predicates.canonical import holds
from matcher.predicates.context import PredicateContext, column_equality
from matcher.predicates.implication import implies
from matcher.predicates.negative_zeros import compares_minus_zero

OCCURRENCE: Final = 1 << 20
# Stands among columns: single rows are needed, or held, and not groups of them.
SINGLE_ROWS: Final = (-1, "")
# Tables that no cache reads get numbers from here on, which mean something in one query alone.
FIRST_UNKNOWN_TABLE: Final = 1 << 19
# Bytes that cost as much to read as a row does.
_BYTES_A_ROW: Final = 100.0
# Expressions of queries that a cache remembers in canonical form
_MEMO_OF_CACHE: Final = 128
# The query in other numbers of its relations, remembered for the next cache
_MOST_NUMBERED: Final = 32
# A comparison that may say that two columns are equal, alone or together with others.
_MAY_EQUATE: Final = frozenset(("eq", "nseq", "le", "ge", "in"))


class Interner:
    """Numbers for names, given once and kept; safe for concurrent readers and writers."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._lock = Lock()

    def __call__(self, name: object) -> int:
        found = self._numbers.get(name)
        if found is None:
            with self._lock:
                found = self._numbers.setdefault(name, len(self._numbers))
        return found

    def known(self, name: object) -> int | None:
        """The number of `name`, None if it has none."""
        return self._numbers.get(name)


def occurrences(keys: Iterable[int]) -> tuple[int, ...]:
    """Table numbers with repeated ones told apart, in the given order."""
    seen: dict[int, int] = {}
    result = []
    for key in keys:
        nth = seen.get(key, 0)
        seen[key] = nth + 1
        result.append(key + nth * OCCURRENCE)
    return tuple(result)


def relabel(
    expr: Expr, rels: Sequence[int], memo: dict[Expr, Expr], share: Sharing | None = None
) -> Expr:
    """`expr` with other relation numbers; `memo` shares what repeats in a block, `share` what
    repeats in other plans."""
    done = memo.get(expr)
    if done is None:
        if isinstance(expr, Col):
            done = Col(rels[expr.rel], expr.name, expr.type, expr.nullable)
        elif expr.children:
            parts = tuple(relabel(child, rels, memo, share) for child in expr.children)
            done = rebuild(expr, parts)
        else:
            return expr
        memo[expr] = done = done if share is None else share(done)
    return done


@dataclass(frozen=True, slots=True)
class OuterJoinKey:
    """An outer, semi or anti join in the form in which two of them are compared.

    The conjuncts are spelled in one way, but with no column for another: what is equal above the
    join need not be so for the rows that it looks at. The two `sides` of a FULL join have no order.
    `written` are the conjuncts of `on` as they were written and in that order, by which one may
    keep the next from raising.
    """

    kind: str
    right: frozenset[int]
    on: frozenset[Expr]
    declared: frozenset[Col] = field(compare=False)
    written: tuple[Expr, ...] = field(compare=False)
    sides: frozenset[tuple[frozenset[int], frozenset[Expr]]] = frozenset()

    def mentions(self, rel: int) -> bool:
        """True if the table is outer-joined here, or the condition is about it."""
        return rel in self.right or any(c.rel == rel for p in self.on for c in columns(p))

    def conditions(self) -> list[Expr]:
        """All conjuncts of the join: those of ON, and those below it."""
        return [*self.on, *(p for _, where in self.sides for p in where)]

    def where_fixed(self, fixed: Mapping[Col, Lit]) -> OuterJoinKey:
        """The join with the constants that columns of the kept side are, where all other rows are
        filtered out above it (Spark's ConstantPropagation does so to EXISTS, which has no other
        form then)."""
        if not fixed or self.kind == "full":
            return self

        def visit(expr: Expr) -> Expr | None:
            if isinstance(expr, Col) and expr.rel not in self.right:
                return fixed.get(expr)
            return None

        return replace(self, on=_where_true(transform(part, visit) for part in self.on))


def _where_true(condition: Iterable[Expr]) -> frozenset[Expr]:
    """The conjuncts of a condition of which it only matters where they are TRUE."""
    spell = PredicateContext(()).canonical
    return frozenset(part for p in condition for part in conjuncts(holds(spell(p))))


def _outer_joins(
    outer: Iterable[OuterJoin], rels: tuple[int, ...], memo: dict[Expr, Expr]
) -> tuple[OuterJoinKey, ...]:
    return tuple(
        OuterJoinKey(
            join.kind,
            frozenset(rels[rel] for rel in join.right),
            _where_true(relabel(p, rels, memo) for p in join.on),
            frozenset(Col(rels[c.rel], c.name, c.type, c.nullable) for c in join.declared),
            tuple(part for p in join.on for part in conjuncts(relabel(p, rels, memo))),
            frozenset(
                (
                    frozenset(rels[rel] for rel in side.rels),
                    _where_true(relabel(p, rels, memo) for p in side.where),
                )
                for side in join.sides
            ),
        )
        for join in outer
    )


def _either_side(
    outer: Iterable[OuterJoin], rels: tuple[int, ...], memo: dict[Expr, Expr]
) -> dict[Expr, Expr]:
    """`memo` with one order for `coalesce(a, b)` of columns that a FULL join says are equal.

    In each of its rows they are equal, or one is NULL: so the order does not matter, and is that
    of the sides as they were written.
    """
    for join in outer:
        for pair in map(column_equality, join.on if join.kind == "full" else ()):
            if pair is not None:
                made = (Call("coalesce", p, pair[0].type) for p in (pair, pair[::-1]))
                one, other = ((call, relabel(call, rels, memo)) for call in made)
                first = min(one[1], other[1], key=repr)
                memo.update({one[0]: first, other[0]: first})
    return memo


class NormalQuery:
    """A query block with interned relation numbers."""

    __slots__ = (
        "_classes",
        "_contexts",
        "_equatable",
        "_linked",
        "_minus_zero",
        "_numbered",
        "_required",
        "_shown",
        "_solid",
        "_weight",
        "aggregates",
        "block",
        "group_keys",
        "having",
        "order_by",
        "outer_joins",
        "outputs",
        "predicates",
        "relations",
        "shorter",
        "tables",
    )

    def __init__(self, block: Block, rels: tuple[int, ...]) -> None:
        self.block = block
        self.relations: Final = rels
        self.tables: Final = frozenset(rels)
        memo = _either_side(block.outer, rels, {})
        self.predicates: Final = tuple(relabel(p, rels, memo) for p in block.predicates)
        self.outer_joins: Final = _outer_joins(block.outer, rels, memo)
        keys = block.group_keys
        self.group_keys: Final = (
            None if keys is None else tuple(relabel(k, rels, memo) for k in keys)
        )
        self.outputs: Final = tuple(
            Output(o.name, relabel(o.expr, rels, memo)) for o in block.outputs
        )
        self.having: Final = tuple(relabel(h, rels, memo) for h in block.having)
        self.order_by: Final = tuple(
            SortKey(relabel(k.expr, rels, memo), k.ascending, k.nulls_first) for k in block.order_by
        )
        parts = [*(o.expr for o in self.outputs), *self.having, *(k.expr for k in self.order_by)]
        self.aggregates: Final = tuple(dict.fromkeys(a for p in parts for a in aggregates(p)))
        self._contexts: dict[tuple[tuple[Col, Col], ...], PredicateContext] = {}
        self._solid: PredicateContext | None = None
        self._required: frozenset[tuple[int, str]] | None = None
        self._shown: frozenset[tuple[int, str]] | None = None
        self._classes: dict[Col, list[Col]] | None = None
        self._linked: tuple[tuple[tuple[int, str], ...], ...] | None = None
        self._minus_zero: tuple[Expr | None] | None = None
        self._equatable: Mapping[tuple[int, str], int] | None = None
        self._numbered: dict[tuple[int, ...], NormalQuery] = {}
        self._weight: int | None = None
        # memo of `rules.leave_out_tables`
        self.shorter: Final[dict[object, tuple[NormalQuery, tuple[LeftOut, ...]]]] = {}

    @property
    def repeats(self) -> bool:
        """True if it reads some table more than once."""
        return max(self.relations, default=0) >= OCCURRENCE

    def relation(self, rel: int) -> Relation:
        """The table that an interned number stands for."""
        return self.block.relations[self.relations.index(rel)]

    def numbered(self, rels: tuple[int, ...]) -> NormalQuery:
        """The query with other numbers for its relations; remembered for the next cache."""
        if rels == self.relations:
            return self
        found = self._numbered.get(rels)
        if found is None:
            if len(self._numbered) >= _MOST_NUMBERED:
                self._numbered = {}
            found = self._numbered[rels] = NormalQuery(self.block, rels)
            found._weight = self.weight
        return found

    @property
    def weight(self) -> int:
        """How many nodes its expressions have: what it costs to compare it with one cache."""
        if self._weight is None:
            self._weight = count_nodes(self.block.expressions())
        return self._weight

    @property
    def may_be_equal(self) -> Mapping[tuple[int, str], int]:
        """The columns that some comparison might make equal, each with the number of a class: of
        what stands in two classes the query says nowhere that it is equal."""
        if self._equatable is None:
            self._equatable = self._equated()
        return self._equatable

    def _equated(self) -> dict[tuple[int, str], int]:
        parent: dict[object, object] = {}

        def top(place: object) -> object:
            while (up := parent.setdefault(place, place)) != place:
                place = up
            return place

        conditions = (*self.predicates, *(p for join in self.outer_joins for p in join.written))
        for node in (n for p in (*conditions, *self.conditions()) for n in walk(p)):
            if isinstance(node, Call) and node.op in _MAY_EQUATE:
                sides = [_place(side) for side in node.args]
                for side in sides[1:]:
                    parent[top(side)] = top(sides[0])
        numbers: dict[object, int] = {}
        return {
            place: numbers.setdefault(top(place), len(numbers))
            for place in parent
            if isinstance(place, tuple)
        }

    def context(self, equalities: tuple[tuple[Col, Col], ...] = ()) -> PredicateContext:
        """What the query's predicates say, together with equalities that record-preserving joins
        add."""
        found = self._contexts.get(equalities)
        if found is None:
            tick()
            found = PredicateContext(self.predicates, equalities)
            # before a cache's expressions, which may know less of NULL, or more
            found.settle_on(self.expressions())
            self._contexts[equalities] = found
        return found

    def without_null_tests(self) -> PredicateContext:
        """What the query's predicates say but for its `x IS NOT NULL`."""
        if self._solid is None:
            rest = (p for p in self.context().conjuncts if not _is_null_test(p))
            self._solid = PredicateContext(rest)
        return self._solid

    @property
    def minus_zero(self) -> Expr | None:
        """A condition that compares something with -0.0, if there is one."""
        if self._minus_zero is None:
            found = (p for p in self.conditions() if compares_minus_zero(p))
            self._minus_zero = (next(found, None),)
        return self._minus_zero[0]

    def conditions(self) -> list[Expr]:
        """All that rows and groups are filtered and joined by."""
        conditions = (p for join in self.outer_joins for p in join.conditions())
        return [*self.predicates, *self.having, *conditions]

    def expressions(self) -> list[Expr]:
        """Everything that the query computes, predicates included."""
        found = [*self.predicates, *(o.expr for o in self.outputs), *(self.group_keys or ())]
        return [*found, *self.having, *(k.expr for k in self.order_by)]

    @property
    def required(self) -> frozenset[tuple[int, str]]:
        """The (table, column) pairs without which no cache can serve: of keys, outputs, filters,
        sums.

        A column that equals another one is left out, because that one may stand in for it.
        """
        if self._required is None:
            self._required = self.shown | self._filtered_by()
        return self._required

    @property
    def shown(self) -> frozenset[tuple[int, str]]:
        """Those of the `required` pairs that keys, outputs and sums are of: which takes no look at
        what the predicates say, and refuses most caches of a query that cannot hit."""
        if self._shown is None:
            keys = self.group_keys
            plain = [o.expr for o in self.outputs] if keys is None else keys
            sums = (agg for agg in self.aggregates if agg.func != "count")
            named = self._unjoined(chain(plain, sums))
            self._shown = named | {SINGLE_ROWS} if keys is None else named
        return self._shown

    def _filtered_by(self) -> frozenset[tuple[int, str]]:
        if FALSE in self.predicates:  # a cache of no row guarantees whatever else is asked
            return frozenset()
        anything = PredicateContext(())
        return self._unjoined(
            predicate
            for predicate in self.predicates
            if column_equality(predicate) is None and not implies(anything, predicate)
        )

    def _unjoined(self, exprs: Iterable[Expr]) -> frozenset[tuple[int, str]]:
        joined = self._joins().keys()
        named = {c for expr in exprs for c in columns(expr)}
        return frozenset((c.rel % OCCURRENCE, c.name) for c in named if c not in joined)

    def _joins(self) -> dict[Col, list[Col]]:
        """The class of each column that equals another: the query's own, without equalities that
        a cache may add."""
        if self._classes is None:
            parts = (part for p in self.predicates for part in conjuncts(p))
            pairs = [pair for pair in map(column_equality, parts) if pair is not None]
            classes = PredicateContext((), pairs).classes().values()
            self._classes = {member: members for members in classes for member in members}
        return self._classes

    @property
    def linked(self) -> tuple[tuple[tuple[int, str], ...], ...]:
        """The classes of equal columns, as (table, column) pairs."""
        if self._linked is None:
            classes = {id(members): members for members in self._joins().values()}.values()
            self._linked = tuple(
                tuple((m.rel % OCCURRENCE, m.name) for m in found) for found in classes
            )
        return self._linked

    def repeated(self) -> int:
        """The tables that the query reads more than once, as a set of bits."""
        times = Counter(rel % OCCURRENCE for rel in self.relations)
        return sum(
            1 << table for table, n in times.items() if n > 1 and table < FIRST_UNKNOWN_TABLE
        )


class PreparedPlan:
    """A cache plan in normal form: what one registration computes once, so that matching only
    reads."""

    __slots__ = (
        "_intern",
        "_linked",
        "_removals",
        "_variants",
        "columns",
        "context",
        "keys",
        "literal_predicates",
        "measures",
        "name",
        "order_by",
        "outer_joins",
        "plan",
        "predicates",
        "relations",
        "repeats",
        "sets",
        "table_count",
        "tables",
    )

    def __init__(self, plan: CachePlan, intern: Interner, share: Sharing | None = None) -> None:
        self.plan: Final = plan
        self.name: Final = plan.name
        rels = occurrences(intern(r.key) for r in plan.relations)
        self.relations: Final = rels
        self.tables: Final = frozenset(rels)
        self.table_count: Final = len(rels)
        self.repeats: Final = max(rels, default=0) >= OCCURRENCE
        memo = _either_side(plan.outer, rels, {})
        # what a FULL join says of a column holds in this plan alone
        shared = None if memo else share

        def move(expr: Expr) -> Expr:  # as it is by itself: it may be another plan's, too
            return relabel(expr, rels, {}, share)

        def placed(expr: Expr) -> Expr:
            if shared is None:
                return relabel(expr, rels, memo, share)
            return shared.moved(expr, rels, move)

        self.predicates: Final = tuple(map(placed, plan.predicates))
        self.context: Final = PredicateContext(self.predicates, memo=_MEMO_OF_CACHE)
        self.outer_joins: Final = _outer_joins(plan.outer, rels, memo)
        self._intern: Final = intern
        self._linked: Mapping[int, tuple[tuple[str, int, str], ...]] | None = None
        self._variants: dict[Hashable, PreparedPlan] = {}
        stored = plan.columns if plan.keys is None else plan.keys
        self.columns: Final = tuple((placed(c.expr), c) for c in stored)
        self.keys: Final = None if plan.keys is None else self.columns
        self.measures: Final[tuple[tuple[Agg, Measure], ...]] = tuple(
            (_agg(placed(m.agg)), m) for m in plan.measures
        )
        self.order_by: Final = tuple(
            SortKey(relabel(k.expr, rels, memo), k.ascending, k.nulls_first) for k in plan.order_by
        )
        # the conditions on rows that other constants in a query may satisfy or not
        self.literal_predicates: Final = tuple(
            p
            for p in (
                *self.predicates,
                *(p for join in self.outer_joins for p in join.conditions()),
            )
            if any(isinstance(node, Lit) for node in walk(p))
        )
        # the cheapest set first: the first that is valid wins inside one cube
        self.sets: Final = _cheapest_first(plan.grouping_sets) if plan.is_cube else ((None, 0),)
        self._removals: dict[tuple[frozenset[int], bool], object] = {}

    def relation(self, rel: int) -> Relation:
        """The table that an interned number stands for."""
        return self.plan.relations[self.relations.index(rel)]

    def stored(self, grouping_set: GroupingSet | None) -> list[tuple[Expr, StoredColumn]]:
        """The key (or plain) columns that rows of this view carry."""
        if grouping_set is None:
            return list(self.columns)
        return [self.columns[i] for i in grouping_set.keys]

    def variant(self, plan: CachePlan, key: Hashable) -> PreparedPlan:
        """`plan` in normal form, remembered under `key`: this plan as it is by the joins, or for
        the sides of FULL joins, that the key names."""
        found = self._variants.get(key)
        if found is None:
            found = self._variants[key] = PreparedPlan(plan, self._intern)
        return found

    @property
    def linked(self) -> Mapping[int, tuple[tuple[str, int, str], ...]]:
        """For each table of the plan the columns by which it is joined to others: its own column,
        the other table and that one's column."""
        if self._linked is None:
            parts = [*self.context.conjuncts]
            parts += [p for join in self.outer_joins if join.kind != "full" for p in join.on]
            found: dict[int, list[tuple[str, int, str]]] = {}
            for pair in map(column_equality, parts):
                for one, other in (pair, pair[::-1]) if pair is not None else ():
                    found.setdefault(one.rel, []).append((one.name, other.rel, other.name))
            self._linked = {rel: tuple(links) for rel, links in found.items()}
        return self._linked

    @property
    def removals(self) -> dict[tuple[frozenset[int], bool], object]:
        """Memo of `rules.map_relations` for this plan."""
        return self._removals


def _cheapest_first(
    sets: tuple[GroupingSet, ...],
) -> tuple[tuple[GroupingSet | None, int], ...]:
    """The sets, the cheapest to read first, each with the mask of its keys."""
    ordered = sorted(sets, key=lambda s: (read_cost(set_rows(s), s.bytes or 0), s.grouping_id))
    return tuple((s, sum(1 << key for key in s.keys)) for s in ordered)


def read_cost(rows: float, size: float) -> float:
    """What it costs to read so many rows and bytes, in rows."""
    return rows + size / _BYTES_A_ROW


def set_rows(grouping_set: GroupingSet) -> float:
    """Rows of a set; a guess that grows with its keys where the size is not known yet."""
    if grouping_set.rows is not None:
        return float(grouping_set.rows)
    return 10.0 * 4.0 ** len(grouping_set.keys)


def _place(side: Expr) -> object:
    """What an operand is found by: a column by its name, all else by itself."""
    return (side.rel, side.name) if isinstance(side, Col) else side


def _is_null_test(predicate: Expr) -> bool:
    return isinstance(predicate, Call) and predicate.op == "isnotnull"


def _agg(expr: Expr) -> Agg:
    assert isinstance(expr, Agg)
    return expr
