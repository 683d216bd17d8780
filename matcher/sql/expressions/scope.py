"""Names in scope of a SELECT: which expression a column name means there.

A column of a merged subquery, CTE or view stands for the expression that it was computed by, so
resolving a name is already the merging of blocks. Names ignore case. A name that is found in the
enclosing query alone makes the block a correlated subquery, which is refused; one found nowhere is
the writer's error, told with the nearest name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from matcher.model.errors import InputCode, NotSupported, SqlInputError
from matcher.model.expr import Call, Col, Expr
from matcher.model.message import Arg, ColumnName, Word
from matcher.model.reasons import ReasonCode
from matcher.model.types import struct_fields
from matcher.sql.expressions.types import UNKNOWN

UNKNOWN_REL = -1  # relation number of a column whose source is not part of the block


def unsupported(code: ReasonCode, template: str, /, **args: Arg) -> NotSupported:
    """The exception that becomes a miss reason of the block."""
    return NotSupported(code, template, **args)


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column that can be named, the name as declared, and what it stands for. `refused` says why
    a query that names it is not matched."""

    name: str
    expr: Expr
    refused: NotSupported | None = None

    def named(self) -> Expr:
        """What it stands for, where it is named.

        Raises:
            NotSupported: It is `refused`.
        """
        if self.refused is not None:
            raise self.refused
        return self.expr


@dataclass(slots=True)
class Source:
    """One item of FROM. `qualifier` is its alias, or the parts of its table name; `open` when its
    columns are not known.

    `hidden` holds lower-case names that a JOIN … USING took over from the left side.
    """

    qualifier: tuple[str, ...]
    columns: tuple[ScopeColumn, ...]
    open: bool = False
    hidden: set[str] = field(default_factory=set)

    def named(self, name: str) -> list[ScopeColumn]:
        """The columns of that name; more than one when a subquery repeats a name."""
        lower = name.lower()
        return [c for c in self.columns if c.name.lower() == lower]

    def put_first(self, names: list[str], merged: list[tuple[str, Expr]]) -> None:
        """Bring the columns that a USING joined by to the front, as Spark shows them in `t.*`."""
        keys = {n.lower(): e for n, e in merged}

        def is_key(column: ScopeColumn) -> bool:
            lower = column.name.lower()
            return lower in keys and (lower in self.hidden or column.expr == keys[lower])

        first = sorted(
            (c for c in self.columns if is_key(c)), key=lambda c: names.index(c.name.lower())
        )
        self.columns = (*first, *(c for c in self.columns if not is_key(c)))

    def is_called(self, parts: tuple[str, ...]) -> bool:
        """True if `parts` (table, schema.table, …) means this source."""
        own = tuple(p.lower() for p in self.qualifier)
        wanted = tuple(p.lower() for p in parts)
        return own[-len(wanted) :] == wanted


@dataclass(slots=True)
class Scope:
    """The sources of one FROM clause, the scope around it, and the text for error positions.

    `correlated`: columns of the scope around it may be named, for the query is joined to that one.
    """

    text: str
    sources: list[Source] = field(default_factory=list)
    outer: Scope | None = None
    correlated: bool = False
    using: list[tuple[str, Expr]] = field(default_factory=list)

    def resolve(self, column: exp.Column) -> Expr:
        """What a column reference stands for.

        Raises:
            SqlInputError: no such column or table, or two columns of that name.
            NotSupported: a field of a column whose type is not known, a column of an enclosing
                query, or one that is refused.
        """
        parts = parts_of(column)
        found = self._meant(parts)
        if not found and self.correlated and self.outer is not None:
            found = self.outer._meant(parts)
        if not found:
            scope = self.outer
            while scope is not None:
                if scope._meant(parts):
                    raise unsupported(
                        ReasonCode.UNSUPPORTED_OPERATOR,
                        "correlated subquery: {name} is of the query around it",
                        name=ColumnName(".".join(parts)),
                    )
                scope = scope.outer
            if any(s.open for s in self._all_sources()):
                return Col(UNKNOWN_REL, parts[-1], UNKNOWN)
            raise self._not_found(column, parts)
        first = found[0]
        if any(other != first for other in found[1:]):
            line, col = position(self.text, column)
            raise SqlInputError(
                InputCode.AMBIGUOUS_COLUMN,
                f"column {'.'.join(parts)} could be of several tables{at(line, col)}: "
                "put the table's name before it",
                line,
                col,
            )
        return first

    def has(self, *parts: str) -> bool:
        """True if some source of this FROM clause has a column, or a field of one, of that name.

        Raises:
            NotSupported: a field of a column that is not known to have it.
        """
        return bool(self._meant(parts))

    def star(self, qualifier: tuple[str, ...] = ()) -> list[ScopeColumn]:
        """The columns of `*` or `qualifier.*`, in Spark's order: USING columns first."""
        if qualifier:
            chosen = [s for s in self.sources if s.is_called(qualifier)]
            structs = [] if chosen else self._meant(qualifier)
            if structs:
                return _expanded(qualifier, structs)
            if not chosen:
                raise SqlInputError(
                    InputCode.TABLE_NOT_FOUND,
                    f"{'.'.join(qualifier)}.*: no table of that name in FROM",
                )
            self._refuse_open(chosen)
            return [c for s in chosen for c in s.columns]
        self._refuse_open(self.sources)
        merged = {name.lower() for name, _ in self.using}
        result = [ScopeColumn(name, expr) for name, expr in self.using]
        for source in self.sources:
            result += [
                c
                for c in source.columns
                if c.name.lower() not in source.hidden
                and not (c.name.lower() in merged and any(c.expr == e for _, e in self.using))
            ]
        return result

    def _refuse_open(self, sources: list[Source]) -> None:
        if any(s.open for s in sources):
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION, "* over columns that are not known"
            )

    def _meant(self, parts: tuple[str, ...]) -> list[Expr]:
        return self._candidates(parts) or self._fields(parts)

    def _candidates(self, parts: tuple[str, ...]) -> list[Expr]:
        name, qualifier = parts[-1], parts[:-1]
        found: list[Expr] = []
        for source in self.sources:
            if qualifier:
                if source.is_called(qualifier):
                    found += [c.named() for c in source.named(name)]
            elif name.lower() not in source.hidden:
                found += [c.named() for c in source.named(name)]
        return found

    def _fields(self, parts: tuple[str, ...]) -> list[Expr]:
        """What `column.field` stands for; the longest name of a column is tried first, as Spark
        does (`AttributeSeq.resolve`)."""
        for cut in range(len(parts) - 1, 0, -1):
            columns = self._candidates(parts[:cut])
            if not columns:
                continue
            found = [field_of(column, parts[cut:]) for column in columns]
            if None in found:
                raise no_field(columns[0], parts, cut)
            return [expr for expr in found if expr is not None]
        return []

    def _all_sources(self) -> Iterator[Source]:
        scope: Scope | None = self
        while scope is not None:
            yield from scope.sources
            scope = scope.outer

    def _not_found(self, column: exp.Column, parts: tuple[str, ...]) -> SqlInputError:
        line, col = position(self.text, column)
        qualifier = parts[:-1]
        sources = list(self._all_sources())
        if qualifier and not any(s.is_called(qualifier) for s in sources):
            names = [s.qualifier[-1] for s in sources if s.qualifier]
            names += [c.name for s in sources for c in s.columns if struct_fields(c.expr.type)]
            hint = did_you_mean(qualifier[-1], names)
            return SqlInputError(
                InputCode.TABLE_NOT_FOUND,
                f"{'.'.join(parts)} names table {'.'.join(qualifier)}, which is not in FROM"
                f"{at(line, col)}{hint}",
                line,
                col,
            )
        names = [
            c.name for s in sources if not qualifier or s.is_called(qualifier) for c in s.columns
        ]
        return SqlInputError(
            InputCode.COLUMN_NOT_FOUND,
            f"column {'.'.join(parts)} is in none of the tables of the query{at(line, col)}"
            f"{did_you_mean(parts[-1], names)}",
            line,
            col,
        )


