"""Outputs in Catalyst that are more than a cache can hold: which parts of them a block stands for.

Spark merges what it puts over a block into the block itself: the text that `show()` makes of each
column, the padding of CHAR(n), a user's function of a sum, a field of a struct. What the matcher
cannot read of an output stays Spark's own expression, above the rows that are replaced; the block's
columns are then the highest parts below that it can read. So no such expression is ever spelled
again.

The node is split on demand alone: an output that the matcher reads whole is looked for whole, and
one that a cache may hold without it being read (it matches itself) first of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from matcher.catalyst import document as doc
from matcher.catalyst.document import Entry, Node, Settings, entries_below
from matcher.catalyst.expr import decode
from matcher.catalyst.once import Once
from matcher.model.errors import NotSupported
from matcher.model.expr import OPAQUE_PREFIX, Agg, Call, Col, Expr

Place: TypeAlias = tuple[int, ...]

# Those that pass on what is below them, column by column.
_PASSING: Final = frozenset({"GlobalLimit", "LocalLimit", "Offset"})
# What a Dataset puts over its columns to show them: no SQL gives it, so no cache holds it.
_SHOWN: Final = "ToPrettyString"


@dataclass(frozen=True, slots=True)
class Split:
    """What the columns of a block are of a subtree's outputs.

    Args:
        node: Where the node stands that computes the outputs: child numbers from the block's node.
        parts: For each column of the block, where it stands in them: the number of an output, then
            child numbers.
    """

    node: Place
    parts: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to read a subtree as a block: a node to decode, and of which parts of the outputs its
    columns are; None for the outputs themselves. For `once` see `LocatedBlock`."""

    node: Node
    split: Split | None = None
    once: Once = Once.NO


class _WholeOnly(Exception):
    """An output holds something that may neither be replaced nor stand above what is."""


class _AnyColumn(dict[int, Expr | NotSupported]):
    """Attributes of which only that they are some is of interest."""

    def get(self, key: int, default: object = None) -> Expr:
        return Col(0, str(key), "int", True)


_ANY_COLUMN: Final = _AnyColumn()


def ways(node: Node, settings: Settings) -> tuple[Way, ...]:
    """The ways to read a subtree, in the order in which they are to be tried.

    Args:
        node: The subtree's root: an aggregation, a projection, or a limit over one.
        settings: The session's.
    """
    whole = (Way(node),)
    place: Place = ()
    below = node
    while doc.operator(below) in _PASSING:
        below, place = doc.child(below), (*place, 0)
    if doc.operator(below) not in ("Aggregate", "Project") or all(
        map(_is_plain, doc.expressions(below))
    ):
        return whole
    try:
        shown = any(map(_is_never_stored, doc.expressions(below)))
    except RecursionError:
        return whole
    found: list[Way] = []
    before: object = None
    for deep in (False, True):
        if not (deep or shown):
            continue
        try:
            parts = tuple(_Parts(below, settings, deep).found())
        except (_WholeOnly, RecursionError):
            break
        places = tuple(at for at, _ in parts)
        whole_outputs = all(at in ((i,), (i, 0)) for i, at in enumerate(places))
        if places in ((), before) or (whole_outputs and len(places) == len(doc.expressions(below))):
            continue
        before = places
        entries = [doc.alias(-1 - i, f"c{i}", entry) for i, (_, entry) in enumerate(parts)]
        replaced = _put(node, place, doc.with_outputs(below, entries))
        found.append(Way(replaced, Split(place, places)))
    return tuple(found) if shown and found else (*whole, *found)


def _put(node: Node, place: Place, below: Node) -> Node:
    if not place:
        return below
    number = place[0]
    return doc.with_child(node, number, _put(doc.children(node)[number], place[1:], below))


def _is_plain(item: Entry) -> bool:
    """True for a column, a constant or an aggregate call, under whatever name."""
    inner = doc.aliased(item) if doc.tag(item) == doc.ALIAS else item
    return doc.tag(inner) in (doc.ATTRIBUTE, doc.AGGREGATE, doc.LITERAL)


def _is_never_stored(item: Entry) -> bool:
    """True if what stands above the aggregate calls is in no definition of a cache."""
    if doc.tag(item) == doc.REFUSED or doc.is_call(item, _SHOWN):
        return True
    return any(map(_is_never_stored, entries_below(item)))


class _Parts:
    """The parts of a node's outputs.

    Args:
        node: An aggregation or a projection.
        settings: The session's.
        deep: Take what the matcher cannot read apart; else only what no cache can hold.
    """

    def __init__(self, node: Node, settings: Settings, deep: bool) -> None:
        self._outputs: Final[list[Entry]] = doc.expressions(node)
        self._keys: Final[list[Entry] | None] = doc.group_keys(node)
        self._numbers: Final = {
            doc.id_of(key) for key in self._keys or () if doc.tag(key) == doc.ATTRIBUTE
        }
        self._settings: Final = settings
        self._deep: Final = deep

    def found(self) -> Iterator[tuple[Place, Entry]]:
        """Each part with its place.

        Raises:
            _WholeOnly: The outputs cannot be split.
        """
        for number, item in enumerate(self._outputs):
            yield from self._below(item, (number,))

    def _below(self, item: Entry, place: Place) -> Iterator[tuple[Place, Entry]]:
        kind = doc.tag(item)
        if kind == doc.LITERAL:
            return
        is_column = kind == doc.ATTRIBUTE
        if is_column and self._keys is not None and doc.id_of(item) not in self._numbers:
            raise _WholeOnly
        if is_column or kind == doc.AGGREGATE or (kind == doc.FUNCTION and self._is_whole(item)):
            yield place, item
            return
        if kind == doc.REFUSED and not doc.has_args(item):
            raise _WholeOnly
        for number, child in enumerate(entries_below(item)):
            yield from self._below(child, (*place, number))

    def _is_whole(self, item: Entry) -> bool:
        """True for an expression that is one column of the block."""
        if item in (self._keys or ()):
            return True
        if _is_never_stored(item) or not _has_columns(item):
            return False
        return not self._deep or self._is_read(item)

    def _is_read(self, item: Entry) -> bool:
        try:
            return not _is_opaque(decode(item, _ANY_COLUMN, self._settings))
        except NotSupported:
            return False


def _has_columns(item: Entry) -> bool:
    return doc.tag(item) in (doc.ATTRIBUTE, doc.AGGREGATE) or any(
        map(_has_columns, entries_below(item))
    )


def _is_opaque(expr: Expr) -> bool:
    """True if something above the aggregate calls is known to Spark alone."""
    if isinstance(expr, Agg):
        return False
    if isinstance(expr, Call) and expr.op.startswith(OPAQUE_PREFIX):
        return True
    return any(map(_is_opaque, expr.children))
