"""Plan documents of a shape that came before, read again without decoding them.

A dashboard asks one query over and over with other constants. Its documents differ in these alone,
for the hook numbers columns in the order in which it writes them. So the second document of a shape
is decoded twice, once with marks in place of its constants (`matcher.memory.free_constants`), and
the next ones are the blocks of that one with their own constants filled in. A constant whose mark
does not come out as one side of a comparison with a plain column belongs to the shape, as far as
the block at hand has it.

What is filled in is a block as decoded, which no constant in a comparison has had a say in;
`simplified` looks at constants, and so it looks at each block anew.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from matcher.catalyst import document as doc
from matcher.catalyst.document import Document, Node, Path, node_at
from matcher.catalyst.once import Once
from matcher.catalyst.reader import (
    LocatedBlock,
    NodeReader,
    finished,
    raw_block_by,
    walk_blocks,
    ways_of,
)
from matcher.catalyst.split import Split
from matcher.memory.bounded import Bounded
from matcher.memory.free_constants import (
    FIRST_NUMBER,
    Mark,
    Slots,
    filled,
    free_places,
    marks_for,
    slots_of,
)
from matcher.model.expr import Lit
from matcher.model.ir import Block, reads_groups

# A quote inside of a string is written with a backslash, so this is never part of one.
_CONSTANT: Final = re.compile(
    r'\["l",(-?[0-9]+|"(?:[^"\\]|\\.)*"),'
    r'"(string|int|bigint|smallint|tinyint|date|timestamp|timestamp_ntz)"\]'
)
_FREE_TYPES: Final = frozenset(
    "string int bigint smallint tinyint date timestamp timestamp_ntz".split()
)
# A document of 24,000 characters takes 0.3 MB as objects, and a template of it 0.05 MB.
_MOST_SHAPES: Final = 128
_MOST_PINNED: Final = 8
_LONG_TEXT: Final = 24_000
# The last of the year 9999.
_LAST_DAY: Final = 2_932_896
# Short whole numbers have too few values for marks.
_MARKED_TYPES: Final = _FREE_TYPES - {"smallint", "tinyint"}


@dataclass(frozen=True, slots=True)
class _Lifted:
    """A document's text, its constants taken out.

    Args:
        parts: What stands between the constants; one more than there are of these.
        constants: As written.
        types: The type of each.
    """

    parts: tuple[str, ...]
    constants: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def shape(self) -> tuple[str, ...]:
        """Equal for documents that differ in constants of the same types alone."""
        return (*self.parts, *self.types)

    def marks(self, first: int = FIRST_NUMBER) -> tuple[Mark, ...]:
        """A constant of the same kind for each, that stands nowhere else in the document."""
        text = "".join((*self.parts, *self.constants))
        return marks_for(text, [written[0] == '"' for written in self.constants], first)

    def with_marks(self, marks: tuple[Mark, ...], places: frozenset[int]) -> str:
        """The text with marks in these places."""
        constants = [
            json.dumps(marks[place]) if place in places else written
            for place, written in enumerate(self.constants)
        ]
        written = [f'["l",{c},"{t}"]' for c, t in zip(constants, self.types, strict=True)]
        pairs = zip(self.parts, (*written, ""), strict=True)
        return "".join(piece for pair in pairs for piece in pair)

    def constant(self, place: int, type: str) -> Lit:
        """One of the constants."""
        written = self.constants[place]
        if written[0] != '"':
            return Lit(int(written), type)
        return Lit(json.loads(written) if "\\" in written else written[1:-1], type)

    def rendered_marks(self, places: frozenset[int]) -> dict[int, Mark]:
        """A mark for each of these places that can be written in SQL as well: one of a date is a
        day of the calendar."""
        marks, days = self.marks(), self.marks(_LAST_DAY - len(self.types))
        return {n: (days if self.types[n] == "date" else marks)[n] for n in places}


def _lift(text: str) -> _Lifted:
    pieces = _CONSTANT.split(text)
    return _Lifted(tuple(pieces[::3]), tuple(pieces[1::3]), tuple(pieces[2::3]))


@dataclass(frozen=True, slots=True)
class _Template:
    """A block as decoded, marks in its free constants, and where these stand in each condition;
    None for one that has none. For `split` and `once` see `LocatedBlock`."""

    block: Block
    slots: tuple[Slots | None, ...]
    split: Split | None
    once: Once

    def filled(self, lifted: _Lifted) -> Block:
        """The block of a document."""
        predicates = tuple(
            [
                p if slots is None else filled(p, slots, lifted.constant)
                for p, slots in zip(self.block.predicates, self.slots, strict=True)
            ]
        )
        return replace(self.block, predicates=predicates)


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known of the block at one path, read in one way.

    Args:
        free: Those of its constants that may be others.
        pinned: Those that belong to the shape, in order.
        templates: What the block is, for some of these.
    """

    free: frozenset[int]
    pinned: tuple[int, ...]
    templates: dict[tuple[str, ...], _Template] = field(default_factory=dict)

    def key(self, lifted: _Lifted) -> tuple[str, ...]:
        """The pinned constants of a document."""
        return tuple([lifted.constants[number] for number in self.pinned])


