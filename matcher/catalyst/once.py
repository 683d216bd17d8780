"""Rows of which it only matters that they are there: the query of EXISTS and IN, the right side of
a SEMI or ANTI join, what a LIMIT 1 takes any row of. A second row that is equal to the first
changes nothing there, so what is looked for may as well be their DISTINCT, which caches with groups
have.

The conditions that look at these rows are not read: they may show more of a value than what it is
equal to. So each column is of a type whose equal values are identical: -0.0 and 0.0, or strings
that a collation takes for one, stay as they are.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from matcher.catalyst import document as doc
from matcher.catalyst.document import Entry, Node
from matcher.model.types import has_exact_equality

_READ: Final = frozenset({"Project", "Filter", "Join", "LogicalRelation"})
_LEFT_ALONE: Final = frozenset({"LEFT SEMI", "LEFT ANTI"})


class Once(IntEnum):
    """Whether rows that are equal may be one; a plan document has the number, as `u`.

    `PERHAPS` is said of a subquery that Spark optimises apart from the expression that holds it: it
    may be that of EXISTS, or one whose every row is wanted.
    """

    NO = 0
    YES = 1
    PERHAPS = 2


def distinct_of(node: Node) -> Node | None:
    """The DISTINCT of a subtree's rows where it means the same there; None where it does not, or
    where that cannot be told.

    Args:
        node: A node of a plan document.
    """
    if not doc.once(node) or doc.operator(node) not in _READ or doc.is_answered(node):
        return None
    columns = _columns(node)
    if not columns or any(type_ is None for _, type_ in columns):
        return None
    keys = [item for item, _ in columns]
    return doc.aggregate_node(keys, keys, node)


def _columns(node: Node) -> list[tuple[Entry, str | None]]:
    """What a node puts out, as attributes, with the type of each: None for one that will not do."""
    if doc.operator(node) not in _READ and doc.operator(node) != "Aggregate":
        return [([], None)]
    if doc.operator(node) == "LogicalRelation":
        return [_column(item) for item in doc.columns(node)]
    if doc.operator(node) in ("Project", "Aggregate"):
        return [_column(item) for item in doc.expressions(node)]
    children = doc.children(node)[:1] if doc.join_kind(node) in _LEFT_ALONE else doc.children(node)
    return [column for child in children for column in _columns(child)]


def _column(item: Entry) -> tuple[Entry, str | None]:
    if doc.tag(item) not in doc.NAMED:
        return [], None
    found = doc.type_of(item)
    fits = found is not None and has_exact_equality(found)
    entry = doc.attribute(doc.id_of(item), doc.name_of(item), found, 1)
    return entry, found if fits else None
