"""A SELECT with window functions, or DISTINCT above GROUP BY, as two: a block below, and what stays
on top.

`SELECT k, RANK() OVER (ORDER BY SUM(x)) AS r FROM t GROUP BY k` becomes `SELECT c0 AS k, RANK()
OVER (ORDER BY c1) AS r FROM (SELECT k AS c0, SUM(x) AS c1 FROM t GROUP BY k)`, as Spark itself
plans it: the window sees the groups, and a cache may give the groups. ORDER BY and LIMIT stay on
top: below, a window would lack rows (`matcher.model.limits`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from matcher.model.numbers import whole_number
from matcher.sql.expressions.aggregates import is_aggregate
from matcher.sql.expressions.functions import is_scalar

_TOP: Final = ("distinct", "order", "limit", "offset")
_BELOW: Final = ("expressions", "from_", "joins", "where", "group", "having", "with_", "hint")
_WRAPPERS: Final = (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)
_SOURCE: Final = "__q"


@dataclass(slots=True)
class Split:
    """The block's SELECT (FROM and WITH are the original's), the SELECT on top, its output
    names."""

    inner: exp.Select
    outer: exp.Select
    names: tuple[str | None, ...]

    def around(self, text: str) -> str:
        """The SELECT on top, over `text` in place of the block."""
        return f"{self.outer.sql('spark')} FROM (\n{text}\n) AS {_SOURCE}" + self._tail()

    def on_top(self) -> exp.Select:
        """What stays on top, without its FROM."""
        found = self.outer.copy()
        if "order" in self._clauses:
            found.set("order", self._clauses["order"].copy())
        return found

    def _tail(self) -> str:
        clauses = [self._clauses[key].sql("spark") for key in _TOP[1:] if key in self._clauses]
        return "".join(f"\n{clause.strip()}" for clause in clauses)

    _clauses: dict[str, exp.Expr] = field(default_factory=dict)


def split_select(node: exp.Select) -> Split | None:
    """The two SELECTs, or None where one is enough or the parts cannot be told apart."""
    pieces = _Pieces.of(node) if _is_two(node) and _can_be_told_apart(node) else None
    if pieces is None or (pieces.grouped and not all(map(_is_known, _calls(node)))):
        return None
    items: list[exp.Expr] = []
    names: list[str | None] = []
    for item in node.expressions:
        name = item.alias if isinstance(item, exp.Alias) else None
        body = item.this if isinstance(item, exp.Alias) else item
        if name is None and isinstance(body, exp.Column):
            name = body.name
        names.append(name)
        items.append(exp.alias_(pieces.replaced(body), name or "x", quoted=True))
    clauses = {key: node.args[key].copy() for key in _TOP if node.args.get(key) is not None}
    shown = {name.lower() for name in names if name is not None}
    if "order" in clauses:
        clauses["order"] = pieces.replaced(node.args["order"], keep=shown)
    outer = exp.Select(expressions=items, distinct=clauses.get("distinct"))
    return Split(pieces.select(node), outer, tuple(names), clauses)


def _is_two(node: exp.Select) -> bool:
    """True if something is done with the groups, or the rows, that one block does not do."""
    if any(item.find(exp.Window) is not None for item in node.expressions):
        return True
    return node.args.get("distinct") is not None and node.args.get("group") is not None


def _can_be_told_apart(node: exp.Select) -> bool:
    """False where it is not plain which part belongs to which SELECT."""
    if any(value for key, value in node.args.items() if key not in (*_TOP, *_BELOW)):
        return False  # a clause that is not known here
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        return False  # DISTINCT ON looks at rows that the SELECT on top no longer has
    # a query in an output may refer to tables, and of * the columns are not known
    return not any(item.find(exp.Query) or _is_star(item) for item in node.expressions)


def _is_star(item: exp.Expr) -> bool:
    inner = item.this if isinstance(item, exp.Column) else item
    return isinstance(inner, exp.Star)


@dataclass(slots=True)
class _Pieces:
    """What the block below puts out, each once, for what is on top to refer to."""

    keys: list[exp.Expr]
    grouped: bool
    found: list[exp.Expr] = field(default_factory=list)

    @staticmethod
    def of(node: exp.Select) -> _Pieces | None:
        """None for GROUP BY forms of more than one set, whose keys may be NULL on top."""
        group = node.args.get("group")
        if group is None:
            return _Pieces([], any(_own_aggregate(item) for item in node.expressions))
        if any(v for k, v in group.args.items() if k != "expressions" and v):
            return None
        keys: list[exp.Expr] = []
        for item in group.expressions:
            key = _at_position(item, node)
            if key is None or isinstance(key, (exp.GroupingSets, exp.Cube, exp.Rollup)):
                return None
            keys.append(key)
        return _Pieces(keys, True)

    def replaced(self, expr: exp.Expr, keep: set[str] | None = None) -> exp.Expr:
        """A copy of `expr` with the pieces' columns in place of the pieces; names in `keep` are
        outputs of the SELECT on top."""
        if keep and isinstance(expr, exp.Column) and len(expr.parts) == 1:
            if expr.name.lower() in keep:
                return expr.copy()
        if self._is_piece(expr):
            if expr not in self.found:
                self.found.append(expr)
            return exp.column(f"c{self.found.index(expr)}", table=_SOURCE)
        new = expr.copy()
        for key, value in expr.args.items():
            if isinstance(value, exp.Expr):
                new.set(key, self._child(value, expr, keep))
            elif isinstance(value, list):
                new.set(key, [self._child(v, expr, keep) for v in value])
        return new

    def _child(self, value: object, parent: exp.Expr, keep: set[str] | None) -> object:
        if not isinstance(value, exp.Expr):
            return value
        if isinstance(parent, exp.Window) and value is parent.this:
            return self._function(value, keep)
        return self.replaced(value, keep)

    def _function(self, call: exp.Expr, keep: set[str] | None) -> exp.Expr:
        """The window's own function: its arguments are pieces, it is not."""
        new = call.copy()
        for key, value in call.args.items():
            if isinstance(call, _WRAPPERS) and key == "this":
                new.set(key, self._function(value, keep))
            elif isinstance(value, exp.Expr):
                new.set(key, self.replaced(value, keep))
            elif isinstance(value, list):
                new.set(key, [self._child(v, call, keep) for v in value])
        return new

    def _is_piece(self, expr: exp.Expr) -> bool:
        if isinstance(expr, exp.Column) or expr in self.keys:
            return True
        return self.grouped and is_aggregate(expr.this if isinstance(expr, exp.Filter) else expr)

    def select(self, node: exp.Select) -> exp.Select:
        """The SELECT of the pieces, with the clauses that stay below."""
        found = self.found or self.keys[:1]
        items = [exp.alias_(piece.copy(), f"c{i}", quoted=True) for i, piece in enumerate(found)]
        inner = exp.Select(expressions=items)
        for key, value in node.args.items():
            if key in ("where", "having") and value is not None:
                inner.args[key] = value  # the very nodes: tables in their queries are noted once
        if self.keys:
            inner.set("group", exp.Group(expressions=[key.copy() for key in self.keys]))
        return inner


