"""AND, OR, NOT for the text door: flattened, pushed down, constants worked out."""

from __future__ import annotations

from matcher.model.expr import FALSE, TRUE, Call, Expr, Lit, conjuncts
from matcher.model.message import Word
from matcher.model.operators import NEGATION
from matcher.model.reasons import ReasonCode
from matcher.sql.expressions.coerce import cast_to
from matcher.sql.expressions.scope import unsupported
from matcher.sql.expressions.types import UNKNOWN, TextSettings


def logic(op: str, operands: list[Expr], settings: TextSettings) -> Expr:
    """AND or OR, flattened, constants worked out."""
    neutral, absorbing = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
    flat: list[Expr] = []
    for operand in operands:
        for part in operand.args if isinstance(operand, Call) and operand.op == op else (operand,):
            part = as_boolean(part, settings)
            if part == absorbing:
                return absorbing
            if part != neutral:
                flat.append(part)
    if not flat:
        return neutral
    flat = list(dict.fromkeys(flat))
    if op == "or":
        shared = [p for p in conjuncts(flat[0]) if all(p in conjuncts(other) for other in flat[1:])]
        if shared and len(flat) > 1:
            return _factored(shared, flat, settings)
    if len(flat) == 1:
        return flat[0]
    return Call(op, tuple(flat), "boolean", any(p.nullable for p in flat))


def _factored(shared: list[Expr], branches: list[Expr], settings: TextSettings) -> Expr:
    """(a AND b) OR (a AND c) as a AND (b OR c), as Spark's BooleanSimplification has it: so a join
    condition that each branch repeats is one. Exact in three-valued logic, a distributive lattice.
    """
    left = [
        logic("and", [p for p in conjuncts(b) if p not in shared] or [TRUE], settings)
        for b in branches
    ]
    return logic("and", [*shared, logic("or", left, settings)], settings)


def negate(expr: Expr, settings: TextSettings) -> Expr:
    """NOT, pushed down where that is exact in three-valued logic."""
    expr = as_boolean(expr, settings)
    if isinstance(expr, Lit):
        return expr if expr.value is None else (FALSE if expr.value else TRUE)
    if isinstance(expr, Call):
        if expr.op in NEGATION:
            return Call(NEGATION[expr.op], expr.args, "boolean", expr.nullable)
        if expr.op == "not":
            return expr.args[0]
        if expr.op in ("and", "or"):
            other = "or" if expr.op == "and" else "and"
            return logic(other, [negate(a, settings) for a in expr.args], settings)
    return Call("not", (expr,), "boolean", expr.nullable)


def as_boolean(expr: Expr, settings: TextSettings) -> Expr:
    """`expr` where Spark wants a BOOLEAN."""
    if expr.type in ("boolean", UNKNOWN):
        return expr
    if expr.type in ("void", "string"):
        return cast_to(expr, "boolean", settings)
    raise unsupported(
        ReasonCode.UNSUPPORTED_EXPRESSION,
        "{type} where BOOLEAN is needed",
        type=Word(expr.type),
    )
