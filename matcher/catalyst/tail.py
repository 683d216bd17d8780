"""ORDER BY and LIMIT above a block in Catalyst: a limit over a sort, or over the block itself,
projections anywhere between.

Such a block is looked for in top-k caches alone. Every other cache answers what is below, and the
sort and the limit stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from matcher.catalyst import document as doc
from matcher.catalyst.document import Entry, Node, Settings
from matcher.catalyst.expand import expand_below
from matcher.catalyst.expr import Env, decode
from matcher.model.ir import Block, Output, SortKey
from matcher.model.limits import Tail, combined

Items = Callable[[Node], list[Entry]]
Build = Callable[[Node], Block]
Try = Callable[[Entry, Env], Any]

_BLOCKS: Final = frozenset({"Aggregate", "Filter", "Join", "LogicalRelation"})
_LIMITS: Final = frozenset({"GlobalLimit", "LocalLimit"})


def is_tail(node: Node) -> bool:
    """True for the limit of an ORDER BY … LIMIT, or of one without ORDER BY."""
    return doc.operator(node) == "GlobalLimit" and _split(node) is not None


def is_having(node: Node) -> bool:
    """True for a filter right above an aggregation: its HAVING, or what is as that."""
    if doc.operator(node) != "Filter" or doc.is_answered(node):
        return False
    below = doc.child(node)
    if doc.operator(below) != "Aggregate" or doc.is_answered(below):
        return False
    return expand_below(below) is None


def is_ordered(node: Node) -> bool:
    """True for an ORDER BY without LIMIT, projections above it or not: of a definition, not of a
    query, whose sort stays where it is."""
    found = _split(node)
    return found is not None and found[0] == Tail()


def build_tail(node: Node, build: Build, items: Items, settings: Settings, attempt: Try) -> Block:
    """The block of an ORDER BY … LIMIT, with its tail.

    Args:
        node: A node for which `is_tail` or `is_ordered` is true.
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
        doc.id_of(item): output.expr
        for item, output in zip(items(below), block.outputs, strict=True)
    }
    keys = tuple(
        SortKey(decode(expr, env, settings), bool(up), bool(first)) for expr, up, first in sort
    )
    for projection in reversed(projections):
        env = {doc.id_of(item): attempt(item, env) for item in doc.expressions(projection)}
    shown = items(projections[0]) if projections else items(below)
    named = [(doc.id_of(item), doc.name_of(item)) for item in shown]
    outputs = tuple(
        Output(name, decode(doc.attribute(id, name), env, settings)) for id, name in named
    )
    return replace(
        block, outputs=outputs, order_by=keys, limit=tail.limit, offset=tail.offset or None
    )


def _split(node: Node) -> tuple[Tail, list[Node], list[Any], Node] | None:
    """The limits of a tail as one, the projections above its sort, the sort keys, and what is
    sorted."""
    tail = Tail()
    projections: list[Node] = []
    while True:
        kind = doc.operator(node)
        if doc.is_answered(node):
            return None
        if kind == "Sort":
            keys = doc.sort_keys(node)
            known = keys is not None and (tail.limit is not None or tail == Tail())
            return (tail, projections, keys or [], doc.child(node)) if known else None
        if kind in _BLOCKS and tail.limit is not None:
            return tail, projections, [], node
        if kind == "Project":
            projections.append(node)
        elif kind in _LIMITS and doc.row_count(node) is not None:
            tail = combined(Tail(doc.row_count(node)), tail)
        elif kind == "Offset" and doc.row_count(node) is not None:
            tail = combined(Tail(None, doc.row_count(node) or 0), tail)
        else:
            return None
        node = doc.child(node)
