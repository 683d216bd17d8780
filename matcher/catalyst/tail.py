"""ORDER BY and LIMIT above a block in Catalyst: a limit over a sort, or over the block itself,
projections anywhere between.

Such a block is looked for in top-k caches alone. Every other cache answers what is below, and the
sort and the limit stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from matcher.catalyst.expr import Env, Settings, decode
from matcher.model.ir import Block, Output, SortKey
from matcher.model.limits import Tail, combined

Node: TypeAlias = dict[str, Any]
Items = Callable[[Node], list[Any]]
Build = Callable[[Node], Block]
Try = Callable[[list[Any], Env], Any]

_BLOCKS: Final = frozenset({"Aggregate", "Filter", "Join", "LogicalRelation"})
_LIMITS: Final = frozenset({"GlobalLimit", "LocalLimit"})


def is_tail(node: Node) -> bool:
    """True for the limit of an ORDER BY … LIMIT, or of one without ORDER BY."""
    return node["n"] == "GlobalLimit" and _split(node) is not None


def build_tail(node: Node, build: Build, items: Items, settings: Settings, attempt: Try) -> Block:
    """The block of an ORDER BY … LIMIT, with its tail.

    Args:
        node: A node for which `is_tail` is true.
        build: Gives the block of the subtree below the sort.
        items: What a node puts out.
        settings: The session's.
        attempt: Decodes an entry, keeping what cannot be for whoever uses it.

    Raises:
        NotSupported: What is sorted is no block, or a key has no place in one.
    """
    found = _split(node)
    assert found is not None
    tail, projections, sort, below = found
    block = build(below)
    env: Env = {
        item[1]: output.expr for item, output in zip(items(below), block.outputs, strict=True)
    }
    keys = tuple(
        SortKey(decode(expr, env, settings), bool(up), bool(first)) for expr, up, first in sort
    )
    for projection in reversed(projections):
        env = {item[1]: attempt(item, env) for item in projection["p"]}
    shown = items(projections[0]) if projections else items(below)
    outputs = tuple(Output(item[2], decode(["a", *item[1:3]], env, settings)) for item in shown)
    return replace(
        block, outputs=outputs, order_by=keys, limit=tail.limit, offset=tail.offset or None
    )


def _split(node: Node) -> tuple[Tail, list[Node], list[Any], Node] | None:
    """The limits of a tail as one, the projections above its sort, the sort keys, and what is
    sorted."""
    tail = Tail()
    projections: list[Node] = []
    while True:
        kind = node["n"]
        if node.get("cache"):
            return None
        if kind == "Sort":
            known = "s" in node and tail.limit is not None
            return (tail, projections, node["s"], node["c"][0]) if known else None
        if kind in _BLOCKS and tail.limit is not None:
            return tail, projections, [], node
        if kind == "Project":
            projections.append(node)
        elif kind in _LIMITS and "l" in node:
            tail = combined(Tail(node["l"]), tail)
        elif kind == "Offset" and "l" in node:
            tail = combined(Tail(None, node["l"]), tail)
        else:
            return None
        node = node["c"][0]
