"""What a snapshot holds of its base tables' columns: type, nullability, physical name and collation
of those that the cache reads.

A cache that may lag behind is asked about columns by their names, and a name may stand for another
column by then: renamed by column mapping, dropped and added again, widened. Only the columns that
the cache reads count.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from cachemgr.delta.widening import has_same_meaning, holds_all_of, sql_type
from matcher.model.expr import Col, Expr, walk
from matcher.model.ir import CachePlan, Relation, base_tables

# Properties of a column's metadata that change what its values mean, collations of nested ones too.
_MEANT: Final = ("__COLLATIONS", "__CHAR_VARCHAR_TYPE_STRING")
_PHYSICAL: Final = "delta.columnMapping.physicalName"


def columns_read(plan: CachePlan) -> dict[str, frozenset[str]]:
    """The columns that a cache reads, in lower case, by the location of their table.

    Args:
        plan: What it stores.
    """
    found: dict[str, set[str]] = {relation.key: set() for relation in plan.tables}
    for _, relation, column in table_columns(plan):
        found[relation.key].add(column.name.lower())
    return {place: frozenset(names) for place, names in found.items()}


def columns_in_order(plan: CachePlan) -> dict[str, list[str]]:
    """The columns that a cache reads, as their tables spell them, by the location of their table:
    those that it shows first, in its own order.

    Args:
        plan: What it stores.
    """
    found: dict[str, dict[str, str]] = {relation.key: {} for relation in plan.tables}
    shown = [column.expr for column in (*plan.columns, *(plan.keys or ()))]
    for _, relation, column in (*_columns_of(plan.relations, shown), *table_columns(plan)):
        found[relation.key].setdefault(column.name.lower(), column.name)
    return {place: list(names.values()) for place, names in found.items()}


def types_read(plan: CachePlan) -> dict[tuple[str, str], str]:
    """The types of the columns that a cache reads, in SQL's words, by the name of their table and
    their own, both in lower case.

    Args:
        plan: What it stores.
    """
    return {
        (relation.name.lower(), column.name.lower()): column.type
        for _, relation, column in table_columns(plan)
    }


def table_columns(plan: CachePlan) -> Iterator[tuple[int, Relation, Col]]:
    """The columns of base tables that a cache is made of, each as often as it is named, those that
    groups below are made of first: the number of its table in `plan.tables`, the table, and itself.

    Args:
        plan: What it stores.
    """
    return _columns_of(plan.relations, _expressions_of(plan))


def _columns_of(
    relations: Iterable[Relation], exprs: Iterable[Expr], first: int = 0
) -> Iterator[tuple[int, Relation, Col]]:
    numbers: list[int] = []
    given = tuple(relations)
    for relation in given:
        numbers.append(first)
        first += len(base_tables((relation,)))
    for number, relation in zip(numbers, given, strict=True):
        if relation.groups is not None:
            groups = relation.groups
            yield from _columns_of(groups.relations, groups.expressions(), number)
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, Col) and given[node.rel].groups is None:
                yield numbers[node.rel], given[node.rel], node


def _expressions_of(plan: CachePlan) -> Iterator[Expr]:
    yield from plan.predicates
    for join in plan.outer:
        yield from join.conditions()
    for column in (*(plan.keys or ()), *plan.columns):
        yield column.expr
    for measure in plan.measures:
        yield measure.agg
    yield from plan.having
    for key in plan.order_by:
        yield key.expr


def kept_columns(schema: str, names: Collection[str]) -> str:
    """What is stored of a table's columns with a snapshot.

    Args:
        schema: The table's schema in the JSON of the Delta protocol (`schemaString`).
        names: The columns that the cache reads, in lower case.

    Returns:
        JSON, as `changed_columns` takes it.
    """
    found = {name: what for name, what in _columns(schema) if name in names}
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def physical_name(kept: str, name: str) -> str | None:
    """The name of a column in its table's files and their statistics; None where it is not kept.

    Args:
        kept: What `kept_columns` gave.
        name: The column's name.

    Returns:
        The name in lower case.
    """
    found = json.loads(kept).get(name.lower())
    return None if found is None else str(found[2])


def names_by_physical(schema: str) -> dict[str, str]:
    """The names of a table's columns by those that its log has for them; empty where they are the
    same.

    Args:
        schema: The table's schema in the JSON of the Delta protocol (`schemaString`).

    >>> names_by_physical('{"fields": [{"name": "a", "metadata": {}}]}')
    {}
    >>> of_a = '{"name": "a", "metadata": {"delta.columnMapping.physicalName": "col-1"}}'
    >>> names_by_physical(f'{{"fields": [{of_a}]}}')
    {'col-1': 'a'}
    """
    if _PHYSICAL not in schema:
        return {}
    fields = json.loads(schema)["fields"]
    return {field["metadata"].get(_PHYSICAL, field["name"]): field["name"] for field in fields}


class Fate(Enum):
    """What became of a column. No refresh can read one that is gone, and none follows one to a type
    that does not hold all values of the old one. One to a wider type is followed."""

    GONE = auto()
    RETYPED = auto()
    WIDENED = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What became of a column.

    Args:
        fate: The kind of change.
        words: What is said of the column.
    """

    fate: Fate
    words: str


