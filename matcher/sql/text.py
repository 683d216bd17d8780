"""Where each SELECT stands in the text, so that one can be replaced and the rest kept as written.

The parser keeps the places of names and literals, not of clauses. A SELECT's place is worked out
from the tokens and then proven: the piece of text, parsed alone, must be the very same tree. Where
that fails the text is generated from the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from matcher.render.select import NotRenderable
from matcher.sql.parse import parse_statements
from matcher.sql.schema import Table

_SET_OPERATORS: Final = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
_TAILS: Final = frozenset(
    {TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.SORT_BY,
     TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY}
)  # fmt: skip


@dataclass(eq=False, slots=True)
class Document:
    """A parsed query and its text. `views` are its references to views, with the view's own
    document and the alias to give; `tables` its references to tables, by `id` of the node; `ctes`
    the `id`s of its references to CTEs."""

    text: str
    root: exp.Expr
    views: list[tuple[exp.Table, Document, str]] = field(default_factory=list)
    tables: dict[int, tuple[exp.Table, Table]] = field(default_factory=dict)
    ctes: set[int] = field(default_factory=set)

    @property
    def cte_names(self) -> frozenset[str]:
        """Lower-case names of the CTEs in its text."""
        return frozenset(c.alias.lower() for c in self.root.find_all(exp.CTE))

    @property
    def names_inside(self) -> frozenset[str]:
        """Lower-case names of the CTEs in its text, and in that of the views in it."""
        return self.cte_names.union(*(view.names_inside for _, view, _ in self.views))

    @property
    def bare_names(self) -> frozenset[str]:
        """Lower-case names of one part that are not known to be those of its own CTEs: what they
        mean depends on the text around."""
        tables = (t for t in self.root.find_all(exp.Table) if id(t) not in self.ctes)
        return frozenset(t.name.lower() for t in tables if len(t.parts) == 1)

    def types_by_name(self) -> dict[str, frozenset[str]]:
        """The types of all columns of a lower-case name, of the tables that are read."""
        found: dict[str, frozenset[str]] = {}
        for _, table in self.tables.values():
            for column in table.columns:
                name = column.name.lower()
                found[name] = found.get(name, frozenset()) | {column.type}
        return found

    def tables_outside(self, pieces: Collection[int]) -> tuple[Table, ...]:
        """The tables read as they are now outside of some SELECTs, each once."""
        return tuple(
            dict.fromkeys(t for node, t in self.tables.values() if not _inside(node, pieces))
        )

    def replaced(
        self, pieces: Mapping[int, str], clause: Callable[[Table], str] | None = None
    ) -> str:
        """The text with other text for some SELECTs.

        Args:
            pieces: new text by `id` of the SELECT's node; of this document or of a view's.
            clause: what to put after the name of each table that is still read.

        Raises:
            NotRenderable: there is no place for such a clause.
        """
        inlined = [
            (table, f"(\n{view.replaced(pieces)}\n) AS {alias}")
            for table, view, alias in self.views
            if view.holds(pieces)
        ]
        nodes = [n for n in self.root.find_all(exp.Select) if id(n) in pieces]
        nodes = [n for n in nodes if not _inside(n, pieces)]
        if len(nodes) == 1 and nodes[0] is self.root:
            return pieces[id(nodes[0])]
        edits = [] if clause is None else [*self._clauses(pieces, clause)]
        spans = Spans(self.text)
        for node in nodes:
            span = spans.of(node)
            if span is None and clause is not None:
                raise NotRenderable("a SELECT whose place in the text is not known")
            if span is None:
                return self._generated(pieces, inlined)
            edits.append((*span, pieces[id(node)]))
        for table, new in inlined:
            if _inside(table, pieces):
                continue
            place = _table_span(table, self.text)
            if place is None:
                return self._generated(pieces, inlined)
            edits.append((*place, new))
        return _apply(self.text, edits)

    def _clauses(
        self, pieces: Mapping[int, str], clause: Callable[[Table], str]
    ) -> Iterator[tuple[int, int, str]]:
        if self.views:
            raise NotRenderable("a view")
        ctes = self.cte_names
        for node in self.root.find_all(exp.Table):
            if _inside(node, pieces) or node.args.get("version") or node.args.get("when"):
                continue
            _, table = self.tables.get(id(node), (node, None))
            if table is None and len(node.parts) == 1 and node.name.lower() in ctes:
                continue
            ends = [int(part.meta.get("end", -1)) for part in node.parts]
            if table is None or min(ends) < 0:
                raise NotRenderable(f"a clause after {node.sql('spark')[:60]}")
            end = max(ends) + 1
            yield end, end, " " + clause(table)

    def holds(self, pieces: Mapping[int, str]) -> bool:
        """True if some SELECT of this document or of a view in it is to be replaced."""
        return any(id(n) in pieces for n in self.root.find_all(exp.Select)) or any(
            view.holds(pieces) for _, view, _ in self.views
        )

    def _generated(self, pieces: Mapping[int, str], inlined: list[tuple[exp.Table, str]]) -> str:
        by_id = {id(t): text for t, text in inlined}
        marks: dict[str, str] = {}

        def visit(node: exp.Expr) -> exp.Expr:
            copied = originals.get(id(node))
            new = None if copied is None else pieces.get(copied) or by_id.get(copied)
            if new is None:
                return node
            mark = f"__piece_{len(marks)}__"
            marks[mark] = new
            return exp.to_identifier(mark) if isinstance(node, exp.Select) else exp.to_table(mark)

        tree = self.root.copy()
        pairs = zip(tree.walk(), self.root.walk(), strict=True)
        originals = {id(new): id(old) for new, old in pairs}
        text = tree.transform(visit, copy=False).sql("spark")
        for mark, new in marks.items():
            text = text.replace(mark, new)
        return text


class Spans:
    """Finds SELECTs in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[Token] = sqlglot.tokenize(text, read="spark")
        self._owner: dict[int, int] = {}  # start of a token → index of its SELECT
        self._with: dict[int, int] = {}  # index of a SELECT → index of the WITH before it
        self._depths: list[int] = []
        self._scan()

    def _scan(self) -> None:
        selects: list[int | None] = [None]
        withs: list[int | None] = [None]
        for i, token in enumerate(self._tokens):
            kind = token.token_type
            if kind == TokenType.R_PAREN and len(selects) > 1:
                selects.pop()
                withs.pop()
            self._depths.append(len(selects))
            if kind == TokenType.L_PAREN:
                selects.append(None)
                withs.append(None)
            elif kind == TokenType.WITH and selects[-1] is None:
                withs[-1] = i
            elif kind == TokenType.SELECT:
                selects[-1] = i
                before = withs[-1]
                if before is not None:
                    self._with[i] = before
                    withs[-1] = None
            owner = next((s for s in reversed(selects) if s is not None), None)
            if owner is not None:
                self._owner[token.start] = owner

    def of(self, node: exp.Select) -> tuple[int, int] | None:
        """Start and end (exclusive) of the SELECT, its WITH clause included; None where that
        cannot be proven."""
        owners = {self._owner.get(start) for start in _own_starts(node)} - {None}
        wanted = node.copy()
        for index in owners:
            if index is None:
                continue
            first = index
            if node.args.get("with_") is not None:
                first = self._with.get(index, index)
            start = self._tokens[first].start
            for end in self._ends(index):
                if _same(self._text[start:end], wanted):
                    return start, end
        return None

    def _ends(self, index: int) -> Iterator[int]:
        """Where the SELECT may end: before its closing parenthesis, set operator or the end; or
        before ORDER BY and the like."""
        depth = self._depths[index]
        cut: int | None = None
        last = index
        for i in range(index + 1, len(self._tokens)):
            token = self._tokens[i]
            closes = self._depths[i] < depth or (
                token.token_type == TokenType.R_PAREN and self._depths[i] == depth - 1
            )
            same = self._depths[i] == depth
            if closes or token.token_type == TokenType.SEMICOLON:
                break
            if same and token.token_type in _SET_OPERATORS:
                break
            if same and token.token_type in _TAILS and cut is None:
                cut = self._tokens[last].end + 1
            last = i
        yield self._tokens[last].end + 1
        if cut is not None:
            yield cut


