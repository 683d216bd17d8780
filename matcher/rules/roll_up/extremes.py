"""MIN, MAX, BIT_AND, BIT_OR, BIT_XOR (BOOL_AND and BOOL_OR are MIN and MAX of a BOOLEAN).

Of stored ones, of keys, and of a CASE over keys. All ignore NULL, and are NULL over nothing. For
BIT_XOR a value that occurs an even number of times cancels out, so a key counts by its rows.
"""

from __future__ import annotations

from matcher.model.expr import Agg, Call, Expr, Lit
from matcher.model.types import INTEGRAL
from matcher.rules.attempt import ViewAttempt, cast_to
from matcher.rules.roll_up.common import (
    case_of,
    case_over_keys,
    keyed,
    lookup,
    present,
    row_count,
    stored,
)


def roll_up_extreme(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """The extreme of the stored rows' parts; the part itself where a stored row is the group.

    Args:
        attempt: The query and the view, with what the rules before have found.
        agg: The aggregate that is asked for.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, MAX(qty) AS q FROM sales GROUP BY item",
    ...     "SELECT MAX(qty) AS a FROM sales",
    ... )
    SELECT MAX(`q`) AS `a` FROM c
    """
    part = _part(attempt, agg.args[0], agg)
    if part is None or not attempt.groups.regroup:
        return part
    return Agg(agg.func, (part,), agg.type)


def _part(attempt: ViewAttempt, arg: Expr, like: Agg) -> Expr | None:
    measure = lookup(attempt, like.func, (arg,), like)
    if measure is not None:
        return stored(measure)
    value = keyed(attempt, arg)
    if value is not None:
        return _of_key(attempt, value, like)
    if not isinstance(arg, Call):
        return None
    if arg.op == "cast" and like.func in ("min", "max"):
        return _of_cast(attempt, arg, like)
    if arg.op != "case":
        return None
    found = case_over_keys(attempt, arg, lambda value: _part(attempt, value, like))
    if found is None:
        return None
    tests, parts = found
    return case_of(tests, tuple(cast_to(part, arg.type) for part in parts))


def _of_cast(attempt: ViewAttempt, arg: Call, like: Agg) -> Expr | None:
    """A cast to a larger integer keeps the order and is one to one."""
    inner = arg.args[0]
    if INTEGRAL.get(inner.type, 99) > INTEGRAL.get(arg.type, 0):
        return None
    part = _part(attempt, inner, like)
    return None if part is None else cast_to(part, arg.type)


def _of_key(attempt: ViewAttempt, value: Expr, like: Agg) -> Expr | None:
    if like.func != "bit_xor":
        return present(attempt, value, like)
    rows = row_count(attempt, like)
    if rows is None or value.type not in INTEGRAL:
        return None
    odd = Call("mod", (rows, Lit(2, "bigint")), "bigint")
    once = cast_to(Call("mul", (cast_to(value, "bigint"), odd), "bigint"), value.type)
    return present(attempt, once, like)
