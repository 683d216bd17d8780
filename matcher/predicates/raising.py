"""Which expressions may raise an error when they are worked out, under ANSI or without.

Whatever is not known to have a value for all arguments may raise. Two things follow: a conjunct
that may raise is not taken for granted only because it is true wherever it has a value, and what
keeps another expression from raising (`k <> 0` before `10 / k`) is not left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from matcher.model.expr import Agg, Call, Expr, Lit, walk
from matcher.model.types import FLOATS, INTEGRAL, decimal_parts

_NEVER: Final = frozenset(
    "eq ne lt le gt ge nseq and or not isnull isnotnull in like case coalesce startswith endswith "
    "contains cmp grouping grouping_id isnan nanvl nullif "
    "try_cast try_add try_subtract try_multiply try_divide try_mod "
    "year quarter month day dayofmonth dayofweek weekday dayofyear weekofyear hour minute second "
    "last_day unix_date datediff date_add date_sub add_months trunc date_trunc date_format "
    "upper lower trim ltrim rtrim "
    "length char_length substring left right concat concat_ws replace lpad rpad instr locate "
    "reverse initcap translate substring_index ascii sqrt power exp ln log10 log2 sign signum "
    "ceil floor greatest least md5 hash xxhash64 crc32 size".split()
)
_OVERFLOWS: Final = frozenset("add sub mul neg abs round bround".split())
_ANSI_ONLY: Final = _OVERFLOWS | frozenset("div idiv mod pmod cast".split())
# `idiv` may overflow as well: the least number by -1.
_DIVISIONS: Final = frozenset({"div", "mod", "pmod"})
# Only the first argument is worked out for each row.
_SHORT_CIRCUITS: Final = frozenset("and or case coalesce".split())
_TIMES: Final = frozenset({"date", "timestamp", "timestamp_ntz"})


def raising(expr: Expr, *, ansi: bool = True, overflow: bool = True) -> Iterator[Call]:
    """The parts of `expr` that may raise by themselves, outermost first.

    Args:
        expr: Any expression; of an aggregate its arguments count, not its own sum.
        ansi: Whether `spark.sql.ansi.enabled` is on.
        overflow: Whether sums and products that overflow count: a rewrite may leave these out.
    """
    for node in walk(expr):
        if isinstance(node, Call) and _may_raise_itself(node, ansi):
            if overflow or not _only_overflows(node):
                yield node


def may_raise(expr: Expr, *, ansi: bool = True, overflow: bool = True) -> bool:
    """True unless `expr` is known to have a value, NULL perhaps, whatever its columns hold.

    Args:
        expr: As in `raising`.
        ansi: As in `raising`.
        overflow: As in `raising`.

    >>> from matcher.model.expr import Col, Lit
    >>> k = Col(0, "k", "int")
    >>> may_raise(Call("ne", (k, Lit(0, "int")), "boolean"))
    False
    >>> may_raise(Call("mod", (Lit(10, "int"), k), "int"))
    True
    >>> may_raise(Call("mod", (k, Lit(10, "int")), "int"))
    False
    >>> is_zero = Call("eq", (k, Lit(0, "int")), "boolean")
    >>> nullif = Call("case", (is_zero, Lit(None, "int"), k), "int")
    >>> may_raise(Call("mod", (Lit(10, "int"), nullif), "int"))
    False
    >>> none, wide = (Call("cast", (e,), "double") for e in (Lit(None, "int"), k))
    >>> may_raise(Call("div", (wide, Call("case", (is_zero, none, wide), "double")), "double"))
    False
    >>> price = Col(0, "p", "decimal(12,2)")
    >>> third = Call("div", (price, Lit(3, "decimal(1,0)")), "decimal(20,9)")
    >>> may_raise(third), may_raise(third, overflow=False)
    (True, False)
    """
    return next(raising(expr, ansi=ansi, overflow=overflow), None) is not None


def settles(parts: Collection[Expr], value: Expr) -> bool:
    """True if `value` is among the parts of an AND or OR, whose value it then is, and no other part
    may be an error.

    Args:
        parts: What is joined.
        value: FALSE of an AND, TRUE of an OR.
    """
    others = (part for part in parts if part != value)
    return value in parts and not any(may_raise(part, overflow=False) for part in others)


def always_computed(expr: Expr) -> Iterator[Expr]:
    """The parts of `expr` that are worked out wherever it is: none that a CASE, COALESCE, AND or
    OR may pass over."""
    yield expr
    if isinstance(expr, Agg):
        return
    short = isinstance(expr, Call) and expr.op in _SHORT_CIRCUITS
    for child in expr.children[: 1 if short else None]:
        yield from always_computed(child)


def _may_raise_itself(call: Call, ansi: bool) -> bool:
    if call.op in _NEVER:
        return False
    if not ansi and call.op in _ANSI_ONLY:
        return False
    if call.op in _OVERFLOWS and call.type in FLOATS:
        return False
    if call.op in _DIVISIONS and (call.type in INTEGRAL or call.type in FLOATS):
        return not _never_zero(call.args[1])
    if call.op == "cast":
        return not has_value_for_all(call.args[0].type, call.type)
    return True


def _only_overflows(call: Call) -> bool:
    if call.op in _OVERFLOWS:
        return True
    decimal = decimal_parts(call.type) is not None
    return call.op in _DIVISIONS and decimal and _never_zero(call.args[1])


def is_nonzero(expr: Expr) -> bool:
    """True of a constant that can be divided by."""
    return isinstance(expr, Lit) and expr.value not in (None, 0)


def _never_zero(expr: Expr) -> bool:
    """True of what may be NULL, but is no zero: a constant, or `NULLIF(x, 0)` written out, cast to
    a wider type as a whole or in its branches."""
    expr = _as_it_was(expr)
    if is_nonzero(expr):
        return True
    if not isinstance(expr, Call) or expr.op != "case" or len(expr.args) > 3:
        return False
    test, then, *rest = expr.args
    otherwise = rest[0] if rest else Lit(None, expr.type)
    if not isinstance(test, Call) or test.op not in ("eq", "ne"):
        return False
    given_up, chosen = (then, otherwise) if test.op == "eq" else (otherwise, then)
    zero = any(isinstance(arg, Lit) and arg.value == 0 for arg in test.args)
    return zero and _as_it_was(chosen) in test.args and _is_null(_as_it_was(given_up))


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Lit) and expr.value is None


def _as_it_was(expr: Expr) -> Expr:
    """A whole number before it was cast to a type that holds it as well."""
    while isinstance(expr, Call) and expr.op == "cast" and expr.args[0].type in INTEGRAL:
        if not has_value_for_all(expr.args[0].type, expr.type):
            break
        expr = expr.args[0]
    return expr


def has_value_for_all(source: str, target: str) -> bool:
    """True of a cast that has a value for each value of its argument."""
    if source == target or target in ("string", "binary"):
        return True
    if source in INTEGRAL and target in INTEGRAL:
        return INTEGRAL[source] <= INTEGRAL[target]
    number = source in INTEGRAL or source in FLOATS or decimal_parts(source) is not None
    if target in FLOATS or target == "boolean":
        return number or source == "boolean"
    wider = decimal_parts(target)
    if wider is not None:
        return _fits(source, *wider)
    return source in _TIMES and target in _TIMES


def _fits(source: str, precision: int, scale: int) -> bool:
    narrower = decimal_parts(source)
    if narrower is not None:
        # what is rounded may need a digit more: 9.9 is 10
        carried = 1 if scale < narrower[1] else 0
        return narrower[0] - narrower[1] + carried <= precision - scale
    digits = {8: 3, 16: 5, 32: 10, 64: 19}.get(INTEGRAL.get(source, 0))
    return digits is not None and digits <= precision - scale
