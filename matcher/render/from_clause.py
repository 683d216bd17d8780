"""FROM of the SELECT that a cache's table holds: the inner core as cross joins with its conditions
in WHERE, then the outer, semi and anti joins in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from matcher.model.expr import Expr
from matcher.model.ir import CachePlan, Groups, OuterJoin, Side

JOIN_WORDS: Final = {
    "inner": "INNER JOIN", "left": "LEFT JOIN", "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN",
    "full": "FULL JOIN",
}  # fmt: skip
Spelled = Callable[[Expr], str]


def stored_from(plan: CachePlan | Groups, tables: Sequence[str], spelled: Spelled) -> list[str]:
    """The lines of FROM.

    Args:
        plan: the cache, or groups below it.
        tables: relation i as it is named in FROM, its alias `ti` included.
        spelled: an expression over these aliases as SQL.
    """
    if not plan.outer:
        return ["FROM " + ", ".join(tables)]
    outer_tables = {rel for join in plan.outer for rel in join.right}
    core = [t for i, t in enumerate(tables) if i not in outer_tables]
    core += [_full(join, tables, spelled) for join in plan.outer if join.kind == "full"]
    # a comma binds less than JOIN, and ON would not see what stands before it
    lines = ["FROM " + " CROSS JOIN ".join(core)]
    for join in plan.outer:
        if join.kind == "full":
            continue
        right = " CROSS JOIN ".join(tables[rel] for rel in join.right)
        right = right if len(join.right) == 1 else f"({right})"
        lines.append(f"{JOIN_WORDS[join.kind]} {right} ON {_all(join.on, spelled)}")
    return lines


def _full(join: OuterJoin, tables: Sequence[str], spelled: Spelled) -> str:
    left, right = (_side(side, tables, spelled) for side in join.sides)
    return f"({left} {JOIN_WORDS['full']} {right} ON {_all(join.on, spelled)})"


def _side(side: Side, tables: Sequence[str], spelled: Spelled) -> str:
    if not side.where and len(side.rels) == 1:
        return tables[side.rels[0]]
    if len(side.rels) == 1:
        (rel,) = side.rels
        where = " AND ".join(map(spelled, side.where))
        return f"(SELECT * FROM {tables[rel]} WHERE {where}) AS t{rel}"
    *most, last = (tables[rel] for rel in side.rels)
    return f"({' CROSS JOIN '.join(most)} INNER JOIN {last} ON {_all(side.where, spelled)})"


def _all(parts: Sequence[Expr], spelled: Spelled) -> str:
    return "\n  AND ".join(map(spelled, parts)) or "TRUE"
