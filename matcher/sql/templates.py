"""Texts of a shape that was read before, read again without the parser.

A dashboard sends one text over and over with other constants. Reading it takes most of the time of
a decision, and gives the same block with other constants in it. So a text is read once with marks
in place of its constants. A constant whose mark comes out as one side of a comparison with a plain
column of the very same type, there and nowhere else, is *free*: the text with another one means
that block with the other one in its place. All other constants belong to the shape.

That holds because nothing that is done to a block on the way looks at such a constant's value,
apart from leaving out branches of OR that contradict other conditions, and from joining tables that
nothing joins by columns of one value. So only conditions joined by AND are taken, of one SELECT
over tables that equalities join; other texts are read by the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from matcher.memory.free_constants import Mark, Slots, filled, free_places, marks_for, slots_of
from matcher.model.errors import MatcherError
from matcher.model.expr import Lit
from matcher.model.ir import Block
from matcher.normalize.constant_joins import is_connected
from matcher.sql.parse import parse_statements
from matcher.sql.reader import TextBlock, TextQuery, TextSettings, parse_query
from matcher.sql.schema import Schema, Table
from matcher.sql.text import Document

# Without these a quote in a text begins or ends a name or a constant, and nothing is a comment.
_UNUSUAL: Final = re.compile(r"[\\\"{}$#\0]|--|/\*")
_PIECE: Final = re.compile(r"`[^`]*`|'[^']*'|(?<![\w.])(?:0|[1-9][0-9]{0,8})(?![\w.])")
_JOINED: Final = re.compile(r"[\w'`]")
_FREE_TYPES: Final = frozenset(("string", "int", "bigint"))
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)
_CONDITIONS: Final = (
    *_COMPARISONS, exp.And, exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Add, exp.Sub,
    exp.Mul, exp.Sum, exp.Count, exp.Min, exp.Max, exp.Avg, exp.Star,
)  # fmt: skip
_ONE_SELECT: Final = (exp.Subquery, exp.With, exp.SetOperation, exp.Lateral, exp.Hint, exp.Window)
_INNER: Final = ("", "INNER", "CROSS")
_MOST_CONSTANTS: Final = 64


@dataclass(frozen=True, slots=True)
class Lifted:
    """A text, its constants taken out.

    Args:
        parts: What stands between the constants; one more than there are of these.
        constants: As written, strings with their quotes.
    """

    parts: tuple[str, ...]
    constants: tuple[str, ...]

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for texts that differ in constants of the same kinds alone."""
        return (*self.parts, *(c[0] == "'" for c in self.constants))

    def with_constants(self, constants: Sequence[str]) -> str:
        """The text with other constants."""
        pairs = zip(self.parts, (*constants, ""), strict=True)
        return "".join(piece for pair in pairs for piece in pair)


def lift(text: str) -> Lifted | None:
    """Take a text apart; None where it takes a parser to tell what its constants are.

    >>> lift("SELECT `a'1` FROM t2 WHERE a = 'x' AND b > 10").constants
    ("'x'", '10')
    """
    if _UNUSUAL.search(text):
        return None
    parts: list[str] = []
    constants: list[str] = []
    start = 0
    for found in _PIECE.finditer(text):
        piece, at, end = found.group(), found.start(), found.end()
        if piece[0] == "`":
            continue
        if piece[0] == "'" and (
            (at and _JOINED.match(text, at - 1)) or _JOINED.match(text, end)
        ):  # a prefix, or one constant in two pieces
            return None
        parts.append(text[start:at])
        constants.append(piece)
        start = end
        if len(constants) > _MOST_CONSTANTS:  # a list of thousands is not read to its end
            return None
    if not constants:
        return None
    return Lifted((*parts, text[start:]), tuple(constants))


@dataclass(frozen=True, slots=True)
class Template:
    """What a shape means.

    Args:
        free: The places, among the text's constants, of those that may be others.
        label: Of its one block.
        block: The block, with marks for the free constants.
        slots: For each predicate the free constants in it; None for one that stays whole.
        tables: What the text reads.
    """

    free: tuple[int, ...]
    label: str
    block: Block
    slots: tuple[Slots | None, ...]
    tables: tuple[Table, ...]

    def read(self, lifted: Lifted) -> TextQuery:
        """The text as the parser would read it, up to the order of what is equal.

        Args:
            lifted: A text of this shape, with its pinned constants.
        """

        def constant(place: int, type: str) -> Lit:
            written = lifted.constants[place]
            return Lit(written[1:-1] if written[0] == "'" else int(written), type)

        predicates = tuple(
            p if slots is None else filled(p, slots, constant)
            for p, slots in zip(self.block.predicates, self.slots, strict=True)
        )
        node = exp.Select()
        document = Document("", node)
        for table in self.tables:
            name = exp.Table()
            name.parent = node
            document.tables[id(name)] = name, table
        block = replace(self.block, predicates=predicates)
        return TextQuery(document, (TextBlock(self.label, block, (), (), node),))


