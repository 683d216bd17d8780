"""The plan document: a Catalyst plan as plain data, as PlanWriter.java and ExprWriter.java write
it. No other module indexes a node or an entry of it.

A document has `v` (its version), `ansi`, `precision_loss`, `time_zone`, `plan` (a node), `schema`
(entries) and `tables`. A node is a JSON object, whose keys are short because plans are long:

- `n`: the operator, the simple name of Spark's class;
- `c`: the children; leaves have none;
- `p`: the outputs of Project and Aggregate; of Filter and Join the condition, in a list;
- `g`: the group keys of an Aggregate;
- `o`: the columns that LogicalRelation and Expand put out;
- `e`: for each set of an Expand, the expressions of a row;
- `j`: a Join's kind, as SQL spells it;
- `t`: the number of a LogicalRelation's table;
- `s`: of a Sort of all rows, `[entry, ascending, nulls first]` for each key;
- `l`: the number of rows of a limit or an Offset;
- `u`: of what gives rows to EXISTS, a SEMI join or LIMIT 1, see `matcher.catalyst.once.Once`;
- `f`: what an Aggregate or a Window shows of the order of rows, a list of `adds` and `picks`;
- `w`: the ids of the attributes of whole numbers that it averages, -1 for what is computed;
- `b`: 1 of a correlated Subquery whose expression is not seen, which may hold an aggregation above
    what is written of it;
- `r`: what depends on the order of the rows below, as text;
- `x`: of the outermost node, in place of all others: why the plan is too large to be written;
- `cache`: 1 where a cache answers the node already.

An entry is an expression, a list that begins with its tag:

- `["a", id, name, type, nullable]`: an attribute;
- `["l", value, type]`: a literal; what JSON lacks is `{"d": text}`, `{"b": hex}`, `{"f": text}`;
- `["as", id, name, entry]`: an alias;
- `["f", class, name, args, type, nullable, params]`: any other expression;
- `["g", class, name, args, type, nullable, distinct, filter, params]`: an aggregate call;
- `["q", "SUBQUERY", text, values, plan, conditions]`: EXISTS (no values) or IN with a query;
- `["x", code, text]`: what no block may hold; with `args` behind, what may stand above one.

A list of one is a parameter, such as the escape character of LIKE, and no entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

VERSION: Final = 2
"""Grows with each change after which a document means something else."""

Document: TypeAlias = dict[str, Any]
Node: TypeAlias = dict[str, Any]
Entry: TypeAlias = list[Any]
Path: TypeAlias = tuple[int, ...]

ATTRIBUTE: Final = "a"
LITERAL: Final = "l"
ALIAS: Final = "as"
FUNCTION: Final = "f"
AGGREGATE: Final = "g"
SUBQUERY: Final = "q"
REFUSED: Final = "x"
NAMED: Final = (ATTRIBUTE, ALIAS)

_LIMITS: Final = ("LocalLimit", "GlobalLimit")
# Where an entry says its type.
_TYPE_AT: Final = {ATTRIBUTE: 3, FUNCTION: 4, AGGREGATE: 4, LITERAL: 2}


class Settings(NamedTuple):
    """The session's settings that are written into resolved expressions."""

    ansi: bool
    precision_loss: bool
    time_zone: str


class Function(NamedTuple):
    """An expression that is none of the others."""

    class_name: str
    name: str
    args: Sequence[Entry]
    type: str
    nullable: bool
    params: Sequence[str]


class Aggregate(NamedTuple):
    """An aggregate call."""

    class_name: str
    name: str
    args: Sequence[Entry]
    type: str
    nullable: bool
    distinct: bool
    filter: Entry | None
    params: Sequence[str]


class Subquery(NamedTuple):
    """EXISTS, which has no values, or IN with a query."""

    code: str
    text: str
    values: Sequence[Entry] | None
    plan: Node
    conditions: Sequence[Entry]


# -- documents ------------------------------------------------------------------------------------


def check_version(document: Document) -> None:
    """Refuse what another release has written.

    Raises:
        ValueError: The document is of another version.
    """
    if document.get("v") != VERSION:
        raise ValueError(
            f"plan document has version {document.get('v')!r}, this code reads {VERSION}"
        )


def plan_of(document: Document) -> Node:
    """The outermost node."""
    found: Node = document["plan"]
    return found


def tables_of(document: Document) -> list[dict[str, Any]]:
    """The tables: `name`, `location`, `kind`, `version`, `pinned`, and `elsewhere` for one that is
    read by a part that is not written."""
    found: list[dict[str, Any]] = document["tables"]
    return found


def settings_of(document: Document) -> Settings:
    """The session's settings."""
    return Settings(document["ansi"], document["precision_loss"], document["time_zone"])


