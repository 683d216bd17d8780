"""A block over caches with groups, as one over the groups that these hold of the base tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matcher.model.errors import NotSupported
from matcher.model.expr import Expr
from matcher.model.ir import Block, CachePlan, Relation
from matcher.model.message import Word
from matcher.model.reasons import ReasonCode
from matcher.normalize.grouped_relations import as_relation, check_groups
from matcher.normalize.put_in import PutIn
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
    put, outer_joined = PutIn(), {rel for join in block.outer for rel in join.right}
    for number, relation in enumerate(block.relations):
        plan, is_joined = caches.get(relation.key), number in outer_joined
        below = _groups_of(relation, plan, caches)
        if below is not None:
            found = as_relation(below, len(put.relations))
            _refuse_filter(found.predicates if is_joined else ())
            put.groups(found, {o.name: o.expr for o in below.outputs})
        elif plan is None:
            put.kept(relation)
        else:
            if is_joined and (plan.outer or len(plan.relations) > 1):
                raise _refused("a cache of joined tables that is outer, semi or anti joined")
            _refuse_filter(plan.predicates if is_joined else ())
            put.rows(plan)
    return replace(
        block.map(put),
        relations=tuple(put.relations),
        predicates=(*put.predicates, *map(put, block.predicates)),
        outer=(*put.outer, *map(put.join, block.outer)),
    )


def _groups_of(
    relation: Relation, plan: CachePlan | None, caches: Mapping[str, CachePlan]
) -> Block | None:
    """The block whose groups a relation has; None where it has rows."""
    groups = relation.groups
    if groups is not None:
        keys = tuple(key.expr for key in groups.keys)
        inner = Block(groups.relations, groups.predicates, groups.columns, keys, outer=groups.outer)
        return _replaced(inner, caches)
    if plan is None or plan.keys is None:
        return None
    return replace(stored_block(plan), outputs=shown_of_base(plan))


def _refuse_filter(predicates: tuple[Expr, ...]) -> None:
    if predicates:
        raise _refused("a cache with a filter that is outer, semi or anti joined")


def _refused(what: str) -> NotSupported:
    return NotSupported(ReasonCode.UNSUPPORTED_OPERATOR, "{what}", what=Word(what))