def pinned(lifted: Lifted, free: tuple[int, ...]) -> tuple[str, ...]:
    """The constants of a text that belong to its shape: those that are not free."""
    return tuple(c for place, c in enumerate(lifted.constants) if place not in free)


def learn(
    text: str, lifted: Lifted, read: TextQuery, schema: Schema, settings: TextSettings
) -> Template | None:
    """What the shape of a text means, or None if that is not known for other constants.

    Args:
        text: The text.
        lifted: The same, taken apart.
        read: The same, read by the parser.
        schema: What it was read against.
        settings: What it was read under.
    """
    marks = _marks(text, lifted.constants)
    try:
        free = _compared(lifted.with_constants(marks), marks)
        if not free:
            return None
        for _ in range(2):  # once more without those that are not free after all
            found = _template(lifted, marks, free, schema, settings)
            if found is None or found.free == free:
                break
            free = found.free
    except (MatcherError, SqlglotError, RecursionError):
        return None
    if found is None or found.free != free or not free:
        return None
    again = found.read(lifted)
    same = [b.block for b in again.roots] == [b.block for b in read.roots]
    return found if same and not read.reasons else None


def _marks(text: str, constants: tuple[str, ...]) -> tuple[str, ...]:
    """A mark for each constant, as it is written."""
    marks = marks_for(text, [constant[0] == "'" for constant in constants])
    return tuple(f"'{mark}'" if isinstance(mark, str) else str(mark) for mark in marks)


def _compared(marked: str, marks: tuple[str, ...]) -> tuple[int, ...]:
    """The places of constants that stand in a comparison; none in a text that is not taken."""
    statements = parse_statements(marked)
    root = statements[0] if len(statements) == 1 else None
    if not isinstance(root, exp.Select) or not _is_plain(root):
        return ()
    joins = [join.args["on"] for join in root.args.get("joins") or () if join.args.get("on")]
    above = [clause.this for key in ("where", "having") if (clause := root.args.get(key))]
    conditions = [*joins, *above]
    if not all(isinstance(n, _CONDITIONS) for c in conditions for n in c.walk()):
        return ()
    below = [c for c in conditions if not isinstance(c.parent, exp.Having)]
    literals = [n for c in below for n in c.find_all(exp.Literal)]
    written = {
        f"'{n.name}'" if n.is_string else n.name
        for n in literals
        if isinstance(n.parent, _COMPARISONS)
    }
    return tuple(place for place, mark in enumerate(marks) if mark in written)


def _is_plain(root: exp.Select) -> bool:
    """True of one SELECT over tables that are joined by inner joins."""
    if sum(1 for _ in root.find_all(exp.Select)) > 1 or root.find(*_ONE_SELECT) is not None:
        return False
    joins = root.args.get("joins") or ()
    return all(
        not j.args.get("side")
        and not j.args.get("method")
        and not j.args.get("using")
        and str(j.args.get("kind") or "").upper() in _INNER
        for j in joins
    )


def _template(
    lifted: Lifted,
    marks: tuple[str, ...],
    free: tuple[int, ...],
    schema: Schema,
    settings: TextSettings,
) -> Template | None:
    """The template with marks in these places; fewer of them are free if some came out otherwise
    than as a side of a comparison."""
    given = [marks[p] if p in free else c for p, c in enumerate(lifted.constants)]
    read = parse_query(lifted.with_constants(given), schema, settings)
    root = read.roots[0] if len(read.roots) == 1 else None
    if root is None or root.block is None or read.reasons or read.document.views:
        return None
    if root.children or root.split is not None or root.merged or root.block.outer:
        return None
    if root.node is not read.document.root or not is_connected(root.block):
        return None
    block = root.block
    by_value: dict[Mark, int] = {
        (m[1:-1] if m[0] == "'" else int(m)): p for p, m in enumerate(marks) if p in free
    }
    slots = tuple(slots_of(predicate, by_value, _FREE_TYPES) for predicate in block.predicates)
    really = tuple(sorted(free_places(block, slots, by_value)))
    tables = tuple(dict.fromkeys(table for _, table in read.document.tables.values()))
    return Template(really, root.label, block, slots, tables)
