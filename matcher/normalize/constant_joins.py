"""Joins on columns that a filter says are one constant, as joins again.

`a.k = b.k AND b.k = 3` in one filter becomes `a.k = 3 AND b.k = 3` (Spark's ConstantPropagation),
over tables that nothing joins any more: a cache with that join would have nothing to be matched
with. So where equalities do not connect a block's tables, columns of theirs that are the same
constant are said to be equal, which they are in every row that passes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from matcher.model.expr import Call, Col, Expr
from matcher.model.ir import Block
from matcher.predicates.context import column_equality, fixed_columns


def with_constant_joins(block: Block) -> Block:
    """`block` with equalities for joins of which constants are left; itself where its inner joined
    tables are connected."""
    core = _inner_joined(block)
    if len(core) < 2:
        return block
    fixed = [(c, k) for c, k in fixed_columns(block.predicates).items() if c.rel in core]
    if len({column.rel for column, _ in fixed}) < 2:
        return block
    groups = _connected(core, block.predicates)
    added = tuple(_equal(a, b) for (a, x), (b, y) in combinations(fixed, 2)
                  if x == y and a.type == b.type and groups[a.rel] != groups[b.rel])  # fmt: skip
    return replace(block, predicates=(*block.predicates, *added)) if added else block


def is_connected(block: Block) -> bool:
    """Whether equalities connect all inner joined tables, so that no constant could add another."""
    return len(set(_connected(_inner_joined(block), block.predicates).values())) < 2


def _inner_joined(block: Block) -> set[int]:
    outer_tables = {rel for join in block.outer for rel in join.right}
    return set(range(len(block.relations))) - outer_tables


def _connected(core: set[int], predicates: tuple[Expr, ...]) -> dict[int, int]:
    """The tables, each with the number of the connected ones that it is among."""
    groups = {rel: rel for rel in core}
    for pair in map(column_equality, predicates):
        if pair is not None and pair[0].rel in core and pair[1].rel in core:
            old, new = groups[pair[0].rel], groups[pair[1].rel]
            groups = {rel: new if group == old else group for rel, group in groups.items()}
    return groups


def _equal(a: Col, b: Col) -> Expr:
    return Call("eq", (a, b), "boolean", a.nullable or b.nullable)