class _Shape:
    """What is known of one shape: a document of it, all its constants marks, and its blocks by
    their path and the way in which it is read. For each so many are tried: some constants are
    others in every document."""

    __slots__ = ("_marks", "_numbers", "_tried", "document", "places", "ways")

    def __init__(self, lifted: _Lifted) -> None:
        self._marks: Final = lifted.marks()
        self._numbers: Final = {mark: place for place, mark in enumerate(self._marks)}
        whole = lifted.with_marks(self._marks, frozenset(self._numbers.values()))
        self.document: Final[dict[str, Any]] = json.loads(whole)
        self.places: Final[dict[tuple[Path, int], _Place]] = {}
        self.ways: Final[dict[Path, int]] = {}
        self._tried: Final[Counter[tuple[Path, int]]] = Counter()

    def learn(self, at: tuple[Path, int], located: LocatedBlock, lifted: _Lifted) -> None:
        """Take note of a block.

        Args:
            at: Where it stands, and the way in which that is read.
            located: The block as decoded.
            lifted: The document that it is of.
        """
        self._tried[at] += 1
        if self._tried[at] > _MOST_PINNED:
            return
        place = self.places.get(at)
        node = node_at(self.document, at[0])
        inside = frozenset(self._marks_in(node))
        free = frozenset(self._compared_in(node)) if place is None else place.free
        found = self._marked(at, free, lifted)
        if place is None and found is not None and found[1] != free:
            free = found[1]  # once more, the others being what they are
            found = self._marked(at, free, lifted)
        if found is None or found[1] != free or found[0].filled(lifted) != located.block:
            return
        if found[0].split != located.split:
            return
        if place is None:
            place = self.places[at] = _Place(free, tuple(sorted(inside - free)))
        place.templates[place.key(lifted)] = found[0]

    def _marked(
        self, at: tuple[Path, int], places: frozenset[int], lifted: _Lifted
    ) -> tuple[_Template, frozenset[int]] | None:
        """The block with marks in these places, and those of them that may be others after all."""
        document = json.loads(lifted.with_marks(self._marks, places))
        located = _read(document, *at)
        if located is None or located.block is None:
            return None
        block = located.block
        marks = {mark: place for mark, place in self._numbers.items() if place in places}
        slots = tuple(slots_of(p, marks, _FREE_TYPES) for p in block.predicates)
        template = _Template(block, slots, located.split, located.once)
        return template, free_places(block, slots, marks)

    def _compared_in(self, node: Node) -> list[int]:
        """The places of all marks in the conditions of filters and joins."""
        holds = doc.operator(node) in ("Filter", "Join")
        own = self._marks_in(doc.expressions(node)) if holds else []
        return own + [place for child in doc.children(node) for place in self._compared_in(child)]

    def _marks_in(self, entry: Any) -> list[int]:
        """The places of all marks in a part of the document."""
        found: list[int] = []
        left = [entry]  # no recursion: expressions go deep
        while left:
            part = left.pop()
            if isinstance(part, dict):
                left += part.values()
            elif isinstance(part, list):
                left += part
            elif isinstance(part, str | int) and part in self._numbers:
                found.append(self._numbers[part])
        return found


@dataclass(frozen=True, slots=True)
class MarkedDocument:
    """A document with marks in place of those constants of one block that may be others.

    Args:
        document: It.
        marks: What stands in the place of each.
        types: The types of all constants of the document.
        block_of: Gives the block of a document of this shape by all its constants, as written
            there; None where that has to be decoded.
    """

    document: PlanDocument
    marks: Mapping[int, Mark]
    types: tuple[str, ...]
    block_of: Callable[[Sequence[str]], Block | None]


class PlanDocument:
    """A plan document, to be walked; it is made by `PlanShapes.read`, or of one that was read.

    `structure` says which operators and tables there are, and where. Constants in it may be those
    of another document of the same shape.
    """

    __slots__ = ("_reader", "structure")

    def __init__(self, structure: Document, reader: _ShapeReader | None = None) -> None:
        self.structure: Final = structure
        self._reader: Final = reader

    def tables_outside(self, answered: Collection[Path]) -> frozenset[str]:
        """Names of the tables that are read outside of the nodes at some paths."""
        return doc.tables_outside(self.structure, answered)

    def is_sorted_above(self, path: Path) -> bool:
        """Whether what is at a path is the input of an ORDER BY without LIMIT."""
        return doc.is_sorted_above(self.structure, path)

    @property
    def shape(self) -> int | None:
        """Equal for documents of one shape; None where nothing is known of it."""
        return None if self._reader is None else self._reader.shape

    def marked(self, path: Path, block: Block) -> MarkedDocument | None:
        """The document with marks; None where nothing is known of its shape.

        Args:
            path: Where the block stands whose constants are marked.
            block: The block, as `walk` gives it.
        """
        return None if self._reader is None else self._reader.marked(path, block)

    def walk(self, visit: Callable[[LocatedBlock], bool], *, tails: bool = True) -> None:
        """Visits its blocks; see `matcher.catalyst.reader.walk_blocks`."""
        walk_blocks(self.structure, visit, self._reader, tails=tails)


