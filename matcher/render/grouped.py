"""Groups among the relations of a block, as subqueries in its FROM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from matcher.model.expr import Col, Expr
from matcher.model.ir import Relation
from matcher.render.from_clause import stored_from

ColumnSql = Callable[[Col], str]
Spelled = Callable[[Expr, ColumnSql], str]
_ONE_ROW: Final = "COUNT(*) AS one"


def spelled_relations(
    relations: Sequence[Relation],
    table_sql: Sequence[str],
    spelled: Spelled,
    conjunction: Callable[[Sequence[Expr], ColumnSql], str],
    quote: Callable[[str], str],
) -> list[str]:
    """What stands for each relation in FROM, its alias not included.

    Args:
        relations: The relations.
        table_sql: How the base tables among and below them are spelled, as `base_tables` has them.
        spelled: An expression as SQL.
        conjunction: Conditions that all hold, as SQL.
        quote: A name as an identifier.
    """
    left = iter(table_sql)
    return [_one(relation, left, spelled, conjunction, quote) for relation in relations]


def _one(
    relation: Relation,
    left: Iterator[str],
    spelled: Spelled,
    conjunction: Callable[[Sequence[Expr], ColumnSql], str],
    quote: Callable[[str], str],
) -> str:
    groups = relation.groups
    if groups is None:
        return next(left)

    def column(col: Col) -> str:
        return f"t{col.rel}.{quote(col.name)}"

    names = [_one(inner, left, spelled, conjunction, quote) for inner in groups.relations]
    tables = [f"{sql} AS t{i}" for i, sql in enumerate(names)]
    items = [f"{spelled(c.expr, column)} AS {quote(c.name)}" for c in groups.columns]
    lines = ["SELECT " + ", ".join(items or [_ONE_ROW])]
    lines += stored_from(groups, tables, lambda expr: conjunction([expr], column))
    if groups.predicates:
        lines.append("WHERE " + conjunction(groups.predicates, column))
    if groups.keys:
        lines.append("GROUP BY " + ", ".join(spelled(k.expr, column) for k in groups.keys))
    return "(" + " ".join(lines) + ")"
