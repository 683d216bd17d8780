"""COUNT: SUM of stored counts, 0 over nothing.

COUNT(x) is COUNT(*) where x is never NULL; of a key it is COUNT(*) of the groups where the key is
not NULL; of a CASE over keys the count of the branch that each group takes.
"""

from __future__ import annotations

from matcher.model.expr import Agg, Call, Expr, Lit
from matcher.model.types import INTEGRAL
from matcher.rules.attempt import ViewAttempt, may_be_error, per_group_sum
from matcher.rules.roll_up.common import (
    ZERO,
    case_of,
    case_over_keys,
    keyed,
    lookup,
    never_null,
    row_count,
    stored,
    widens,
)


def roll_up_count(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """COUNT(*), COUNT(x) and COUNT(x, y, …).

    Args:
        attempt: The query and the view, with what the rules before have found.
        agg: The aggregate that is asked for.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, COUNT(qty) AS q FROM sales GROUP BY item",
    ...     "SELECT COUNT(qty) AS a FROM sales",
    ... )
    SELECT COALESCE(SUM(`q`), 0L) AS `a` FROM c
    """
    part = count_part(attempt, agg.args, agg)
    if part is None:
        return None
    total = per_group_sum(attempt, part)
    # Over no rows SUM is NULL where COUNT is 0; a group always has rows.
    over_nothing = attempt.groups.regroup and not attempt.query.group_keys
    return Call("coalesce", (total, ZERO), "bigint", nullable=False) if over_nothing else total


def count_part(attempt: ViewAttempt, args: tuple[Expr, ...], like: Agg) -> Expr | None:
    """How many rows behind one stored row have none of `args` NULL."""
    direct = lookup(attempt, "count", args, like)
    if direct is not None:
        return stored(direct)
    if not args:
        return row_count(attempt, like)
    if len(args) > 1 and may_be_error(attempt, args):
        return None
    left = tuple(a for a in args if not never_null(attempt, a, like))
    if len(left) < len(args):
        return count_part(attempt, left, like)
    tests = {a: keyed(attempt, Call("isnotnull", (a,), "boolean", False)) for a in args}
    known = tuple(t for t in tests.values() if t is not None)
    if known:
        rest = count_part(attempt, tuple(a for a, t in tests.items() if t is None), like)
        if rest is None:
            return None
        test = known[0] if len(known) == 1 else Call("and", known, "boolean", False)
        return Call("case", (test, rest, ZERO), "bigint")
    return _of_one(attempt, args[0], like) if len(args) == 1 else None


def _of_one(attempt: ViewAttempt, arg: Expr, like: Agg) -> Expr | None:
    if not isinstance(arg, Call):
        return None
    if arg.op == "cast":
        inner = arg.args[0]
        keeps = widens(inner.type, arg.type) or (inner.type in INTEGRAL and arg.type == "double")
        return count_part(attempt, (inner,), like) if keeps else None
    if arg.op != "case":
        return None
    found = case_over_keys(attempt, arg, lambda value: _of_branch(attempt, value, like))
    if found is None:
        return None
    tests, parts = found
    return case_of(tests, parts if len(parts) > len(tests) else (*parts, ZERO))


def _of_branch(attempt: ViewAttempt, value: Expr, like: Agg) -> Expr | None:
    if isinstance(value, Lit) and value.value is None:
        return ZERO
    return count_part(attempt, (value,), like)
