"""Scalar and aggregate expressions: the one expression language that both doors end in.

Four immutable node kinds. `Col` is a column of a relation occurrence of the block (`rel` is its
index in `Block.relations`),
`Lit` a typed constant, `Call` a deterministic operator or function under its canonical name, `Agg`
an aggregate call.
Nodes compare by structure, without nullability (a fact about a column, not part of its identity),
and carry their hash,
because the matcher looks expressions up far more often than it builds them.

Canonical operator names: `eq ne lt le gt ge nseq` (`<=>`), `and or not`, `isnull isnotnull`, `in`
(value, then the list),
`like rlike` (value, pattern; `params=(escape,)` where it is not the backslash), `startswith
endswith contains`,
`add sub mul div idiv mod neg`, `cast try_cast`, `case` (condition, value, …, [else]), `coalesce`,
`grouping_id`; every other
function has Spark's own lower-case name. An expression that Spark resolved and we cannot spell as
SQL is a `Call` whose name
starts with `spark:`: it matches itself and is never rendered.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

Scalar = int | str | bool | float | Decimal | bytes | None

OPAQUE_PREFIX: Final = "spark:"
# The function by which Spark fills the values of CHAR(n) up with blanks as it reads them.
CHAR_PADDING: Final = "readSidePadding"
_DIGEST: Final = re.compile(r" #[0-9a-f]{12}\Z")
# `Agg.params` of FIRST and LAST that skip NULLs
IGNORE_NULLS: Final = "ignore nulls"


class Expr:
    """A node of an expression; immutable, hashable, with a Spark type in catalog spelling
    (`decimal(12,2)`)."""

    __slots__ = ("_hash", "nullable", "type")

    type: str
    nullable: bool
    _hash: int

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()

    def __hash__(self) -> int:
        return self._hash

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("expressions are stored through matcher.model.codec, not pickled")


_set = object.__setattr__


class Col(Expr):
    """Column `name` of relation number `rel`. `nullable` is what Spark or the declared schema
    says."""

    __slots__ = ("name", "rel")

    rel: int
    name: str

    def __init__(self, rel: int, name: str, type: str, nullable: bool = True) -> None:
        _set(self, "rel", rel)
        _set(self, "name", name)
        _set(self, "type", type)
        _set(self, "nullable", nullable)
        _set(self, "_hash", hash((rel, name)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Col) and self.rel == other.rel and self.name == other.name

    __hash__ = Expr.__hash__

    def __repr__(self) -> str:
        return f"${self.rel}.{self.name}"


class Lit(Expr):
    """A constant. Dates are days, timestamps microseconds since the epoch (int), decimals
    `Decimal`, binaries `bytes`."""

    __slots__ = ("value",)

    value: Scalar

    def __init__(self, value: Scalar, type: str) -> None:
        _set(self, "value", value)
        _set(self, "type", type)
        _set(self, "nullable", value is None)
        _set(self, "_hash", hash((type, str(value))))

    def __eq__(self, other: object) -> bool:
        # str() keeps -0.0 apart from 0.0, 1.0 from 1.00, True from 1, and lets NaN equal itself.
        return (
            isinstance(other, Lit)
            and self.type == other.type
            and (self.value is None) == (other.value is None)
            and str(self.value) == str(other.value)
        )

    __hash__ = Expr.__hash__

    def __repr__(self) -> str:
        return f"{self.value!r}:{self.type}"


class Call(Expr):
    """A deterministic operator or function. `params` are arguments that are not expressions
    (escape character, …)."""

    __slots__ = ("_repr", "args", "op", "params")

    op: str
    args: tuple[Expr, ...]
    params: tuple[str, ...]
    _repr: str

    def __init__(
        self,
        op: str,
        args: tuple[Expr, ...],
        type: str,
        nullable: bool = True,
        params: tuple[str, ...] = (),
    ) -> None:
        _set(self, "op", op)
        _set(self, "args", args)
        _set(self, "type", type)
        _set(self, "nullable", nullable)
        _set(self, "params", params)
        _set(self, "_hash", hash((op, args, type, params)))

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Call)
            and self._hash == other._hash
            and self.op == other.op
            and self.type == other.type
            and self.params == other.params
            and self.args == other.args
        )

    __hash__ = Expr.__hash__

    def __repr__(self) -> str:
        # kept: arguments are sorted by it at every level of a deep condition
        try:
            return self._repr
        except AttributeError:
            extra = "".join(f";{p}" for p in self.params)
            kind = f":{self.type}" if self.op in ("cast", "try_cast") else ""
            told = f"{self.op}({', '.join(map(repr, self.args))}{extra}){kind}"
            _set(self, "_repr", told)
            return told


class Agg(Expr):
    """An aggregate call. `func` is Spark's name in lower case; `count` of nothing is COUNT(*)."""

    __slots__ = ("args", "distinct", "filter", "func", "params")

    func: str
    args: tuple[Expr, ...]
    distinct: bool
    filter: Expr | None
    params: tuple[str, ...]

    def __init__(
        self,
        func: str,
        args: tuple[Expr, ...],
        type: str,
        nullable: bool = True,
        distinct: bool = False,
        filter: Expr | None = None,
        params: tuple[str, ...] = (),
    ) -> None:
        _set(self, "func", func)
        _set(self, "args", args)
        _set(self, "type", type)
        _set(self, "nullable", nullable)
        _set(self, "distinct", distinct)
        _set(self, "filter", filter)
        _set(self, "params", params)
        _set(self, "_hash", hash((func, args, distinct, filter, params)))

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args if self.filter is None else (*self.args, self.filter)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Agg)
            and self._hash == other._hash
            and self.func == other.func
            and self.distinct == other.distinct
            and self.params == other.params
            and self.args == other.args
            and self.filter == other.filter
        )

    __hash__ = Expr.__hash__

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.args)) or "*"
        extra = "".join(f";{p}" for p in self.params)
        tail = f" filter {self.filter!r}" if self.filter is not None else ""
        return f"{self.func}({'distinct ' if self.distinct else ''}{inner}{extra}){tail}"