def did_you_mean(name: str, known: list[str]) -> str:
    """`; did you mean x?` for the nearest known name, or nothing."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def at(line: int | None, col: int | None) -> str:
    """` (line 1, column 2)`, or nothing when the place is not known."""
    return f" (line {line}, column {col})" if line is not None else ""


def position(text: str, node: exp.Expr) -> tuple[int | None, int | None]:
    """Line and column, from 1, of the first token of `node` that the parser has kept."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    if not starts:
        return None, None
    start = min(starts)
    before = text[:start]
    return before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1


def parts_of(column: exp.Column) -> tuple[str, ...]:
    """A name as written: the catalog, schema and table before it, the fields after it."""
    return tuple(part.name for part in column.parts)


def field_of(expr: Expr, names: Sequence[str]) -> Expr | None:
    """The field of a struct, or of a struct in it, as Catalyst's `GetStructField`.

    Args:
        expr: A column.
        names: The field's name, after those of the structs that it is in; in any case.

    Returns:
        None where the column's type is not known to have one field of that name.
    """
    for name in names:
        fields = struct_fields(expr.type) or ()
        found = [(own, type_) for own, type_ in fields if own.lower() == name.lower()]
        if len(found) != 1:
            return None
        # a type says nothing of its fields' NULLs
        expr = Call("field", (expr,), found[0][1], True, (found[0][0],))
    return expr


def no_field(expr: Expr, parts: Sequence[str], cut: int) -> NotSupported:
    """Of a column that is not known to have the field that is asked for.

    Args:
        expr: The column.
        parts: The name that was written.
        cut: How many of its parts name the column.
    """
    for number in range(cut, len(parts)):
        found = field_of(expr, parts[number : number + 1])
        if found is None:
            break
        expr, cut = found, number + 1
    column, name = ".".join(parts[:cut]), parts[cut]
    fields = [own for own, _ in struct_fields(expr.type) or ()]
    shown = shown_type(expr.type)
    if not fields:
        why = "{column}.{name} is a field of {column}, which is {type}"
    elif any(own.lower() == name.lower() for own in fields):
        why = "{column} ({type}) has several fields {name}"
    else:
        why = "{column} ({type}) has no field {name}{meant}"
    return unsupported(
        ReasonCode.UNSUPPORTED_EXPRESSION,
        why,
        column=ColumnName(column),
        name=ColumnName(name),
        type=Word(shown),
        meant=Word(did_you_mean(name, fields)),
    )


def _expanded(qualifier: tuple[str, ...], structs: list[Expr]) -> list[ScopeColumn]:
    """The fields that `struct.*` stands for."""
    fields = struct_fields(structs[0].type) or ()
    found = [(name, field_of(structs[0], [name])) for name, _ in fields]
    if len(structs) > 1 or not found or any(expr is None for _, expr in found):
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{name}.* over {type}",
            name=ColumnName(".".join(qualifier)),
            type=Word(shown_type(structs[0].type)),
        )
    return [ScopeColumn(name, expr) for name, expr in found if expr is not None]


def shown_type(type: str) -> str:
    """A type for people, long ones cut.

    >>> shown_type("unknown")
    'of a type that is not known here'
    """
    if type == UNKNOWN:
        return "of a type that is not known here"
    return type if len(type) <= 60 else f"{type[:57]}…"