def node_at(document: Document, path: Path) -> Node:
    """The node at a path.

    Args:
        document: The document.
        path: Child numbers from the plan's root.
    """
    node = plan_of(document)
    for number in path:
        node = children(node)[number]
    return node


# -- nodes ----------------------------------------------------------------------------------------


def operator(node: Node) -> str:
    """The simple name of Spark's class."""
    found: str = node["n"]
    return found


def children(node: Node) -> Sequence[Node]:
    """The children; none of a leaf."""
    found: Sequence[Node] = node.get("c", ())
    return found


def child(node: Node) -> Node:
    """The only child, or the first."""
    found: Node = node["c"][0]
    return found


def expressions(node: Node) -> list[Entry]:
    """The outputs of a Project or an Aggregate; the condition of a Filter or a Join in a list."""
    found: list[Entry] = node["p"]
    return found


def condition(node: Node) -> Entry:
    """The condition of a Filter."""
    found: Entry = node["p"][0]
    return found


def group_keys(node: Node) -> list[Entry] | None:
    """The group keys of an Aggregate; None of another operator."""
    return node.get("g")


def keys_of(node: Node) -> list[Entry]:
    """The group keys of an Aggregate."""
    found: list[Entry] = node["g"]
    return found


def columns(node: Node) -> list[Entry]:
    """The columns that a LogicalRelation or an Expand puts out."""
    found: list[Entry] = node["o"]
    return found


def expanded(node: Node) -> list[list[Entry]]:
    """For each set of an Expand, what its columns are."""
    found: list[list[Entry]] = node["e"]
    return found


def join_kind(node: Node) -> str | None:
    """A join's kind as SQL spells it, such as `LEFT SEMI`; None of another operator."""
    return node.get("j")


def table_number(node: Node) -> int | None:
    """The number of a relation's table; None of another operator."""
    return node.get("t")


def sort_keys(node: Node) -> list[Any] | None:
    """`[entry, ascending, nulls first]` for each key of a Sort of all rows; None of one that sorts
    each partition."""
    return node.get("s")


def row_count(node: Node) -> int | None:
    """The rows of a limit or an Offset; None where they are no constant."""
    return node.get("l")


def once(node: Node) -> int:
    """Whether equal rows may be one, as `matcher.catalyst.once.Once` counts."""
    found: int = node.get("u", 0)
    return found


def order_shown(node: Node) -> Sequence[str]:
    """What an Aggregate or a Window shows of the order of rows: `adds`, `picks`."""
    found: Sequence[str] = node.get("f", ())
    return found


def averaged(node: Node) -> Sequence[int]:
    """The ids of the attributes of whole numbers that an Aggregate or a Window averages, -1 among
    them where it averages what is computed."""
    found: Sequence[int] = node.get("w", ())
    return found


def may_be_aggregated(node: Node) -> bool:
    """Whether an aggregation above the node may be left out: Spark optimises a correlated scalar
    subquery without its own (`OptimizeSubqueries`, for the COUNT bug)."""
    return bool(node.get("b"))


def depends_on_order(node: Node) -> str | None:
    """What of the node depends on the order and the partitions of the rows below it."""
    return node.get("r")


def too_large(node: Node) -> str | None:
    """Why a plan was not written: it is too long, or too deep."""
    return node.get("x")


def is_answered(node: Node) -> bool:
    """Whether a cache answers the node already."""
    return bool(node.get("cache"))


def aggregate_node(keys: list[Entry], outputs: list[Entry], below: Node) -> Node:
    """An Aggregate over a node."""
    return {"n": "Aggregate", "g": keys, "p": outputs, "c": [below]}


def projection(outputs: list[Entry], below: Node) -> Node:
    """A Project over a node."""
    return {"n": "Project", "p": outputs, "c": [below]}


def with_outputs(node: Node, outputs: list[Entry]) -> Node:
    """A Project or an Aggregate with other outputs."""
    return {**node, "p": outputs}


def with_child(node: Node, number: int, below: Node) -> Node:
    """A node with another child."""
    changed = list(children(node))
    changed[number] = below
    return {**node, "c": changed}


# -- entries --------------------------------------------------------------------------------------


def tag(entry: Sequence[Any]) -> str:
    """What kind of entry it is."""
    found: str = entry[0]
    return found


def id_of(entry: Sequence[Any]) -> int:
    """The id of an attribute or an alias."""
    found: int = entry[1]
    return found


def name_of(entry: Sequence[Any]) -> str:
    """The name of an attribute or an alias; what to call an entry that is refused."""
    found: str = entry[2]
    return found


def aliased(entry: Sequence[Any]) -> Entry:
    """What an alias names."""
    found: Entry = entry[3]
    return found


def attribute_type(entry: Sequence[Any]) -> str:
    """The type of an attribute."""
    found: str = entry[3]
    return found


def is_nullable(entry: Sequence[Any]) -> bool:
    """Whether an attribute may be NULL."""
    return bool(entry[4])