TRUE: Final = Lit(True, "boolean")
FALSE: Final = Lit(False, "boolean")


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield `expr` and all nodes below it, parents first."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def count_nodes(exprs: Iterable[Expr], most: int = sys.maxsize) -> int:
    """How many operators, columns and constants there are in all of them, each as often as it
    stands there; no further than to one more than `most`."""
    stack, count = list(exprs), 0
    while stack and count <= most:
        children = stack.pop().children
        count += 1
        if children:
            stack += children
    return count


def shown_name(name: str) -> str:
    """A column's name for people: those of groups have a digest of what they are at their end.

    >>> shown_name("SUM(qty) #43e9551ce5a2"), shown_name("a #1")
    ('SUM(qty)', 'a #1')
    """
    return _DIGEST.sub("", name)


def columns(expr: Expr) -> tuple[Col, ...]:
    """All column references in `expr`, in order, repeated ones included."""
    if isinstance(expr, Col):
        return (expr,)
    found: list[Col] = []
    _find_columns(expr, found)
    return tuple(found)


def _find_columns(expr: Expr, found: list[Col]) -> None:
    for child in expr.children:
        if isinstance(child, Col):
            found.append(child)
        elif child.children:
            _find_columns(child, found)


def is_constant(expr: Expr) -> bool:
    """True for a literal and for what is computed from literals alone, such as -9.

    Spark reads one in GROUP BY or ORDER BY as a position, even as `(- 9)`.
    """
    return all(isinstance(n, (Lit, Call)) for n in walk(expr)) and not any(
        isinstance(n, Call) and n.op in ("grouping_id", "grouping") for n in walk(expr)
    )


def aggregates(expr: Expr) -> tuple[Agg, ...]:
    """All aggregate calls in `expr`, outermost first."""
    return tuple(node for node in walk(expr) if isinstance(node, Agg))


def is_opaque(expr: Expr) -> bool:
    """True if some part of `expr` is known to Spark only and cannot be written as SQL."""
    return any(isinstance(n, Call) and n.op.startswith(OPAQUE_PREFIX) for n in walk(expr))


def rebuild(expr: Expr, children: tuple[Expr, ...]) -> Expr:
    """`expr` with other children, as many and in their order; itself when none changed."""
    if all(new is old for new, old in zip(children, expr.children, strict=True)):
        return expr
    if isinstance(expr, Call):
        return Call(expr.op, children, expr.type, expr.nullable, expr.params)
    if isinstance(expr, Agg):
        args, flt = (children, None) if expr.filter is None else (children[:-1], children[-1])
        return Agg(expr.func, args, expr.type, expr.nullable, expr.distinct, flt, expr.params)
    raise TypeError(f"{type(expr).__name__} has no children")


def transform(expr: Expr, visit: Callable[[Expr], Expr | None]) -> Expr:
    """Top-down rewrite: where `visit` returns a node it stands in for that subtree, else the
    children are visited."""
    found = visit(expr)
    if found is not None:
        return found
    if not expr.children:
        return expr
    return rebuild(expr, tuple(transform(child, visit) for child in expr.children))


def moved(expr: Expr, shift: int) -> Expr:
    """`expr` with its relation numbers moved up by `shift`."""
    if shift == 0:
        return expr
    return transform(
        expr,
        lambda e: Col(e.rel + shift, e.name, e.type, e.nullable) if isinstance(e, Col) else None,
    )


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The operands of a nested AND, flattened; a literal TRUE vanishes."""
    if isinstance(expr, Call) and expr.op == "and":
        return tuple(part for arg in expr.args for part in conjuncts(arg))
    return () if expr == TRUE else (expr,)


def disjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The operands of a nested OR, flattened."""
    if isinstance(expr, Call) and expr.op == "or":
        return tuple(part for arg in expr.args for part in disjuncts(arg))
    return (expr,)


def date_text(days: int) -> str | None:
    """ISO text of a day number, or None outside of the years 1 to 9999 that Python can name."""
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return None