def _own_aggregate(item: exp.Expr) -> bool:
    """True if an aggregate is computed by the SELECT and not by one of its windows."""
    for found in filter(is_aggregate, item.walk()):
        parent = found.parent
        while isinstance(parent, _WRAPPERS):
            parent = parent.parent
        if not (isinstance(parent, exp.Window) and found in parent.this.walk()):
            return True
    return False


def _calls(node: exp.Select) -> Iterator[exp.Anonymous]:
    """Calls that the parser does not know, in what may stay on top of the groups."""
    for part in (*node.expressions, node.args.get("order")):
        yield from part.find_all(exp.Anonymous) if part is not None else ()


def _is_known(call: exp.Anonymous) -> bool:
    """False for what may be an aggregate: above the groups it would make one of them all."""
    return is_scalar(call) or is_aggregate(call)


def _at_position(item: exp.Expr, node: exp.Select) -> exp.Expr | None:
    """What a GROUP BY item stands for: itself, or the output at that position."""
    if not isinstance(item, exp.Literal) or item.is_string:
        return item
    position = whole_number(item.name) or 0
    if not 1 <= position <= len(node.expressions):
        return None
    found: exp.Expr = node.expressions[position - 1]
    inner: exp.Expr = found.this if isinstance(found, exp.Alias) else found
    return inner
