"""Spark SQL text → blocks: the door for offline explain and for sessions without a JVM.

A query becomes a tree of blocks, outermost first: each SELECT, with the plain subqueries, CTEs and
views in its FROM merged into it; what does not merge is a block of its own below. A construct that
the matcher does not take gives the block a miss reason; a name that does not exist is the writer's
error. Names, types and casts are worked out as Spark does under the stated settings; what is not
known here is refused, never guessed (a made-up column name, a function of the user's own).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import or_

from sqlglot import exp

from matcher.model.errors import InputCode, SqlInputError
from matcher.model.expr import Col
from matcher.model.ir import Block, Output
from matcher.model.message import Number, Word
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.model.row_order import Shown, makes_floats, shown_by_text
from matcher.render.select import quote
from matcher.sql.comments import steps_in
from matcher.sql.expressions.scope import UNKNOWN_REL, Scope
from matcher.sql.expressions.types import UNKNOWN, TextSettings
from matcher.sql.from_clause import FromClause
from matcher.sql.one_query import parse_one_query
from matcher.sql.other_readings import read_otherwise, why_not_inlined
from matcher.sql.schema import Schema, Table, View
from matcher.sql.select import SelectReader, is_plain, why_not_plain
from matcher.sql.split import Split, split_select
from matcher.sql.text import Document
from matcher.sql.tree import Built, TextBlock

__all__ = ["TextBlock", "TextQuery", "TextSettings", "parse_query"]

HINT = "NO_RELATIONAL_CACHE"
USE_HINT = "RELATIONAL_CACHE"
STEPS_HINT = "RELATIONAL_CACHE_STEPS"
_WHOLE = "query"
_MOST_AGAIN = 2


_Read = tuple[Scope, FromClause, SelectReader, Block]


@dataclass(eq=False, slots=True)
class TextQuery:
    """A parsed query: its blocks outermost first, and its text."""

    document: Document
    roots: tuple[TextBlock, ...]
    reasons: tuple[Reason, ...] = ()

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def cte_names(self) -> frozenset[str]:
        """Lower-case names of all CTEs, those of its views included: a table of the same name would
        be hidden by them."""
        return self.document.names_inside

    @property
    def hinted(self) -> frozenset[str]:
        """Lower-case names of the caches that a RELATIONAL_CACHE hint asks for."""
        ours = self._hints(USE_HINT)
        parts = [[p.name for p in a.parts] for c in ours for a in c.find_all(exp.Column)]
        return frozenset(".".join(p).lower() for p in parts)

    @property
    def hinted_steps(self) -> int | None:
        """What a RELATIONAL_CACHE_STEPS hint says that deciding may take."""
        said = [steps_in(a.sql()) for call in self._hints(STEPS_HINT) for a in call.expressions]
        return said[-1] if said else None

    def _hints(self, name: str) -> list[exp.Anonymous]:
        calls = [e for h in self.document.root.find_all(exp.Hint) for e in h.expressions]
        return [c for c in calls if isinstance(c, exp.Anonymous) and c.name.upper() == name]

    def walk(self) -> Iterator[TextBlock]:
        """All blocks, outermost first, each once."""
        seen: set[int] = set()
        stack = list(reversed(self.roots))
        while stack:
            block = stack.pop()
            if id(block) not in seen:
                seen.add(id(block))
                yield block
                stack.extend(reversed(block.children))

    def visit(self, replace: Callable[[TextBlock], bool]) -> None:
        """Show blocks to `replace`, outermost first; below a block for which it returns True
        nothing is shown."""
        seen: set[int] = set()
        stack: list[tuple[TextBlock, tuple[TextBlock, ...]]]
        stack = [(root, ()) for root in reversed(self.roots)]
        types_by_name = cache(self.document.types_by_name)
        while stack:
            block, above = stack.pop()
            if id(block) in seen:
                continue
            seen.add(id(block))
            block.above = _shown(block, above, types_by_name)
            if not replace(block):
                around = (*above, block)
                stack.extend((child, around) for child in reversed(block.children))

    def replace(
        self, texts: Mapping[TextBlock, str], clause: Callable[[Table], str] | None = None
    ) -> str:
        """The query's text with other text for some blocks, the rest as written.

        Args:
            texts: the new text of blocks.
            clause: what to put after the name of each table that is still read.

        Raises:
            NotRenderable: there is no place for such a clause.
        """
        pieces = {id(b.node): b.written(text) for b, text in texts.items()}
        return self.document.replaced(pieces, clause)


def _shown(
    block: TextBlock,
    above: tuple[TextBlock, ...],
    types_by_name: Callable[[], Mapping[str, frozenset[str]]],
) -> Shown:
    if block.block is None:
        return Shown.NOTHING
    found, floats, others = [], False, None
    if block.split is not None:
        on_top = block.split.on_top()
        found.append(shown_by_text(on_top, block.block, direct=True))
        floats = makes_floats(on_top.expressions)
    for outer in reversed(above):
        if others is None and outer.node.args.get("joins"):
            others = types_by_name()
        found.append(shown_by_text(outer.node, block.block, floats=floats, others=others))
        floats = floats or makes_floats(outer.node.expressions)
    return reduce(or_, found, Shown.NOTHING)


def parse_query(
    text: str,
    schema: Schema,
    settings: TextSettings | None = None,
    *,
    names_matter: bool = True,
) -> TextQuery:
    """Read one query.

    Args:
        text: one SELECT, or set operations over several, in Spark's SQL.
        schema: the declared tables and views.
        settings: the session settings that the text is read under.
        names_matter: False for a definition, which stores a column whatever Spark calls it: an
            output whose name is not known has an empty one then.

    Raises:
        SqlInputError: the text does not parse, is not a query, or names a table or column that
        does not exist.
    """
    root = parse_one_query(text)
    document = Document(text, root)
    builder = _Builder(
        schema, settings or TextSettings(), document, schema.current, names_matter=names_matter
    )
    built = builder.query(root, {}, None, _WHOLE)
    reasons = [*_hint_reasons(root), *read_otherwise(text, builder.settings)]
    if not built.blocks and not reasons:
        reasons.append(
            not_taken(ReasonCode.UNSUPPORTED_OPERATOR, "the query {why}", why=Word(built.why))
        )
    return TextQuery(document, built.blocks, tuple(reasons))


def _hint_reasons(root: exp.Expr) -> Iterator[Reason]:
    hints = (h for h in root.find_all(exp.Hint))
    if any(e.name.upper() == HINT for h in hints for e in h.expressions):
        yield Reason(
            ReasonCode.HINT,
            "the query has the hint {hint}",
            "remove the hint",
            hint=Word(HINT),
        )


@dataclass(slots=True)
class _Builder:
    """Builds the queries of one document."""

    schema: Schema
    settings: TextSettings
    document: Document
    current: str
    views: tuple[str, ...] = ()
    names_matter: bool = True
    # CTEs of the texts that this one may be put into
    around: frozenset[str] = frozenset()
    # how many SELECTs around are read once more: each of them reads again what stands in its IN
    _again: int = 0
    _inlined: dict[int, Built] = field(default_factory=dict)
    _read: dict[tuple[int, int, int], tuple[Built, object]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.document.text

    def query(
        self, node: exp.Expr, ctes: Mapping[str, Built], outer: Scope | None, label: str
    ) -> Built:
        """A SELECT, a set operation or one in parentheses; read once, though a query in FROM of one
        in EXISTS is asked for twice: for the join, and for what else the latter is."""
        key = (id(node), id(ctes), id(outer))
        found = self._read.get(key)
        if found is None:
            # beside what the key names, lest another object be taken for it
            found = self._read[key] = self._query(node, ctes, outer, label), (node, ctes, outer)
        return found[0]

    def _query(
        self, node: exp.Expr, ctes: Mapping[str, Built], outer: Scope | None, label: str
    ) -> Built:
        known = self._with(node, ctes, outer)
        if isinstance(node, exp.Select):
            return self._select(node, known, outer, label)
        if isinstance(node, exp.Subquery):
            inner = self.query(node.this, known, outer, label)
            if any(v for k, v in node.args.items() if k not in ("this", "with_")):
                why = "has clauses outside of its parentheses"
                return Built(inner.outputs, None, why, blocks=inner.blocks)
            return inner
        if isinstance(node, exp.SetOperation):
            word = node.key.upper()
            left = self.query(node.this, known, outer, f"{label}, left of {word}")
            right = self.query(node.expression, known, outer, f"{label}, right of {word}")
            outputs = left.outputs and tuple(
                Output(o.name, Col(UNKNOWN_REL, o.name, UNKNOWN)) for o in left.outputs
            )
            return Built(outputs, None, f"is a {word}", blocks=left.blocks + right.blocks)
        return Built(None, None, f"is {node.key.upper()}")

    def _with(
        self, node: exp.Expr, ctes: Mapping[str, Built], outer: Scope | None
    ) -> Mapping[str, Built]:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        known = dict(ctes)
        for cte in clause.expressions:
            name = cte.alias
            if clause.args.get("recursive"):
                known[name.lower()] = Built(None, None, "is recursive")
                continue
            built = self.query(cte.this, known, outer, f"CTE {name}")
            names = [c.name for c in cte.args["alias"].args.get("columns") or ()]
            known[name.lower()] = _with_names(built, names, f"CTE {name}")
        return known

    def reads(self, reference: exp.Table, table: Table) -> None:
        """Note which table a name in the text stands for."""
        self.document.tables[id(reference)] = (reference, table)

    def means_cte(self, reference: exp.Table) -> None:
        """Note that a name in the text stands for one of its CTEs."""
        self.document.ctes.add(id(reference))

    def view(self, view: View, reference: exp.Table) -> Built:
        """A view's query, in its own document and current schema; a reference that is read again,
        as those in EXISTS are, is the same."""
        known = self._inlined.get(id(reference))
        if known is None:
            known = self._inlined[id(reference)] = self._inline(view, reference)
        return known

    def _inline(self, view: View, reference: exp.Table) -> Built:
        if view.key in self.views:
            raise SqlInputError(InputCode.VIEW_CYCLE, f"view {view.name} reads itself")
        why = why_not_inlined(view.text, self.settings)
        if why is not None:
            return Built(None, None, why)
        document = Document(view.text, parse_one_query(view.text))
        inner = _Builder(
            *(self.schema, self.settings, document, view.current, (*self.views, view.key)),
            around=self.around | self.document.cte_names,
        )
        label = f"view {view.name}"
        built = _with_names(
            inner.query(document.root, {}, None, label), list(view.column_names), label
        )
        if view.column_names or self._would_read_otherwise(view, document, reference):
            # its inlined text would mean something else here, so its blocks are not replaced alone
            built.blocks = ()
        else:
            alias = reference.alias or reference.name
            self.document.views.append((reference, document, quote(alias)))
        return built

    def _would_read_otherwise(self, view: View, document: Document, reference: exp.Table) -> bool:
        """True if names in the view's text, or of the view, may change their meaning inlined.

        A CTE around it captures names (one of its own does so there as here), another current
        schema resolves them elsewhere, and a view called by its schema leaves columns qualified by
        it behind.
        """
        captured = document.bare_names & (self.around | self.document.cte_names)
        qualified = bool(reference.args.get("db")) and not reference.alias
        return bool(captured) or qualified or view.current != self.current

    def _select(
        self, node: exp.Select, ctes: Mapping[str, Built], outer: Scope | None, label: str
    ) -> Built:
        scope, clause = self._from(node, ctes, outer, grouped=False)
        read = None if clause.alone else self._over_groups(node, ctes, outer, clause)
        whole = None
        if read is None:
            reader = SelectReader(node, scope, self.settings)
            read = scope, clause, reader, reader.read(clause)
            if clause.alone is not None:
                if not reader.reasons:
                    whole = reader.over_groups(read[3], clause.alone)
                if whole is None:
                    read = self._over_groups(node, ctes, outer, clause) or read
        scope, clause, reader, block = read
        children = list(clause.blocks)
        for inner in _subqueries(node):
            blocks = self.query(inner, ctes, scope, "subquery in an expression").blocks
            # of one that is joined there is nothing more to say, but that it may be served alone
            children += [b for b in blocks if b.block is not None or id(inner) not in reader.joined]
        own = reader.reasons
        if own:
            split = split_select(node)
            below = self._below(split, scope, clause) if split is not None else None
            if split is not None and below is not None:
                return self._on_top(node, split, below, label, children)
        if clause.reasons:  # what follows from a column that FROM could not give says nothing new
            own = [r for r in own if UNKNOWN not in r.detail]
        reasons = [] if whole is not None else list(dict.fromkeys([*clause.reasons, *own]))
        block = whole or block
        built = Built(block.outputs, None, "", tuple(reasons))
        if not reasons and is_plain(block):
            built.plain = block
        elif not reasons or block.group_keys is not None:
            built.why = why_not_plain(block)
            built.groups = None if reasons else block
            built.written = None if reasons else reader.written
        if self.names_matter or label != _WHOLE:
            reasons += _nameless([item.name for item in reader.items], label)
        found = None if reasons else block
        merged = whole is not None
        text = TextBlock(label, found, tuple(reasons), tuple(children), node, merged=merged)
        built.blocks = (text,)
        return built

    def _from(
        self, node: exp.Select, ctes: Mapping[str, Built], outer: Scope | None, *, grouped: bool
    ) -> tuple[Scope, FromClause]:
        """FROM of a SELECT; with `grouped` what aggregates in it are relations of the SELECT."""
        scope = Scope(self.text, outer=outer)
        clause = FromClause(self, ctes, scope, grouped=grouped)
        clause.read(node)
        return scope, clause

    def _over_groups(
        self, node: exp.Select, ctes: Mapping[str, Built], outer: Scope | None, first: FromClause
    ) -> _Read | None:
        """A SELECT as a block over the groups in its FROM, None where it is none.

        Args:
            first: FROM without them.
        """
        if not first.groups or self._again >= _MOST_AGAIN:
            return None
        self._again += 1
        scope, clause = self._from(node, ctes, outer, grouped=True)
        reader = SelectReader(node, scope, self.settings)
        block = None if clause.reasons else reader.read(clause)
        self._again -= 1
        if block is None or reader.reasons or _shows_order(first, block):
            return None
        return scope, clause, reader, block

    def _below(self, split: Split, scope: Scope, clause: FromClause) -> Block | None:
        """The block below a SELECT's window functions, None if there is none."""
        if clause.reasons:
            return None
        reader = SelectReader(split.inner, scope, self.settings)
        try:
            block = reader.read(clause)
        except SqlInputError:  # a name of the SELECT list used below: told of the whole SELECT
            return None
        return None if reader.reasons else block

    def _on_top(
        self,
        node: exp.Select,
        split: Split,
        block: Block,
        label: str,
        children: list[TextBlock],
    ) -> Built:
        reasons = _nameless(split.names, label)
        found = None if reasons else block
        outputs = tuple(Output(n or "", Col(UNKNOWN_REL, n or "", UNKNOWN)) for n in split.names)
        text = TextBlock(label, found, reasons, tuple(children), node, split)
        return Built(outputs, None, "has window functions or DISTINCT over groups", blocks=(text,))


