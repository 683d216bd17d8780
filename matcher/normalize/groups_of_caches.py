"""A block over caches with groups, as one over the groups that these hold of the base tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from matcher.model.errors import NotSupported
from matcher.model.expr import Col, Expr, transform
from matcher.model.ir import Block, CachePlan, OuterJoin, Relation
from matcher.model.message import Word
from matcher.model.reasons import ReasonCode
from matcher.normalize.grouped_relations import as_relation, check_groups
from matcher.normalize.outer_joins import moved_join
from matcher.normalize.shown_outputs import shown_of_base
from matcher.normalize.simplify import simplified
from matcher.normalize.stored_block import stored_block


def over_groups(block: Block, caches: Mapping[str, CachePlan]) -> Block:
    """`block` with the groups of caches in place of the caches, in the groups below it as well.

    Args:
        block: A block of the text door, in whose schema the caches are tables.
        caches: The caches by relation key; no cubes and none with a limit.

    Raises:
        NotSupported: It amounts to no block over base tables.
    """
    return simplified(check_groups(_replaced(block, caches)))


def _replaced(block: Block, caches: Mapping[str, CachePlan]) -> Block:
    put = _PutIn(frozenset(rel for join in block.outer for rel in join.right))
    for number, relation in enumerate(block.relations):
        plan, groups = caches.get(relation.key), relation.groups
        if groups is not None:
            keys = tuple(key.expr for key in groups.keys)
            inner = Block(
                groups.relations, groups.predicates, groups.columns, keys, outer=groups.outer
            )
            put.groups(number, _replaced(inner, caches))
        elif plan is None:
            put.first.append(len(put.relations))
            put.relations.append(relation)
        elif plan.keys is None:
            put.rows(number, plan)
        else:
            put.groups(number, replace(stored_block(plan), outputs=shown_of_base(plan)))
    return replace(
        block.map(put),
        relations=tuple(put.relations),
        predicates=(*put.predicates, *map(put, block.predicates)),
        outer=(*put.outer, *map(put.join, block.outer)),
    )


@dataclass(slots=True)
class _PutIn:
    """Expressions of a block over what stands for its relations.

    `first` is the new number of each relation, or that of the first one that stands for it.
    """

    outer_joined: frozenset[int]
    first: list[int] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    columns: dict[tuple[int, str], Expr] = field(default_factory=dict)
    predicates: list[Expr] = field(default_factory=list)
    outer: list[OuterJoin] = field(default_factory=list)

    def groups(self, number: int, block: Block) -> None:
        """Takes in a block's groups for a relation that has its outputs as columns."""
        found = as_relation(block, len(self.relations))
        self.first.append(len(self.relations))
        self.relations.append(found.relation)
        self._filter(number, found.predicates)
        self.columns |= {(number, o.name): found.over(o.expr) for o in block.outputs}

    def rows(self, number: int, plan: CachePlan) -> None:
        """Takes in the tables of a cache without groups."""
        shift = len(self.relations)

        def moved(expr: Expr) -> Expr:
            return transform(
                expr,
                lambda e: (
                    Col(e.rel + shift, e.name, e.type, e.nullable) if isinstance(e, Col) else None
                ),
            )

        if number in self.outer_joined and (plan.outer or len(plan.relations) > 1):
            raise _refused("a cache of joined tables that is outer, semi or anti joined")
        self.first.append(shift)
        self.relations += plan.relations
        self._filter(number, tuple(map(moved, plan.predicates)))
        self.outer += [moved_join(join, shift) for join in plan.outer]
        self.columns |= {(number, o.name): moved(o.expr) for o in shown_of_base(plan)}

    def _filter(self, number: int, predicates: tuple[Expr, ...]) -> None:
        if predicates and number in self.outer_joined:
            raise _refused("a cache with a filter that is outer, semi or anti joined")
        self.predicates += predicates

    def __call__(self, expr: Expr) -> Expr:
        def visit(node: Expr) -> Expr | None:
            if not isinstance(node, Col):
                return None
            found = self.columns.get((node.rel, node.name))
            return found or Col(self.first[node.rel], node.name, node.type, node.nullable)

        return transform(expr, visit)

    def join(self, join: OuterJoin) -> OuterJoin:
        """An outer join of the block."""
        moved = join.map(self)
        declared = (self(column) for column in join.declared)
        return replace(
            moved,
            right=tuple(self.first[rel] for rel in join.right),
            declared=tuple(c for c in declared if isinstance(c, Col)),
            sides=tuple(
                replace(side, rels=tuple(self.first[rel] for rel in side.rels))
                for side in moved.sides
            ),
        )


def _refused(what: str) -> NotSupported:
    return NotSupported(ReasonCode.UNSUPPORTED_OPERATOR, "{what}", what=Word(what))
