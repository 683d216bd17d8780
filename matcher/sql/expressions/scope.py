"""Names in scope of a SELECT: which expression a column name means there.

A column of a merged subquery, CTE or view stands for the expression that it was computed by, so
resolving a name is already the merging of blocks. Names ignore case. A name that is found in the
enclosing query alone makes the block a correlated subquery, which is refused; one found nowhere is
the writer's error, told with the nearest name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from matcher.model.errors import NotSupported, SqlInputError
from matcher.model.expr import Col, Expr
from matcher.model.reasons import ReasonCode
from matcher.sql.expressions.types import UNKNOWN

UNKNOWN_REL = -1  # relation number of a column whose source is not part of the block


def unsupported(code: ReasonCode, detail: str) -> NotSupported:
    """The exception that becomes a miss reason of the block."""
    return NotSupported(code.value, detail)


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column that can be named, the name as declared, and what it stands for."""

    name: str
    expr: Expr


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
            NotSupported: a field of a struct, or a column of an enclosing query.
        """
        parts = tuple(p.name for p in column.parts)
        found = self._candidates(parts)
        if not found and self._is_field(parts):
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION, f"{'.'.join(parts)} is a field of a column"
            )
        if not found and self.correlated and self.outer is not None:
            found = self.outer._candidates(parts)
        if not found:
            scope = self.outer
            while scope is not None:
                if scope._candidates(parts):
                    raise unsupported(
                        ReasonCode.UNSUPPORTED_OPERATOR,
                        f"correlated subquery: {'.'.join(parts)} is of the query around it",
                    )
                scope = scope.outer
            if any(s.open for s in self._all_sources()):
                return Col(UNKNOWN_REL, parts[-1], UNKNOWN)
            raise self._not_found(column, parts)
        first = found[0]
        if any(other != first for other in found[1:]):
            line, col = position(self.text, column)
            raise SqlInputError(
                "AMBIGUOUS_COLUMN",
                f"column {'.'.join(parts)} could be of several tables{at(line, col)}: "
                "put the table's name before it",
                line,
                col,
            )
        return first

    def has(self, name: str) -> bool:
        """True if some source of this FROM clause has a column of that name."""
        return bool(self._candidates((name,)))

    def star(self, qualifier: tuple[str, ...] = ()) -> list[ScopeColumn]:
        """The columns of `*` or `qualifier.*`, in Spark's order: USING columns first."""
        if qualifier:
            chosen = [s for s in self.sources if s.is_called(qualifier)]
            if not chosen:
                raise SqlInputError(
                    "TABLE_NOT_FOUND", f"{'.'.join(qualifier)}.*: no table of that name in FROM"
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

    def _candidates(self, parts: tuple[str, ...]) -> list[Expr]:
        name, qualifier = parts[-1], parts[:-1]
        found: list[Expr] = []
        for source in self.sources:
            if qualifier:
                if source.is_called(qualifier):
                    found += [c.expr for c in source.named(name)]
            elif name.lower() not in source.hidden:
                found += [c.expr for c in source.named(name)]
        return found

    def _is_field(self, parts: tuple[str, ...]) -> bool:
        return any(
            expr.type.startswith("struct") or expr.type == UNKNOWN
            for cut in range(1, len(parts))
            for expr in self._candidates(parts[:cut])
        )

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
            hint = did_you_mean(qualifier[-1], names)
            return SqlInputError(
                "TABLE_NOT_FOUND",
                f"{'.'.join(parts)} names table {'.'.join(qualifier)}, which is not in FROM"
                f"{at(line, col)}{hint}",
                line,
                col,
            )
        names = [
            c.name for s in sources if not qualifier or s.is_called(qualifier) for c in s.columns
        ]
        return SqlInputError(
            "COLUMN_NOT_FOUND",
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
