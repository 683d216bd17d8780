"""One aggregation by grouping sets as SQL: the keys as columns of their own, then the sets, then
what stands above them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from matcher.model.expr import Col, Expr, columns
from matcher.model.ir import SET_KEY_PREFIX, Output, Rewrite, SortKey

ColumnSql = Callable[[Col], str]
Spell = Callable[[Expr, ColumnSql], str]


def by_sets(
    rewrite: Rewrite, source: str, spell: Spell, plain: ColumnSql, quote: Callable[[str], str]
) -> str:
    """The aggregation by grouping sets: outputs, HAVING and ORDER BY as columns c0, c1, ….

    The keys are in the query's order, so that Spark numbers the sets as it would the query's.
    HAVING and ORDER BY stand outside, where Spark finds keys by an output's name only.

    Args:
        rewrite: what to aggregate.
        source: its FROM and WHERE.
        spell: an expression as SQL, by the spelling of its columns.
        plain: how columns are spelled over `source`.
        quote: a name as an identifier.
    """
    keys = [spell(k, plain) for k in rewrite.group_keys or ()]
    number = [quote(f"{SET_KEY_PREFIX}{i}") for i in range(len(keys))]
    named = [f"{key} AS {name}" for key, name in zip(keys, number, strict=True)]
    read, above = ["*"], plain
    if rewrite.extra:  # several tables may have columns of one name
        used = dict.fromkeys(c for e in _computed(rewrite) for c in columns(e) if not _is_key(c))
        inner = {column: quote(f"x{i}") for i, column in enumerate(used)}
        read = [f"{plain(column)} AS {name}" for column, name in inner.items()]
        above = lambda col: inner.get(col) or quote(col.name)  # noqa: E731
    items = [spell(e, above) for e in _computed(rewrite)]
    sets = ", ".join(f"({', '.join(number[i] for i in s)})" for s in rewrite.grouping_sets or ())
    # Catalyst asks for rows alone below a COUNT(*)
    shown = ", ".join(f"{item} AS `c{i}`" for i, item in enumerate(items)) or "1 AS `c0`"
    rows = f"SELECT {', '.join([*read, *named]) or '1'} {source}"
    return f"SELECT {shown}\nFROM ({rows})\nGROUP BY {', '.join(number)} GROUPING SETS ({sets})"


def _is_key(column: Col) -> bool:
    return column.rel == 0 and column.name.startswith(SET_KEY_PREFIX)


def _computed(rewrite: Rewrite) -> list[Expr]:
    keys = [k.expr for k in rewrite.order_by]
    return [*(o.expr for o in rewrite.outputs), *rewrite.having, *keys]


def over_sets(rewrite: Rewrite) -> Rewrite:
    """What is left to do with the rows of `by_sets`."""
    above = [Col(0, f"c{i}", e.type) for i, e in enumerate(_computed(rewrite))]
    shown, tested = len(rewrite.outputs), len(rewrite.outputs) + len(rewrite.having)
    return replace(
        rewrite,
        outputs=tuple(Output(o.name, above[i]) for i, o in enumerate(rewrite.outputs)),
        filters=tuple(above[shown:tested]),
        having=(),
        order_by=tuple(
            SortKey(above[tested + i], k.ascending, k.nulls_first)
            for i, k in enumerate(rewrite.order_by)
        ),
        group_keys=None,
        grouping_sets=None,
        extra=(),
    )
