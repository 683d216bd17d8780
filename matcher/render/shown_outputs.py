"""What a cache's definition shows, as a SELECT list over the cache's table."""

from __future__ import annotations

from matcher.model.expr import Col
from matcher.model.ir import CachePlan
from matcher.render.select import quote, render_expr


def shown_items(plan: CachePlan) -> tuple[tuple[str, str], ...]:
    """The outputs of the definition in their order: the name of each, and its SQL over the columns
    of the cache's table.

    Args:
        plan: The cache.

    Raises:
        NotRenderable: Some expression has no SQL spelling.

    >>> from matcher.examples import plan_of
    >>> shown_items(plan_of("SELECT item + 1 AS next, COUNT(*) FROM sales GROUP BY item"))
    (('next', '(`__key_0` + 1)'), ('count(1)', '`__col_1`'))
    """

    def column(col: Col) -> str:
        return quote(col.name)

    return tuple((o.name, render_expr(o.expr, column)) for o in plan.as_shown())


def shown_list(plan: CachePlan) -> tuple[str, ...]:
    """The same as the items of a SELECT list.

    Args:
        plan: The cache.

    Raises:
        NotRenderable: Some expression has no SQL spelling.

    >>> from matcher.examples import plan_of
    >>> shown_list(plan_of("SELECT item, COUNT(*) FROM sales GROUP BY item"))
    ('`item`', '`__col_1` AS `count(1)`')
    """
    return tuple(
        text if text == quote(name) else f"{text} AS {quote(name)}"
        for name, text in shown_items(plan)
    )
