"""Cache plans in the form that queries are compared with: tables as numbers (`relation_numbers`),
predicates as a `PredicateContext`, the grouping sets by what they cost to read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

from matcher.model.expr import Agg, Expr, Lit, walk
from matcher.model.hash_consing import Sharing
from matcher.model.ir import (
    CachePlan,
    GroupingSet,
    Measure,
    RecordPreservingJoin,
    Relation,
    SortKey,
    StoredColumn,
)
from matcher.normalize.grouped_relations import unique_keys
from matcher.normalize.outer_join_keys import either_side, outer_join_keys
from matcher.normalize.relation_numbers import OCCURRENCE, Interner, occurrences, relabel
from matcher.predicates.context import PredicateContext, column_equality

# Bytes that cost as much to read as a row does.
_BYTES_A_ROW: Final = 100.0
# Expressions of queries that a cache remembers in canonical form
_MEMO_OF_CACHE: Final = 128


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
        "having",
        "joins",
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
        # by the groups among its relations, too, which nobody declares and nothing breaks
        self.joins: Final[tuple[RecordPreservingJoin, ...]] = (
            *plan.joins,
            *unique_keys(plan.relations),
        )
        self.name: Final = plan.name
        rels = occurrences(intern(r.key) for r in plan.relations)
        self.relations: Final = rels
        self.tables: Final = frozenset(rels)
        self.table_count: Final = len(rels)
        self.repeats: Final = max(rels, default=0) >= OCCURRENCE
        memo = either_side(plan.outer, rels, {})
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
        self.outer_joins: Final = outer_join_keys(plan.outer, rels, memo)
        self._intern: Final = intern
        self._linked: Mapping[int, tuple[tuple[str, int, str], ...]] | None = None
        self._variants: dict[Hashable, PreparedPlan] = {}
        stored = plan.columns if plan.keys is None else plan.keys
        self.columns: Final = tuple((placed(c.expr), c) for c in stored)
        self.keys: Final = None if plan.keys is None else self.columns
        self.measures: Final[tuple[tuple[Agg, Measure], ...]] = tuple(
            (_agg(placed(m.agg)), m) for m in plan.measures
        )
        self.having: Final = tuple(placed(part) for part in plan.having)
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


def _agg(expr: Expr) -> Agg:
    assert isinstance(expr, Agg)
    return expr