def _shows_order(clause: FromClause, block: Block) -> bool:
    """True if the rows of the one subquery in FROM are shown in the order that it says."""
    return clause.alone is not None and bool(clause.alone[1].order_by) and not block.is_aggregate


def _nameless(names: Iterable[str | None], label: str) -> tuple[Reason, ...]:
    """Why a SELECT with these output names is refused: the first that Spark makes up."""
    number = next((i for i, name in enumerate(names) if name is None), None)
    if number is None:
        return ()
    return (
        Reason(
            ReasonCode.OUTPUT_NAME_UNKNOWN,
            "column {number} of the {label} has no name: Spark makes one up",
            "give the column a name with AS",
            number=Number(number + 1),
            label=Word(label),
        ),
    )


def _with_names(built: Built, names: list[str], label: str) -> Built:
    if not names or built.outputs is None:
        return built
    if len(names) != len(built.outputs):
        raise SqlInputError(
            InputCode.COLUMN_COUNT_DIFFERS,
            f"{label} has {len(built.outputs)} columns, and {len(names)} names are given for them",
        )
    outputs = tuple(Output(n, o.expr) for n, o in zip(names, built.outputs, strict=True))
    groups = None if built.groups is None else replace(built.groups, outputs=outputs)
    why, reasons, blocks = built.why, built.reasons, built.blocks
    return Built(outputs, built.plain, why, reasons, blocks, groups, built.written)


def _subqueries(node: exp.Select) -> Iterator[exp.Expr]:
    """The outermost queries in the clauses other than FROM and WITH."""
    for key, value in node.args.items():
        if key in ("with_", "from_", "joins", "laterals"):
            continue
        stack = [
            v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)
        ]
        while stack:
            item = stack.pop(0)
            if isinstance(item, (exp.Select, exp.SetOperation)):
                yield item
            else:
                stack.extend(item.iter_expressions())
