"""A block with what caches hold of base tables in the place of the caches among its relations."""

from __future__ import annotations

from dataclasses import dataclass, field

from matcher.model.expr import Col, Expr, moved, transform
from matcher.model.ir import CachePlan, OuterJoin, Relation
from matcher.normalize.grouped_relations import AsRelation
from matcher.normalize.outer_joins import moved_join, renumbered
from matcher.normalize.shown_outputs import shown_of_base


@dataclass(slots=True)
class PutIn:
    """Expressions of a block over what stands for its relations, which are told of in order.

    Attributes:
        first: The new number of each relation, or that of the first one that stands for it.
        relations: All that stand for them.
        columns: What stands for the columns of those that were replaced, by their old numbers.
        predicates: The conditions of what stands for them.
        outer: The outer joins of what stands for them.
    """

    first: list[int] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    columns: dict[tuple[int, str], Expr] = field(default_factory=dict)
    predicates: list[Expr] = field(default_factory=list)
    outer: list[OuterJoin] = field(default_factory=list)

    def kept(self, relation: Relation) -> None:
        """The next relation stays."""
        self.first.append(len(self.relations))
        self.relations.append(relation)

    def rows(self, plan: CachePlan) -> None:
        """The tables of a cache stand for the next relation."""
        number, shift = len(self.first), len(self.relations)
        self.first.append(shift)
        self.relations += plan.relations
        self.predicates += (moved(part, shift) for part in plan.predicates)
        self.outer += (moved_join(join, shift) for join in plan.outer)
        self.columns |= {(number, o.name): moved(o.expr, shift) for o in shown_of_base(plan)}

    def groups(self, found: AsRelation, columns: dict[str, Expr]) -> None:
        """Groups stand for the next relation.

        Args:
            found: The groups, made for the number `len(relations)`.
            columns: What each column of the relation is, over the block of the groups.
        """
        number = len(self.first)
        self.kept(found.relation)
        self.predicates += found.predicates
        self.columns |= {(number, name): found.over(expr) for name, expr in columns.items()}

    def __call__(self, expr: Expr) -> Expr:
        """An expression of the block."""

        def visit(node: Expr) -> Expr | None:
            if not isinstance(node, Col):
                return None
            found = self.columns.get((node.rel, node.name))
            return found or Col(self.first[node.rel], node.name, node.type, node.nullable)

        return transform(expr, visit)

    def join(self, join: OuterJoin) -> OuterJoin:
        """An outer join of the block."""
        return renumbered(join, self, self.first.__getitem__)
