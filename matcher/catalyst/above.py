"""What stands above a block and shows in which order its rows come, as the walk of a plan finds it
on its way down.

Most of it is so of all rows below (`matcher.model.row_order.Shown`). Of the averages of whole
numbers it is known which columns they are of, as long as the operators between neither compute
anything of these columns nor repeat rows: then the rows behind a cache may prove them exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from matcher.catalyst import document as doc
from matcher.catalyst.document import Entry, Node
from matcher.catalyst.tree import items
from matcher.model.row_order import Shown

# What passes its columns on as they are, and each row once at most.
_PASSING: Final = frozenset(
    "Filter GlobalLimit LocalLimit Offset Sort Window Repartition RepartitionByExpression".split()
)
_COMPUTED: Final = -1


@dataclass(frozen=True, slots=True)
class Above:
    """What is shown above a node.

    Args:
        shown: What is so of all rows.
        averaged: The ids of the node's columns of whole numbers that are averaged.
    """

    shown: Shown = Shown.NOTHING
    averaged: frozenset[int] = frozenset()

    def below(self, node: Node) -> Above:
        """What is shown above the children of a node, by it and by what is above it."""
        if doc.may_be_aggregated(node):
            return Above(Shown.ADDS | Shown.PICKS | Shown.AVERAGES | Shown.UNSEEN)
        if not (self.averaged or doc.order_shown(node) or doc.averaged(node)):
            return self
        shown = reduce(or_, (Shown[name.upper()] for name in doc.order_shown(node)), self.shown)
        passed = _passed(node, self.averaged) if self.averaged else self.averaged
        ids = passed | frozenset(doc.averaged(node))
        if _COMPUTED in ids:
            return Above(shown | Shown.AVERAGES, ids - {_COMPUTED})
        return Above(shown, ids)

    def at(self, node: Node) -> tuple[Shown, tuple[int, ...]]:
        """What of it shows the order of a block's rows, and which of its columns are averaged.

        Args:
            node: The block's node.
        """
        if not self.averaged:
            return self.shown, ()
        ids = [doc.id_of(item) if doc.tag(item) in doc.NAMED else None for item in items(node)]
        if not self.averaged <= set(ids):
            return self.shown | Shown.AVERAGES, ()
        return self.shown, tuple(ids.index(number) for number in sorted(self.averaged))


def _passed(node: Node, ids: frozenset[int]) -> frozenset[int]:
    """The columns below a node that are these above it, `_COMPUTED` for what is none."""
    kind = doc.operator(node)
    if kind in _PASSING:
        return ids
    if kind != "Project":
        return frozenset({_COMPUTED})
    sources = {doc.id_of(e): _source(e) for e in doc.expressions(node) if doc.tag(e) in doc.NAMED}
    return frozenset(sources.get(number, _COMPUTED) for number in ids)


def _source(entry: Entry) -> int:
    inner = doc.aliased(entry) if doc.tag(entry) == doc.ALIAS else entry
    return doc.id_of(inner) if doc.tag(inner) == doc.ATTRIBUTE else _COMPUTED