def literal(entry: Sequence[Any]) -> tuple[Any, str]:
    """The value of a literal, as JSON has it, and its type."""
    return entry[1], entry[2]


def class_of(entry: Sequence[Any]) -> str:
    """The class of a function or an aggregate call; the code of what is refused."""
    found: str = entry[1]
    return found


def type_of(entry: Sequence[Any]) -> str | None:
    """The type of an entry; None where it is not said."""
    if tag(entry) == ALIAS:
        return type_of(aliased(entry))
    place = _TYPE_AT.get(tag(entry))
    return None if place is None else str(entry[place])


def function(entry: Sequence[Any]) -> Function:
    """The parts of a function."""
    return Function(*entry[1:])


def aggregate(entry: Sequence[Any]) -> Aggregate:
    """The parts of an aggregate call."""
    return Aggregate(*entry[1:])


def subquery(entry: Sequence[Any]) -> Subquery:
    """The parts of EXISTS or IN with a query."""
    return Subquery(*entry[1:])


def args_of(entry: Sequence[Any]) -> list[Entry]:
    """The arguments of a function."""
    found: list[Entry] = entry[3]
    return found


def is_call(entry: Sequence[Any], class_name: str) -> bool:
    """Whether an entry is a function of that class."""
    return bool(entry[:2] == [FUNCTION, class_name])


def has_args(entry: Sequence[Any]) -> bool:
    """Whether what is refused says of what it is made, so that it may stand above a block."""
    return len(entry) > 3


def entries_below(entry: Entry) -> list[Entry]:
    """The entries below one, at the places that they have in Spark's own expression."""
    kind = tag(entry)
    if kind == ALIAS:
        return [aliased(entry)]
    if kind == FUNCTION or (kind == REFUSED and has_args(entry)):
        return args_of(entry)
    return []


def attribute(id: int, name: str, *more: Any) -> Entry:
    """An attribute; `more` are its type and whether it may be NULL, where these matter."""
    return [ATTRIBUTE, id, name, *more]


def alias(id: int, name: str, entry: Entry) -> Entry:
    """An alias."""
    return [ALIAS, id, name, entry]


def attribute_ids(part: Any) -> set[int]:
    """The ids of all attributes in an entry, or in a list of entries."""
    if not isinstance(part, list):
        return set()
    if len(part) > 1 and part[0] == ATTRIBUTE and isinstance(part[1], int):
        return {part[1]}
    return {number for item in part for number in attribute_ids(item)}


def aggregated_ids(part: Any) -> set[int]:
    """The ids of the attributes inside of aggregate calls."""
    if not isinstance(part, list):
        return set()
    if part and part[0] == AGGREGATE:
        return attribute_ids(part)
    return {number for item in part for number in aggregated_ids(item)}


def has_aggregates(part: Any) -> bool:
    """Whether an entry, or a list of entries, holds an aggregate call."""
    if not isinstance(part, list):
        return False
    return (part[:1] == [AGGREGATE] and len(part) > 1) or any(map(has_aggregates, part))


def queries_in(part: Any) -> Iterator[Node]:
    """The plans of all queries of EXISTS and IN that an entry, or a list of entries, holds."""
    if not isinstance(part, list):
        return
    if part[:2] == [SUBQUERY, "SUBQUERY"]:  # and not the escape character of LIKE
        yield part[4]
    for item in part:
        yield from queries_in(item)


# -- a whole plan ---------------------------------------------------------------------------------


def tables_outside(document: Document, answered: Collection[Path]) -> frozenset[str]:
    """Names of the tables that are read outside of the nodes at some paths.

    Args:
        document: The document.
        answered: The paths.
    """
    tables = tables_of(document)
    found = {table["name"] for table in tables if table.get("elsewhere")}
    found.update(tables[number]["name"] for number in _read(plan_of(document), (), answered))
    return frozenset(found)


def _read(node: Node, path: Path, answered: Collection[Path]) -> Iterator[int]:
    if path in answered:
        return
    number = table_number(node)
    if number is not None:
        yield number
    for query in queries_in(expressions(node)) if operator(node) == "Filter" else ():
        yield from _read(query, (), ())
    for index, below in enumerate(children(node)):
        yield from _read(below, (*path, index), answered)


def is_sorted_above(document: Document, path: Path) -> bool:
    """Whether what is at a path is the input of an ORDER BY without LIMIT, with nothing but
    projections between.

    Args:
        document: The document.
        path: Child numbers from the root.
    """
    node = plan_of(document)
    above = []
    for index in path:
        above.append(node)
        node = children(node)[index]
    rest = [n for n in reversed(above) if operator(n) != "Project"]
    limited = len(rest) > 1 and operator(rest[1]) in _LIMITS
    return bool(rest) and operator(rest[0]) == "Sort" and bool(sort_keys(rest[0])) and not limited
