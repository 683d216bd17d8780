"""Outputs, HAVING, ORDER BY: every expression above the groups, from the derived keys and
rolled-up aggregates, types kept."""

from __future__ import annotations

from dataclasses import replace

from matcher.model.expr import Agg, Call, Expr, Lit, is_constant, rebuild
from matcher.model.ir import Output, SortKey
from matcher.render.select import is_renderable
from matcher.rules.attempt import Carried, ViewAttempt, cast_to
from matcher.rules.derive_columns import derive, name_field
from matcher.rules.roll_up_aggregates import roll_up_aggregate


def carry_outputs(attempt: ViewAttempt) -> ViewAttempt:
    """Find what is `carried` above the groups.

    Args:
        attempt: The query and the view, with what the rules before have found.

    Raises:
        Refused: from `roll_up_aggregate`, for an aggregate that cannot be had.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, SUM(qty) AS q FROM sales GROUP BY item",
    ...     "SELECT item, SUM(qty) + 1 AS more FROM sales GROUP BY item HAVING SUM(qty) > 5",
    ... )
    SELECT `item`, (`q` + 1L) AS `more` FROM c WHERE (`q` > 5L)
    """
    query = attempt.query
    outputs = []
    for output in query.outputs:
        found = _carry(attempt, output.expr, "output")
        if found is not None:
            outputs.append(Output(output.name, cast_to(found, output.expr.type)))
    having = [_carry(attempt, h, "having") for h in query.having]
    order = [(_carry(attempt, k.expr, "order by"), k) for k in query.order_by]
    order_by = tuple(
        SortKey(_as_output(attempt, outputs, expr, key), key.ascending, key.nulls_first)
        for expr, key in order
        # a constant sorts nothing, and as text it would be read as a position
        if expr is not None and not is_constant(expr)
    )
    kept = tuple(h for h in having if h is not None)
    return replace(attempt, carried=Carried(tuple(outputs), kept, order_by))


def _as_output(attempt: ViewAttempt, outputs: list[Output], derived: Expr, key: SortKey) -> Expr:
    """The output column itself where the key sorts by one, so that it is computed once."""
    for output, written in zip(outputs, attempt.query.outputs, strict=False):
        if written.expr == key.expr:
            return output.expr
    return derived


def _carry(attempt: ViewAttempt, expr: Expr, purpose: str) -> Expr | None:
    if attempt.query.group_keys is None:
        return derive(attempt, expr, purpose, constants=True)
    if isinstance(expr, Agg):
        return roll_up_aggregate(attempt, expr)
    key = attempt.groups.keys.get(attempt.context.canonical(expr))
    if key is not None:
        return cast_to(key, expr.type)
    if isinstance(expr, Lit):
        return expr
    if isinstance(expr, Call) and is_renderable(expr.op, len(expr.args)):
        noted = len(attempt.notes.missing)
        parts = [_carry(attempt, arg, purpose) for arg in expr.args]
        if all(part is not None for part in parts):
            return rebuild(expr, tuple(p for p in parts if p is not None))
        name_field(attempt, expr, purpose, noted)
        return None
    attempt.notes.missing.append((expr, purpose))
    return None
