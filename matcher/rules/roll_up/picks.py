"""FIRST, LAST, ANY_VALUE, MAX_BY, MIN_BY: values of single rows.

Spark does not say which row FIRST takes, so any that it may itself return is right, but the values
of several such calls in one query come from one row. Picking the first of the stored firsts is what
Spark returns for the rows in some order, for all of them together; with NULLs skipped that only
holds of values stored so. A smallest or largest value is some row's too, which is enough where the
query has no second such call.
"""

from __future__ import annotations

from typing import Final

from matcher.model.expr import IGNORE_NULLS, Agg, Call, Expr
from matcher.rules.attempt import ViewAttempt, may_be_error
from matcher.rules.roll_up.common import (
    ZERO,
    NeedsRegrouping,
    keyed,
    lookup,
    may_hold_no_rows,
    present,
    row_count,
    stored,
)

_BY_ORDER: Final = frozenset("first last max_by min_by mode collect_list".split())


def roll_up_pick(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """FIRST, LAST and ANY_VALUE (which Spark turns into FIRST)."""
    measure = lookup(attempt, agg.func, agg.args, agg, agg.params)
    if measure is None and _is_alone(attempt):
        measure = lookup(attempt, "min", agg.args, agg) or lookup(attempt, "max", agg.args, agg)
    if measure is not None:
        part: Expr | None = stored(measure)
    else:  # Spark works it out for the row that it takes alone
        value = None if may_be_error(attempt, agg.args) else keyed(attempt, agg.args[0])
        part = None if value is None else present(attempt, value, agg)
    if part is None or not attempt.groups.regroup:
        return part
    some = None
    if may_hold_no_rows(attempt, agg) and IGNORE_NULLS not in agg.params:
        rows = row_count(attempt, agg)  # the NULL of a stored row without any is no row's value
        if rows is None:
            return None
        some = Call("gt", (rows, ZERO), "boolean")
    return Agg(agg.func, (part,), agg.type, filter=some, params=agg.params)


def _is_alone(attempt: ViewAttempt) -> bool:
    return sum(a.func in _BY_ORDER for a in attempt.query.aggregates) == 1


def roll_up_by(attempt: ViewAttempt, agg: Agg) -> Expr | None:
    """MAX_BY(x, y) and MIN_BY(x, y): the stored pick of the group with the best y.

    Rows whose y is NULL do not take part, in Spark and here.

    Args:
        attempt: The query and the view, with what the rules before have found.
        agg: The aggregate that is asked for.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, store, COUNT(*) AS n FROM sales GROUP BY item, store",
    ...     "SELECT MAX_BY(store, item) AS a FROM sales",
    ... )
    SELECT MAX_BY(`store`, `item`) AS `a` FROM c
    """
    value, by = agg.args
    extreme = lookup(attempt, agg.func.removesuffix("_by"), (by,), agg)
    picked = lookup(attempt, agg.func, agg.args, agg)
    if may_be_error(attempt, agg.args):
        return None
    key, best = keyed(attempt, value), keyed(attempt, by)
    left = stored(picked) if picked is not None else key
    right = stored(extreme) if extreme is not None else best
    if left is None or right is None or (picked is None and extreme is None and best is None):
        return None
    right = present(attempt, right, agg) if extreme is None else right
    if right is None:
        return None
    if not attempt.groups.regroup:
        raise NeedsRegrouping
    return Agg(agg.func, (left, right), agg.type)