class _ShapeReader:
    """Makes the blocks of a document from those of its shape, and from its own nodes where these
    are not known."""

    def __init__(self, shape: _Shape, text: str, lifted: _Lifted) -> None:
        self._shape: Final = shape
        self._text: Final = text
        self._lifted: Final = lifted
        self._document: dict[str, Any] | None = None

    @property
    def shape(self) -> int:
        """See `PlanDocument.shape`."""
        return hash(self._lifted.shape)

    def ways(self, node: Node, path: Path) -> int:
        """See `matcher.catalyst.reader.Reader`."""
        found = self._shape.ways.get(path)
        if found is None:
            found = self._shape.ways[path] = len(ways_of(node, self._shape.document))
        return found

    def block(self, node: Node, path: Path, way: int) -> LocatedBlock | None:
        """See `matcher.catalyst.reader.Reader`."""
        raw = _known(self._shape, self._lifted, path, way)
        if raw is None:
            raw = _read(self._own(), path, way)
            if raw is not None and raw.block is not None and not reads_groups(raw.block):
                with suppress(RecursionError):  # too deep to learn, not to be decoded
                    self._shape.learn((path, way), raw, self._lifted)
        return None if raw is None else finished(raw)

    def tail(self, node: Node, path: Path, way: int) -> LocatedBlock | None:
        """See `matcher.catalyst.reader.Reader`."""
        document = self._own()
        return NodeReader(document).tail(node_at(document, path), path, way)

    def marked(self, path: Path, block: Block) -> MarkedDocument | None:
        """See `PlanDocument.marked`."""
        lifted = self._lifted
        for at, way in list(self._shape.places):
            block_of = partial(_filled_block, self._shape, lifted, at, way)
            if at != path or block_of(lifted.constants) != block:
                continue
            found = self._shape.places[at, way].free
            free = frozenset(n for n in found if lifted.types[n] in _MARKED_TYPES)
            marks = lifted.rendered_marks(free)
            words = tuple(marks.get(place, "") for place in range(len(lifted.types)))
            document = PlanDocument(json.loads(lifted.with_marks(words, free)))
            return MarkedDocument(document, marks, lifted.types, block_of)
        return None

    def _own(self) -> dict[str, Any]:
        """This document itself."""
        if self._document is None:
            self._document = json.loads(self._text)
        return self._document


def _filled_block(
    shape: _Shape, lifted: _Lifted, path: Path, way: int, constants: Sequence[str]
) -> Block | None:
    """The block of a document of that shape with these constants, if its template is known."""
    raw = _known(shape, replace(lifted, constants=tuple(constants)), path, way)
    return None if raw is None else finished(raw).block


def _known(shape: _Shape, lifted: _Lifted, path: Path, way: int) -> LocatedBlock | None:
    """A block as decoded, filled into what is known of a shape."""
    place = shape.places.get((path, way))
    if place is None:
        return None
    template = place.templates.get(place.key(lifted))
    try:
        if template is None:
            return None
        block = template.filled(lifted)
        return LocatedBlock(path, block, split=template.split, once=template.once)
    except RecursionError:
        return None


def _read(document: dict[str, Any], path: Path, way: int) -> LocatedBlock | None:
    """The block at a path of a document, read in one way, as decoded."""
    found = ways_of(node_at(document, path), document)
    return raw_block_by(found[way], path, document) if way < len(found) else None


class PlanShapes:
    """A bounded memory of the shapes of plan documents. What came once is not worth it, and long
    documents are not: a shape is kept with all that stands in it. Any thread may read."""

    def __init__(self) -> None:
        self._shapes: Final[Bounded[_Shape]] = Bounded(_MOST_SHAPES, admit="second time")

    def read(self, text: str) -> PlanDocument:
        """A plan document.

        Args:
            text: As the hook writes it (JSON).

        Raises:
            ValueError: It is no JSON.
        """
        if len(text) > _LONG_TEXT:
            return PlanDocument(json.loads(text))
        lifted = _lift(text)
        shape = self._shapes.keep(lifted.shape, lambda: _Shape(lifted))
        if shape is None:
            return PlanDocument(json.loads(text))
        return PlanDocument(shape.document, _ShapeReader(shape, text, lifted))
