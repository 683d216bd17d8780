"""Blocks of queries in the form that they are compared in with cache plans.

1. Tables have numbers in place of names (`relation_numbers`).
2. The predicates become a `PredicateContext` (classes, domains, residuals).
3. The columns that a query cannot do without, and those that a cache mentions, let the index
    refuse most caches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from matcher.model.budget import tick
from matcher.model.expr import (
    FALSE,
    Call,
    Col,
    Expr,
    aggregates,
    columns,
    conjuncts,
    count_nodes,
    walk,
)
from matcher.model.ir import Block, LeftOut, Output, Relation, SortKey
from matcher.normalize.outer_join_keys import either_side, outer_join_keys
from matcher.normalize.relation_numbers import FIRST_UNKNOWN_TABLE, OCCURRENCE, relabel
from matcher.predicates.context import PredicateContext, column_equality
from matcher.predicates.implication import implies
from matcher.predicates.negative_zeros import compares_minus_zero

# Stands among columns: single rows are needed, or held, and not groups of them.
SINGLE_ROWS: Final = (-1, "")
# The query in other numbers of its relations, remembered for the next cache
_MOST_NUMBERED: Final = 32
# A comparison that may say that two columns are equal, alone or together with others.
_MAY_EQUATE: Final = frozenset(("eq", "nseq", "le", "ge", "in"))


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
        memo = either_side(block.outer, rels, {})
        self.predicates: Final = tuple(relabel(p, rels, memo) for p in block.predicates)
        self.outer_joins: Final = outer_join_keys(block.outer, rels, memo)
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


def _place(side: Expr) -> object:
    """What an operand is found by: a column by its name, all else by itself."""
    return (side.rel, side.name) if isinstance(side, Col) else side


def _is_null_test(predicate: Expr) -> bool:
    return isinstance(predicate, Call) and predicate.op == "isnotnull"
