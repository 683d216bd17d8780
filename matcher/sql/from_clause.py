"""FROM of the text door: relations, names in scope, join conditions; plain subqueries, CTEs and
views merged into the block.

What cannot be part of the block (outer joins, table functions, subqueries that aggregate, …) is
noted as a miss reason, and its columns stay nameable where they are known, so that the rest of the
query is still checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from sqlglot import exp

from matcher.model.errors import InputCode, NotSupported, SqlInputError
from matcher.model.expr import Col, Expr, conjuncts, moved
from matcher.model.ir import Block, OuterJoin, Output, Relation, Side
from matcher.model.message import Arg, ColumnName, Word
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.normalize.grouped_relations import as_relation
from matcher.normalize.outer_joins import declared, moved_join, null_supplied
from matcher.sql.expressions.expr import ExprBuilder
from matcher.sql.expressions.scope import (
    UNKNOWN_REL,
    Scope,
    ScopeColumn,
    Source,
    at,
    did_you_mean,
    position,
    unsupported,
)
from matcher.sql.expressions.types import TextSettings
from matcher.sql.schema import Schema, Table, View
from matcher.sql.tree import Built, TextBlock
from matcher.sql.using import Using

_PATH_FORMATS: Final = frozenset(
    {"delta", "parquet", "csv", "json", "orc", "text", "avro", "binaryfile"}
)
_INNER: Final = frozenset({"", "INNER", "CROSS"})
_OUTER: Final = {"LEFT": "left", "RIGHT": "right", "LEFT SEMI": "semi", "SEMI": "semi",
                 "LEFT ANTI": "anti", "ANTI": "anti", "FULL": "full"}  # fmt: skip
_TABLE_EXTRAS: Final = {
    "sample": "TABLESAMPLE", "version": "VERSION AS OF", "when": "TIMESTAMP AS OF",
    "pivots": "PIVOT",
    "changes": "table changes", "rows_from": "a table function", "laterals": "LATERAL VIEW",
}  # fmt: skip


class _Place(NamedTuple):
    """How far a FROM clause has been read."""

    sources: int
    relations: int
    predicates: int
    outer: int


class Queries(Protocol):
    """What FROM asks of the builder of whole queries."""

    schema: Schema
    settings: TextSettings
    current: str

    @property
    def text(self) -> str: ...

    def query(
        self, node: exp.Expr, ctes: Mapping[str, Built], outer: Scope | None, label: str
    ) -> Built: ...

    def view(self, view: View, reference: exp.Table) -> Built: ...

    def reads(self, reference: exp.Table, table: Table) -> None: ...

    def means_cte(self, reference: exp.Table) -> None: ...


@dataclass(slots=True)
class FromClause:
    """The relations and join conditions of one SELECT, gathered from left to right.

    `blocks` are the SELECTs of the subqueries, CTEs and views referred to. With `grouped` those
    that aggregate are relations among the others; else they are refused, and `groups` has them.
    """

    queries: Queries
    ctes: Mapping[str, Built]
    scope: Scope
    relations: list[Relation] = field(default_factory=list)
    predicates: list[Expr] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    blocks: list[TextBlock] = field(default_factory=list)
    outer: list[OuterJoin] = field(default_factory=list)
    commas: bool = False
    groups: list[tuple[int, Block]] = field(default_factory=list)
    grouped: bool = False

    @property
    def alone(self) -> tuple[int, Block] | None:
        """The one aggregating subquery that is all there is in FROM, and the relation number of
        its columns."""
        only = len(self.scope.sources) == len(self.reasons) == len(self.groups) == 1
        return self.groups[0] if only else None

    def read(self, select: exp.Select) -> None:
        """Take in FROM, the joins and LATERAL VIEWs of `select`.

        Raises:
            SqlInputError: a table that is not declared.
        """
        clause = select.args.get("from_")
        if clause is None:
            self._refuse(ReasonCode.UNSUPPORTED_RELATION, "a SELECT without FROM")
            return
        start = self._here()
        self._item(clause.this)
        for join in select.args.get("joins") or ():
            self._join(join, start)
        for _ in select.args.get("laterals") or ():
            self._open("LATERAL VIEW", ())

    def _refuse(self, code: ReasonCode, template: str, /, **args: Arg) -> None:
        self.reasons.append(not_taken(code, template, **args))

    def _open(self, what: str, qualifier: tuple[str, ...]) -> None:
        self._refuse(ReasonCode.UNSUPPORTED_RELATION, "{what} in FROM", what=Word(what))
        self.scope.sources.append(Source(qualifier, (), open=True))

    # -- items ------------------------------------------------------------------------------------

    def _item(self, node: exp.Expr) -> None:
        alias = _alias(node)
        start = self._here()
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            self._table(node)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            if alias:
                self._refuse(ReasonCode.UNSUPPORTED_RELATION, "an alias for a join in parentheses")
            self._item(node.this)
        elif isinstance(node, (exp.Subquery, exp.Query)) and not isinstance(node, exp.Values):
            inner = node.this if isinstance(node, exp.Subquery) and _is_bare(node) else node
            label = f"subquery {alias}" if alias else "subquery in FROM"
            built = self.queries.query(inner, self.ctes, self.scope.outer, label)
            self._derived(built, (alias,) if alias else (), _alias_columns(node), label)
        else:
            what = "VALUES" if isinstance(node, exp.Values) else "a table function"
            self._open(what, (alias,) if alias else ())
        for join in node.args.get("joins") or () if not isinstance(node, exp.Query) else ():
            self._join(join, start)

    def _table(self, node: exp.Table) -> None:
        parts = tuple(p.name for p in node.parts)
        alias = _alias(node)
        for key, what in _TABLE_EXTRAS.items():
            if node.args.get(key):
                self._refuse(
                    ReasonCode.UNSUPPORTED_RELATION,
                    "{what} on {name}",
                    what=Word(what),
                    name=ColumnName(".".join(parts)),
                )
                if key in ("pivots", "laterals", "changes", "rows_from"):
                    self.scope.sources.append(Source((alias or parts[-1],), (), open=True))
                    return
        qualifier = (alias,) if alias else parts
        cte = self.ctes.get(parts[0].lower()) if len(parts) == 1 else None
        if cte is not None:
            self.queries.means_cte(node)
            self._derived(cte, qualifier, _alias_columns(node), f"CTE {parts[0]}")
            return
        at_path = self.queries.schema.at_path(parts)
        if at_path is None and len(parts) == 2 and parts[0].lower() in _PATH_FORMATS:
            self._open(f"{parts[0]}.`{parts[1]}` read by path", (alias,) if alias else ())
            return
        found = at_path or self.queries.schema.find(parts, self.queries.current)
        if found is None:
            raise self._not_found(node, parts)
        full = qualifier
        if not alias:
            catalog = self.queries.schema.catalog
            full = self._full_name(found) if at_path is None else (catalog, *parts)
        names = _alias_columns(node)
        if isinstance(found, View):
            self._derived(self.queries.view(found, node), full, names, f"view {found.name}")
            return
        if not node.args.get("version") and not node.args.get("when"):
            self.queries.reads(node, found)
        number = len(self.relations)
        self.relations.append(Relation(found.place or found.key, found.name))
        columns = tuple(
            ScopeColumn(c.name, Col(number, c.name, c.type, c.nullable)) for c in found.columns
        )
        self.scope.sources.append(Source(full, _renamed(columns, names, found.name)))

    def _full_name(self, found: Table | View) -> tuple[str, ...]:
        parts = found.key.split(".")
        return (self.queries.schema.catalog, *parts) if len(parts) < 3 else tuple(parts)

    def _derived(
        self, built: Built, qualifier: tuple[str, ...], names: tuple[str, ...], label: str
    ) -> None:
        self.blocks += built.blocks
        if built.plain is not None and built.outputs is not None:
            shift = len(self.relations)
            self.relations += built.plain.relations
            self.predicates += [moved(p, shift) for p in built.plain.predicates]
            self.outer += [moved_join(j, shift) for j in built.plain.outer]
            columns = tuple(ScopeColumn(o.name, moved(o.expr, shift)) for o in built.outputs)
            columns = _renamed(columns, names, label)
            self.scope.sources.append(Source(qualifier, columns))
            return
        if self.grouped and built.written is not None and built.outputs is not None:
            written = built.written
            if self._attempt(lambda: self._groups(written, built, qualifier, names, label)):
                return
        elif built.reasons and built.why == "":
            self.reasons += built.reasons
        else:
            self._refuse(
                ReasonCode.UNSUPPORTED_OPERATOR,
                "{label} {why}",
                label=Word(label),
                why=Word(built.why or "is not plain"),
            )
        if built.outputs is None:
            self.scope.sources.append(Source(qualifier, (), open=True))
            return
        if built.groups is not None:
            self.groups.append((UNKNOWN_REL - len(self.scope.sources), built.groups))
        unknown = tuple(
            ScopeColumn(o.name, _elsewhere(o, len(self.scope.sources))) for o in built.outputs
        )
        self.scope.sources.append(Source(qualifier, _renamed(unknown, names, label)))

    def _groups(
        self,
        written: Block,
        built: Built,
        qualifier: tuple[str, ...],
        names: tuple[str, ...],
        label: str,
    ) -> None:
        """Takes in an aggregating subquery as a relation."""
        found = as_relation(written, len(self.relations))
        shown = zip(built.outputs or (), written.outputs, strict=True)
        columns = tuple(ScopeColumn(o.name, found.over(w.expr)) for o, w in shown)
        self.scope.sources.append(Source(qualifier, _renamed(columns, names, label)))
        self.relations.append(found.relation)
        self.predicates += found.predicates

    def _not_found(self, node: exp.Table, parts: tuple[str, ...]) -> SqlInputError:
        line, col = position(self.queries.text, node)
        near = self.queries.schema.similar(parts[-1])
        hint = f"; did you mean {near}?" if near else did_you_mean(parts[-1], list(self.ctes))
        return SqlInputError(
            InputCode.TABLE_NOT_FOUND,
            f"table {'.'.join(parts)} is not declared in the schema{at(line, col)}{hint}",
            line,
            col,
        )

    # -- joins ------------------------------------------------------------------------------------

    def _join(self, join: exp.Join, start: _Place) -> None:
        """Joins an item to what was read since `start`: a join in parentheses sees no more."""
        words = [str(join.args.get(k) or "").upper() for k in ("method", "side", "kind")]
        kind = " ".join(w for w in words if w and w != "OUTER")
        if kind not in _INNER and kind not in _OUTER:
            self._refuse(ReasonCode.UNSUPPORTED_OPERATOR, "{kind} JOIN", kind=Word(kind))
        before = self._here()
        self._item(join.this)
        between = self._here()
        merged: list[tuple[str, Expr]] = []
        using = join.args.get("using")
        if using:
            merged = self._using([u.name for u in using], kind, start.sources, before.sources)
        condition = join.args.get("on")
        if condition is not None:
            self._attempt(lambda: self._on(condition))
        if kind == "FULL":
            self._full(start, before, between)
            self._show_either(merged)
        elif kind in _OUTER:
            self._hang(_OUTER[kind], start, before, between)
        bare = condition is None and not using and kind in ("", "CROSS")
        self.commas = self.commas or bare

    def _here(self) -> _Place:
        return _Place(
            len(self.scope.sources), len(self.relations), len(self.predicates), len(self.outer)
        )

    def _hang(self, kind: str, start: _Place, before: _Place, between: _Place) -> None:
        """Join what was read since `before` to what stood there since `start`, or the other way
        round; the condition came after `between`."""
        sources, predicates = self.scope.sources, self.predicates
        condition = predicates[between.predicates :]
        if kind == "right":
            if self.commas:  # JOIN binds closer than a comma, and the tree does not tell them apart
                self._refuse(ReasonCode.UNSUPPORTED_OPERATOR, "RIGHT JOIN after a comma")
            nested = before.outer > start.outer
            on = predicates[start.predicates : before.predicates] + condition
            kept = predicates[: start.predicates]
            kept += predicates[before.predicates : between.predicates]
            rels = range(start.relations, before.relations)
            given, first = sources[start.sources : before.sources], start.sources
        else:
            nested = between.outer > before.outer
            on = predicates[before.predicates :]
            kept = predicates[: before.predicates]
            rels, given = range(before.relations, between.relations), sources[before.sources :]
            first = before.sources
        if nested:
            self._refuse(
                ReasonCode.UNSUPPORTED_OPERATOR, "an outer join of tables that are outer joined"
            )
            return
        self.predicates = kept
        hung_kind = "left" if kind == "right" else kind
        own = declared((c.expr for source in given for c in source.columns), rels)
        self.outer.append(OuterJoin(hung_kind, tuple(rels), tuple(on), own))
        if hung_kind != "left":
            del sources[before.sources :]
            return
        for number, source in enumerate(given, start=first):
            self._supply_nulls(number, source)

    def _full(self, start: _Place, before: _Place, between: _Place) -> None:
        """FULL JOIN of what was read since `start` with what was read since `before`."""
        if self.commas:
            self._refuse(ReasonCode.UNSUPPORTED_OPERATOR, "FULL JOIN after a comma")
        if between.outer > start.outer:
            self._refuse(
                ReasonCode.UNSUPPORTED_OPERATOR, "a FULL JOIN of tables that are outer joined"
            )
            return
        cuts = ((start, before), (before, between))
        sides = tuple(
            Side(
                tuple(range(low.relations, high.relations)),
                tuple(self.predicates[low.predicates : high.predicates]),
            )
            for low, high in cuts
        )
        on = tuple(self.predicates[between.predicates :])
        del self.predicates[start.predicates :]
        outer_tables = tuple(rel for side in sides for rel in side.rels)
        given = self.scope.sources[start.sources :]
        own = declared((c.expr for source in given for c in source.columns), outer_tables)
        self.outer.append(OuterJoin("full", outer_tables, on, own, sides))
        for number, source in enumerate(given, start=start.sources):
            self._supply_nulls(number, source)

    def _supply_nulls(self, number: int, source: Source) -> None:
        columns = tuple(map(_null_supplied, source.columns))
        self.scope.sources[number] = Source(source.qualifier, columns, source.open, source.hidden)

    def _on(self, condition: exp.Expr) -> None:
        if condition.find(exp.Query) is not None:
            raise unsupported(ReasonCode.UNSUPPORTED_OPERATOR, "a subquery in ON")
        builder = ExprBuilder(self.scope, self.queries.settings)
        self.predicates += conjuncts(builder.predicate(condition))

    def _using(self, names: list[str], kind: str, start: int, left: int) -> list[tuple[str, Expr]]:
        using = Using(self.scope, kind, start, left, self.queries.settings, self.reasons.append)
        merged = using.merge(names)
        self.predicates += using.equalities
        return merged

    def _show_either(self, merged: list[tuple[str, Expr]]) -> None:
        """The columns of a FULL JOIN's USING, which no table has."""
        columns = tuple(ScopeColumn(name, expr) for name, expr in merged)
        self.scope.sources.append(Source((), columns))

    def _attempt(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except NotSupported as error:
            self.reasons.append(error.reason)
            return False
        return True


def _null_supplied(column: ScopeColumn) -> ScopeColumn:
    """A column of the right side of an outer join, as it is above the join; one that is no such
    column is refused where it is named, for Spark computes no others."""
    try:
        return ScopeColumn(column.name, null_supplied(column.expr), column.refused)
    except NotSupported as error:
        return ScopeColumn(column.name, column.expr, column.refused or error)


def _elsewhere(output: Output, source: int) -> Col:
    """A column of a subquery that is no part of the block: it can be named and typed, not
    matched."""
    return Col(UNKNOWN_REL - source, output.name, output.expr.type, output.expr.nullable)


def _alias(node: exp.Expr) -> str:
    alias = node.args.get("alias")
    return alias.name if alias is not None else ""


def _alias_columns(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return tuple(c.name for c in alias.args.get("columns") or ()) if alias is not None else ()


def _is_bare(node: exp.Subquery) -> bool:
    return not any(
        v for k, v in node.args.items() if k not in ("this", "alias", "joins", "laterals", "pivots")
    )


def _renamed(
    columns: tuple[ScopeColumn, ...], names: tuple[str, ...], label: str
) -> tuple[ScopeColumn, ...]:
    if not names:
        return columns
    if len(names) != len(columns):
        raise SqlInputError(
            InputCode.COLUMN_COUNT_DIFFERS,
            f"{label} has {len(columns)} columns, and {len(names)} names are given for them",
        )
    return tuple(ScopeColumn(n, c.expr) for n, c in zip(names, columns, strict=True))