def _own_starts(node: exp.Select) -> Iterator[int]:
    """Where tokens of the SELECT stand that belong to no SELECT inside it and not to its WITH
    clause."""
    stack = [
        child
        for key, value in node.args.items()
        if key != "with_"
        for child in (value if isinstance(value, list) else [value])
        if isinstance(child, exp.Expr)
    ]
    while stack:
        item = stack.pop()
        if isinstance(item, (exp.Query, exp.Subquery)):
            continue
        if "start" in item.meta:
            yield item.meta["start"]
        stack.extend(item.iter_expressions())


def _same(piece: str, wanted: exp.Expr) -> bool:
    try:
        return parse_statements(piece) == [wanted]
    except SqlglotError:
        return False


def _inside(node: exp.Expr, pieces: Collection[int]) -> bool:
    parent = node.parent
    while parent is not None:
        if id(parent) in pieces:
            return True
        parent = parent.parent
    return False


def _table_span(table: exp.Table, text: str) -> tuple[int, int] | None:
    """From the first part of a table's name to the end of its alias."""
    parts = [p.meta for p in table.parts]
    alias = table.args.get("alias")
    if alias is not None:
        parts.append(alias.this.meta if isinstance(alias.this, exp.Identifier) else {})
    if not parts or any("start" not in p for p in parts):
        return None
    start = min(p["start"] for p in parts)
    end = max(p["end"] for p in parts) + 1
    return start, end


def _apply(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
