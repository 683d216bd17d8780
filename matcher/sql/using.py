"""JOIN … USING of the text door: the equalities, and the one column that is left of each two.

It is the left one, of a RIGHT JOIN the right one, and of a FULL JOIN whichever is there
(Spark's `NaturalAndUsingJoinResolution`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from matcher.model.errors import InputCode, NotSupported, SqlInputError
from matcher.model.expr import Call, Expr
from matcher.model.message import ColumnName, Word
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.normalize.outer_joins import null_supplied
from matcher.sql.expressions.coerce import compare
from matcher.sql.expressions.scope import Scope
from matcher.sql.expressions.types import TextSettings


@dataclass(slots=True)
class Using:
    """One join: its left side are the sources from `start` to `left`, its right side those
    after."""

    scope: Scope
    kind: str
    start: int
    left: int
    settings: TextSettings
    refuse: Callable[[Reason], None]
    equalities: list[Expr] = field(default_factory=list)

    def merge(self, names: list[str]) -> list[tuple[str, Expr]]:
        """Fill `equalities`, and show one column for each name. Returns the names and columns.

        Raises:
            SqlInputError: a name that one of the sides does not have.
        """
        sources = self.scope.sources
        merged: list[tuple[str, Expr]] = []
        for name in names:
            shown = self._one(name)
            if shown is None:
                continue
            merged.append((name, shown))
            hiding = {"FULL": sources[self.start :], "RIGHT": sources[self.start : self.left]}
            for source in hiding.get(self.kind, sources[self.left :]):
                source.hidden.add(name.lower())
        order = [n.lower() for n in names]
        for source in sources:
            source.put_first(order, merged)
        taken = set(order)
        rest = [(n, e) for n, e in self.scope.using if n.lower() not in taken]
        self.scope.using = merged + rest
        return merged

    def _one(self, name: str) -> Expr | None:
        sources = self.scope.sources
        lefts = Scope(self.scope.text, sources[self.start : self.left], self.scope.outer)
        rights = Scope(self.scope.text, sources[self.left :], self.scope.outer)
        column = exp.column(name)
        try:
            own, other = lefts.resolve(column), rights.resolve(column)
            equal = compare("eq", own, other, self.settings)
            shown = other if self.kind == "RIGHT" else own
            if self.kind == "FULL":
                shown = self._either(name, own, other)
        except NotSupported as error:
            self.refuse(error.reason)
            return None
        except SqlInputError as error:
            if error.code != InputCode.AMBIGUOUS_COLUMN:
                raise
            # after a comma Spark looks at the nearest table alone; the tree has no commas
            what = "USING ({name}) over several tables"
            self.refuse(not_taken(ReasonCode.UNSUPPORTED_OPERATOR, what, name=ColumnName(name)))
            return None
        self.equalities.append(equal)
        return shown

    def _either(self, name: str, own: Expr, other: Expr) -> Expr:
        if own.type != other.type:
            raise NotSupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "FULL JOIN … USING ({name}) of {type} and {other}",
                name=ColumnName(name),
                type=Word(own.type),
                other=Word(other.type),
            )
        return Call("coalesce", (null_supplied(own), null_supplied(other)), own.type)
