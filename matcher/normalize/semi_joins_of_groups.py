"""SEMI and ANTI joins with groups of which they ask for keys alone, as joins with their rows.

`EXISTS (SELECT 1 FROM (SELECT k … GROUP BY k) g WHERE g.k = a.k)`: a group is found where one of
its rows is, since none is empty and all of its rows have its keys. Spark leaves such a GROUP BY out
of EXISTS and IN, so both doors do.
"""

from __future__ import annotations

from dataclasses import replace

from matcher.model.expr import Col, Expr, columns, transform
from matcher.model.ir import Block, Groups, OuterJoin


def with_rows_for_groups(block: Block) -> Block:
    """`block` with rows for such groups; itself where it has none."""
    while True:
        found = next(
            (
                (join, rel, groups)
                for join in block.outer
                for rel in join.right
                if (groups := block.relations[rel].groups) is not None
                and _only_by_keys(join, rel, groups)
            ),
            None,
        )
        if found is None:
            return block
        block = _of_rows(block, *found)


def _only_by_keys(join: OuterJoin, rel: int, groups: Groups) -> bool:
    if join.kind not in ("semi", "anti") or not groups.keys or groups.outer:
        return False
    keys = {key.name for key in groups.keys}
    return all(c.name in keys for part in join.on for c in columns(part) if c.rel == rel)


def _of_rows(block: Block, join: OuterJoin, rel: int, groups: Groups) -> Block:
    """The first table of the groups in their place, the others after all relations."""
    first, *others = groups.relations
    numbers = (rel, *range(len(block.relations), len(block.relations) + len(others)))
    rows = (*block.relations[:rel], first, *block.relations[rel + 1 :], *others)
    keys = {key.name: key.expr for key in groups.keys}

    def placed(expr: Expr) -> Expr:
        return transform(
            expr,
            lambda e: (
                Col(numbers[e.rel], e.name, e.type, e.nullable) if isinstance(e, Col) else None
            ),
        )

    def over(expr: Expr) -> Expr:
        def visit(node: Expr) -> Expr | None:
            is_key = isinstance(node, Col) and node.rel == rel
            return placed(keys[node.name]) if is_key and isinstance(node, Col) else None

        return transform(expr, visit)

    on = (*map(placed, groups.predicates), *map(over, join.on))
    named = {c for part in on for c in columns(part)}
    declared = {c for c in named if c.rel in numbers and not c.nullable}
    declared |= {c for c in join.declared if c.rel != rel}
    new = OuterJoin(
        join.kind,
        tuple(sorted({*join.right, *numbers})),
        on,
        tuple(sorted(declared, key=lambda c: (c.rel, c.name))),
    )
    outer = tuple(new if other is join else other for other in block.outer)
    return replace(block, relations=rows, outer=outer)
