"""One aggregation by grouping sets as SQL: the keys as columns of their own, then the sets, then
what stands above them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from matcher.expr import Col, Expr
from matcher.ir import SET_KEY_PREFIX, Output, Rewrite, SortKey


def by_sets(
    rewrite: Rewrite,
    table_sql: str,
    sql: Callable[[Expr], str],
    quote: Callable[[str], str],
) -> str:
    """The aggregation by grouping sets: outputs, HAVING and ORDER BY as columns c0, c1, ….

    The keys are in the query's order, so that Spark numbers the sets as it would the query's.
    HAVING and ORDER BY stand outside, where Spark finds keys by an output's name only.
    """
    keys = [sql(k) for k in rewrite.group_keys or ()]
    number = [quote(f"{SET_KEY_PREFIX}{i}") for i in range(len(keys))]
    named = ", ".join(f"{key} AS {name}" for key, name in zip(keys, number, strict=True))
    where = " AND ".join(sql(f) for f in rewrite.filters)
    items = [sql(e) for e in _computed(rewrite)]
    sets = ", ".join(f"({', '.join(number[i] for i in s)})" for s in rewrite.grouping_sets or ())
    shown = ", ".join(f"{item} AS `c{i}`" for i, item in enumerate(items))
    rows = f"SELECT *, {named} FROM {table_sql}" + (f" WHERE {where}" if where else "")
    return f"SELECT {shown}\nFROM ({rows})\nGROUP BY {', '.join(number)} GROUPING SETS ({sets})"


def _computed(rewrite: Rewrite) -> list[Expr]:
    keys = [k.expr for k in rewrite.order_by]
    return [*(o.expr for o in rewrite.outputs), *rewrite.having, *keys]


def over_sets(rewrite: Rewrite) -> Rewrite:
    """What is left to do with the rows of `by_sets`."""
    columns = [Col(0, f"c{i}", e.type) for i, e in enumerate(_computed(rewrite))]
    shown, tested = len(rewrite.outputs), len(rewrite.outputs) + len(rewrite.having)
    return replace(
        rewrite,
        outputs=tuple(Output(o.name, columns[i]) for i, o in enumerate(rewrite.outputs)),
        filters=tuple(columns[shown:tested]),
        having=(),
        order_by=tuple(
            SortKey(columns[tested + i], k.ascending, k.nulls_first)
            for i, k in enumerate(rewrite.order_by)
        ),
        group_keys=None,
        grouping_sets=None,
    )
