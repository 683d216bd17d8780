"""A condition inside an aggregate and one in its FILTER clause say the same; the latter is the one
form compared.

An aggregate that skips NULLs takes the same values from `CASE WHEN p THEN x END` in all rows as
from `x` in the rows where `p` is TRUE, and both are empty where `p` holds nowhere. Not so with
`ELSE 0`, which counts as a value, nor for FIRST and LAST, which see NULLs.
"""

from __future__ import annotations

from matcher.model.expr import Agg, Call, Expr, Lit
from matcher.model.operators import NEGATION, SKIPS_NULLS
from matcher.predicates.raising import may_raise


def skips_nulls(agg: Agg) -> bool:
    """True if rows in which the argument is NULL change nothing.

    Not known of an aggregate that something beside its arguments gives another meaning, as in
    `COLLECT_SET(x) RESPECT NULLS`; that of `APPROX_COUNT_DISTINCT` is its precision.

    >>> from matcher.model.expr import Col
    >>> x = Col(0, "x", "int")
    >>> skips_nulls(Agg("collect_set", (x,), "array<int>"))
    True
    >>> skips_nulls(Agg("collect_set", (x,), "array<int>", params=("0", "0", "false")))
    False
    """
    plain = not agg.params or agg.func == "approx_count_distinct"
    return plain and agg.func in SKIPS_NULLS


def as_filter(agg: Agg) -> Agg:
    """`agg` with the condition of its only argument in its FILTER clause; itself if it has none.

    >>> from matcher.model.expr import Col
    >>> p, x = Call("p", (), "boolean"), Col(0, "x", "int")
    >>> as_filter(Agg("sum", (Call("case", (p, x), "int"),), "bigint"))
    sum($0.x) filter p()
    """
    if not skips_nulls(agg) or len(agg.args) != 1:
        return agg
    arg = agg.args[0]
    if not isinstance(arg, Call) or arg.op != "case":
        return agg
    found = _condition(arg)
    if found is None:
        return agg
    condition, value = found
    if may_raise(value, overflow=False):  # a FILTER may be looked at after it, a CASE never is
        return agg
    args: tuple[Expr, ...] = (value,)
    # a value that is there wherever the condition holds: COUNT counts these rows
    given = isinstance(value, Lit) and value.value is not None
    if agg.func == "count" and not agg.distinct and (given or value == condition):
        args = ()
    if agg.filter is not None:
        condition = Call("and", (agg.filter, condition), "boolean")
    return Agg(agg.func, args, agg.type, agg.nullable, agg.distinct, condition, agg.params)


def _condition(case: Call) -> tuple[Expr, Expr] | None:
    """(p, x) of `CASE WHEN p THEN x END`, or of what Spark makes of `count_if(p)`."""
    args = case.args
    if len(args) == 3 and _is_null(args[2]):
        args = args[:2]
    if len(args) == 2:
        return args[0], args[1]
    if len(args) == 3 and _is_null(args[1]) and _negates(args[0], args[2]):
        return args[2], args[2]  # CASE WHEN NOT p THEN NULL ELSE p END
    return None


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Lit) and expr.value is None


def _negates(condition: Expr, of: Expr) -> bool:
    if not isinstance(condition, Call):
        return False
    if condition.op == "not":
        return condition.args[0] == of
    if not isinstance(of, Call):
        return False
    if of.op == "not":
        return of.args[0] == condition
    return NEGATION.get(of.op) == condition.op and condition.args == of.args
