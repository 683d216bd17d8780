"""The two zeros of FLOAT and DOUBLE: equal to Spark, two values to the files that it reads.

Spark compares 0.0 and -0.0 as equal, groups them together and shows 0.0. Parquet does not: where
all values of a row group are in a dictionary, `x = -0.0` passes over a row group that holds 0.0
alone, and `x = 0.0` over one that holds -0.0 alone; so do `<=>`, IN, `<= -0.0` and `>= 0.0`. So
Spark's own answer to these depends on how rows lie in files.

What is rendered here finds both zeros in whatever file. That is what Spark finds in ordinary data,
which has no -0.0; where a condition itself says -0.0, Spark may find none of it, and no cache
answers (`matcher.rules.subsume_predicates`).
"""

from __future__ import annotations

from matcher.model.expr import Call, Expr, Lit, rebuild, walk
from matcher.model.operators import COMPARES
from matcher.model.types import FLOATS
from matcher.predicates.constant_folding import fold, fold_all


def is_zero(expr: Expr) -> bool:
    """True for a constant 0.0 or -0.0 of FLOAT or DOUBLE."""
    return isinstance(expr, Lit) and expr.type in FLOATS and expr.value == 0.0


def is_minus_zero(expr: Expr) -> bool:
    """True for a constant -0.0.

    >>> is_minus_zero(Lit(-0.0, "double")), is_minus_zero(Lit(0.0, "double"))
    (True, False)
    """
    return is_zero(expr) and isinstance(expr, Lit) and str(expr.value).startswith("-")


def compares_minus_zero(predicate: Expr) -> bool:
    """True if something in a condition is compared with -0.0, as written or worked out."""
    if not any(node.type in FLOATS for node in walk(predicate)):
        return False
    return any(
        isinstance(node, Call) and node.op in COMPARES and any(map(is_minus_zero, node.args))
        for node in walk(fold_all(predicate))
    )


def finding_both(condition: Expr) -> Expr:
    """A condition that finds both zeros wherever Parquet's filters look at it, with the very same
    value for each row.

    >>> from matcher.model.expr import Col
    >>> finding_both(Call("ge", (Col(0, "x", "double"), Lit(0.0, "double")), "boolean"))
    ge($0.x, -0.0:double)
    """
    if not condition.children:
        return condition
    done = rebuild(condition, tuple(map(finding_both, condition.children)))
    if not isinstance(done, Call):
        return done
    worked_out = fold(done) if done.type in FLOATS else None
    if worked_out is not None and is_zero(worked_out):
        return worked_out
    return _finding_both(done)


def _finding_both(call: Call) -> Call:
    args = call.args
    if call.op in ("le", "ge"):
        # the least zero below, the greatest above
        wanted = (-0.0, 0.0) if call.op == "le" else (0.0, -0.0)
        done = tuple(_zero_as(arg, zero) for arg, zero in zip(args, wanted, strict=True))
        return call if done == args else _same(call, call.op, done)
    if call.op in ("eq", "nseq") and is_zero(args[0]) is not is_zero(args[1]):
        operand, zero = (args[1], args[0]) if is_zero(args[0]) else args
        return _zeros(call, operand, zero.type)
    if call.op == "in" and not is_zero(args[0]) and any(map(is_zero, args[1:])):
        zero = next(arg for arg in args[1:] if is_zero(arg))
        found = _zeros(call, args[0], zero.type)
        rest = tuple(arg for arg in args[1:] if not is_zero(arg))
        return _same(call, "or", (_same(call, "in", (args[0], *rest)), found)) if rest else found
    return call


def _zero_as(arg: Expr, zero: float) -> Expr:
    """`arg`, or the zero of that sign where it is a zero."""
    return Lit(zero, arg.type) if is_zero(arg) else arg


def _zeros(call: Call, operand: Expr, type: str) -> Call:
    """`operand` is one of the zeros: NULL where it is NULL, but FALSE for `<=>`."""
    low = _same(call, "ge", (operand, Lit(-0.0, type)))
    high = _same(call, "le", (operand, Lit(0.0, type)))
    known = (Call("isnotnull", (operand,), "boolean", False),) if call.op == "nseq" else ()
    return _same(call, "and", (*known, low, high))


def _same(call: Call, op: str, args: tuple[Expr, ...]) -> Call:
    return Call(op, args, call.type, call.nullable)
