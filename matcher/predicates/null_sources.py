"""Where an expression is NULL, told by its parts: `x > 5` is NULL exactly where `x` is.

Catalyst writes `(x > y) IS NULL` as `x IS NULL OR y IS NULL` (`NullDownPropagation`, for the order
comparisons and NOT alone). Canonical expressions are written so for every operator for which it
holds, whatever Catalyst has done to them.
"""

from __future__ import annotations

from typing import Final

from matcher.model.expr import Call, Expr, Lit
from matcher.model.operators import NULL_FOR_NULL_ONLY, STRICT
from matcher.model.types import FLOATS, INTEGRAL, decimal_parts
from matcher.predicates.monotone import monotone
from matcher.predicates.raising import is_nonzero, may_raise

_NUMBERS: Final = frozenset(INTEGRAL) | FLOATS
NULL_TESTS: Final = {"isnull": "or", "isnotnull": "and"}


def null_sources(expr: Expr) -> tuple[Expr, ...]:
    """The parts of canonical `expr` such that it is NULL exactly where some of them is: itself
    where nothing else is known, none where it is never NULL.

    An operator counts if it is NULL for each argument that is NULL, and for nothing else: a cast
    that may fail, `/`, LIKE, CASE and an addition do not.

    >>> from matcher.model.expr import Col
    >>> null_sources(Call("gt", (Col(0, "x", "int"), Lit(5, "int")), "boolean"))
    ($0.x,)
    """
    if isinstance(expr, Lit):
        return () if expr.value is not None else (expr,)
    if not expr.nullable:
        return ()
    if isinstance(expr, Call) and _is_null_with_its_arguments(expr):
        return tuple(dict.fromkeys(s for arg in expr.args for s in null_sources(arg)))
    return (expr,)


def tested_sources(operand: Expr) -> tuple[Expr, ...]:
    """As `null_sources`, of what a query tests: what may be an error of some rows is tested itself,
    so that it stays one."""
    return (operand,) if may_raise(operand, overflow=False) else null_sources(operand)


def _is_null_with_its_arguments(call: Call) -> bool:
    if call.op not in STRICT:  # FALSE AND NULL is FALSE
        return False
    return null_for_null_only(call)


def null_for_null_only(call: Call) -> bool:
    """True if the call is not NULL where none of its arguments is; it may be an error.

    Arithmetic of whole numbers wraps around or is an error, of floats it is NaN; decimals that
    overflow may be NULL, and so may what is divided by a zero.
    """
    if call.op in NULL_FOR_NULL_ONLY or monotone(call) is not None:
        return True
    if call.op == "cast" and _is_total_cast(call.args[0].type, call.type):
        return True
    if call.op == "mod" and call.type in INTEGRAL and is_nonzero(call.args[1]):
        return True
    if call.op in ("add", "sub", "mul", "neg") and call.type in _NUMBERS:
        return True
    return False


def _is_total_cast(source: str, target: str) -> bool:
    if source in INTEGRAL:
        return target in _NUMBERS
    return target in FLOATS and (source in FLOATS or decimal_parts(source) is not None)


def tested(test: Expr, op: str) -> tuple[Expr, ...] | None:
    """What the canonical `test` asks of: that some of it is NULL (`op` is `isnull`), or that none
    is (`isnotnull`); None for anything else."""
    if not isinstance(test, Call):
        return None
    if test.op == op:
        return tested_sources(test.args[0])
    if test.op != NULL_TESTS[op]:
        return None
    found: dict[Expr, None] = {}
    for arg in test.args:
        if not isinstance(arg, Call) or arg.op != op:
            return None
        found.update(dict.fromkeys(tested_sources(arg.args[0])))
    return tuple(found)