@dataclass(frozen=True, slots=True)
class Retyped:
    """A column that has another type.

    Args:
        fate: `WIDENED` or `RETYPED`.
        then: The type that it had, in SQL's words.
        now: The type that it has.
    """

    fate: Fate
    then: str
    now: str


def changed_columns(kept: str, schema: str) -> Mapping[str, ColumnChange]:
    """The columns that are other ones now than a snapshot holds.

    Args:
        kept: What `kept_columns` gave.
        schema: The table's schema now.

    Returns:
        Each column's name to what became of it; empty if all are the same.
    """
    now = dict(_columns(schema))
    then: dict[str, list[Any]] = json.loads(kept)
    return {
        name: _difference(what, now.get(name))
        for name, what in then.items()
        if now.get(name) != what
    }


def retyped_columns(kept: str, schema: str) -> Mapping[str, Retyped]:
    """The columns that have other types now than a snapshot holds, whichever table they belong to:
    one that was created again keeps no column's identity. Those that are gone are left out.

    Args:
        kept: What `kept_columns` gave.
        schema: The schema now.

    Returns:
        Each column's name to the type that it had and the one that it has.
    """
    now = dict(_columns(schema))
    then: dict[str, list[Any]] = json.loads(kept)
    return {
        name: _retyped(what, now[name])
        for name, what in then.items()
        if name in now and _meant(what) != _meant(now[name])
    }


def changes_told(changed: Mapping[str, ColumnChange]) -> str:
    """What became of columns, for people.

    Args:
        changed: What `changed_columns` gave.

    >>> changes_told({"a": ColumnChange(Fate.GONE, "is gone")})
    'column a is gone'
    """
    return "; ".join(f"column {name} {change.words}" for name, change in changed.items())


def _difference(then: list[Any], now: list[Any] | None) -> ColumnChange:
    if now is None:
        return ColumnChange(Fate.GONE, "is gone")
    if then[2] != now[2]:
        return ColumnChange(Fate.OTHER, "is another column of that name")
    if then[0] != now[0]:
        fate = Fate.WIDENED if holds_all_of(then[0], now[0]) else Fate.RETYPED
        return ColumnChange(fate, f"was {_shown(then[0])} and is {_shown(now[0])}")
    if then[1] != now[1]:
        words = "may be NULL now" if now[1] else "may no longer be NULL"
        return ColumnChange(Fate.OTHER, words)
    fate = Fate.OTHER if has_same_meaning(then, now) else Fate.RETYPED
    return ColumnChange(fate, "has another collation or length")


def _retyped(then: list[Any], now: list[Any]) -> Retyped:
    is_wider = holds_all_of(then[0], now[0]) and has_same_meaning(then, now)
    return Retyped(Fate.WIDENED if is_wider else Fate.RETYPED, _spelled(then), _spelled(now))


def _meant(what: list[Any]) -> tuple[Any, ...]:
    """What a column's values are, without whether they may be NULL and where they are stored."""
    return (sql_type(what[0]), *what[-len(_MEANT) :])


def _spelled(what: list[Any]) -> str:
    collation, declared = what[-2:]
    return f"{declared or sql_type(what[0])}{f' with collation {collation}' if collation else ''}"


def _shown(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])


def _columns(schema: str) -> Iterator[tuple[str, list[Any]]]:
    for name, *what in _fields(json.loads(schema)["fields"]):
        yield str(name).lower(), what


def _fields(fields: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """Each field as [name, type, nullable, physical name, …]; nested ones likewise, which are
    mapped like columns."""
    return [
        [f["name"], _kind(f["type"]), f["nullable"], _physical(f)]
        + [f["metadata"].get(key) for key in _MEANT]
        for f in fields
    ]


def _physical(field: Mapping[str, Any]) -> str:
    """A table that is not mapped yet will keep its columns' names as their physical ones."""
    return str(field["metadata"].get(_PHYSICAL, field["name"])).lower()


def _kind(kind: Any) -> Any:
    """A type without what is said of its fields besides."""
    if not isinstance(kind, Mapping):
        return kind
    if kind["type"] == "struct":
        return {"type": "struct", "fields": _fields(kind["fields"])}
    return {k: _kind(v) if k.endswith("Type") else v for k, v in kind.items()}
