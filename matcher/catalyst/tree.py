"""A select-project-join tree of a Catalyst plan, put together from its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from matcher.catalyst import document as doc
from matcher.catalyst.document import Entry, Node, Settings, entries_below
from matcher.catalyst.expand import expand_below
from matcher.catalyst.expr import Env, decode
from matcher.catalyst.subqueries import (
    SubqueryTest,
    subquery_test,
    without_distinct,
    written_conjuncts,
)
from matcher.model.errors import NotSupported
from matcher.model.expr import Col, Expr, conjuncts
from matcher.model.ir import Block, OuterJoin, Output, Relation, Side
from matcher.model.message import Arg, Message, Sql, TableName, Word
from matcher.model.reasons import ReasonCode
from matcher.model.types import FLOATS
from matcher.normalize.grouped_relations import AsRelation, as_relation
from matcher.normalize.in_subqueries import equal_to
from matcher.normalize.nested_aggregates import Below, merged, no_aggregates
from matcher.normalize.outer_joins import declared, null_supplied

SPJ: Final = frozenset({"Project", "Filter", "Join", "LogicalRelation"})
_INNER: Final = frozenset({"INNER", "CROSS"})
_OUTER: Final = {
    "LEFT OUTER": "left", "RIGHT OUTER": "right", "LEFT SEMI": "semi", "LEFT ANTI": "anti",
    "FULL OUTER": "full",
}  # fmt: skip
# They move whole rows between partitions, and leave them as they are.
MOVING: Final = frozenset({"Repartition", "RepartitionByExpression", "RebalancePartitions"})
SHOWN: Final[dict[str, str]] = {
    **dict.fromkeys(MOVING, "a repartitioning of rows"),
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Sort": "ORDER BY",
    "Union": "UNION",
    "Window": "a window function",
    "Generate": "a table-generating function",
    "Sample": "TABLESAMPLE",
    "Expand": "GROUPING SETS",
    "Aggregate": "an aggregation below",
    "WithCTE": "a shared CTE",
    "CTERelationRef": "a shared CTE",
    "InMemoryRelation": "data cached by Spark",
    "LocalRelation": "local data",
    "OneRowRelation": "no table",
    "Range": "a table-valued function",
    "LogicalRDD": "an RDD",
}


@dataclass(slots=True)
class Tree:
    """A select-project-join tree while it is put together.

    With `nested` one of its leaves may be an aggregation, which the block is to be merged with: its
    attributes stand for aggregates, and `below` says what it groups.

    `passed` are the operators that only move or order rows and change nothing here, for what is
    above looks at all rows together.
    """

    settings: Settings
    tables: list[dict[str, Any]]
    relations: list[Relation] = field(default_factory=list)
    columns: list[Col] = field(default_factory=list)
    predicates: list[Expr] = field(default_factory=list)
    outer: list[OuterJoin] = field(default_factory=list)
    nested: bool = False
    below: Below | None = None
    passed: frozenset[str] = frozenset()

    def add(self, node: Node) -> Env:
        """Takes in the subtree; the expressions of its output attributes by id."""
        kind: str = doc.operator(node)
        if kind == "Aggregate" and not doc.is_answered(node):
            return self._aggregation(node) if self.nested else self._groups(node)
        if kind in self.passed and not doc.is_answered(node):
            return self.add(doc.child(node))
        if kind not in SPJ or doc.is_answered(node):
            raise unsupported("{kind}", kind=Word(SHOWN.get(kind, kind)))
        if kind == "LogicalRelation":
            return self._relation(node)
        if kind == "Join":
            return self._join(node)
        below = self.add(doc.child(node))
        if kind == "Filter":
            self._filter(doc.condition(node), below)
            return below
        return {doc.id_of(i): tried(i, below, self.settings) for i in doc.expressions(node)}

    def _filter(self, condition: Entry, below: Env) -> None:
        """A filter's conjuncts; [NOT] EXISTS and [NOT] IN with a query as the joins that they are
        (Spark's RewritePredicateSubquery, which comes after the hook)."""
        for part in written_conjuncts(condition):
            test = subquery_test(part)
            if test is None:
                self.predicates.extend(conjuncts(decode(part, below, self.settings)))
            else:
                self._find(test, below)

    def _find(self, test: SubqueryTest, below: Env) -> None:
        first = len(self.relations), len(self.predicates), len(self.outer)
        known, before = len(self.columns), self.below
        query = without_distinct(test.query)
        try:
            found = self.add(query)
            if query is not test.query and len(self.outer) > first[2]:
                # rows of outer joins are none of a SEMI join's; groups of them are a relation
                del self.relations[first[0] :], self.predicates[first[1] :], self.outer[first[2] :]
                del self.columns[known:]
                query = test.query
                found = self.add(query)
        except NotSupported as error:
            raise NotSupported(
                ReasonCode(error.code),
                "{why}, in {test}",
                why=error.message,
                test=Sql(test.text),
            ) from error
        if self.below is not before or len(self.outer) > first[2]:
            raise unsupported(
                "{test}, whose tables are outer joined or grouped",
                test=Sql(test.text),
            )
        if not found.keys().isdisjoint(below):
            raise unsupported(
                "{test}, which reads the very columns of the query around it",
                test=Sql(test.text),
            )
        on = self.predicates[first[1] :]
        del self.predicates[first[1] :]
        both = {**below, **found}
        for condition in test.conditions:
            on.extend(conjuncts(decode(condition, both, self.settings)))
        if test.values is not None:
            left = [decode(value, below, self.settings) for value in test.values]
            on.extend(equal_to(left, self._shown(query, found, len(left)), test.negated))
        outer_tables = tuple(range(first[0], len(self.relations)))
        own = declared(self.columns, outer_tables)
        self.outer.append(
            OuterJoin("anti" if test.negated else "semi", outer_tables, tuple(on), own)
        )

    def _shown(self, query: Node, env: Env, count: int) -> list[Expr]:
        """The first `count` columns that a query puts out."""
        shown = [doc.attribute(doc.id_of(i), doc.name_of(i)) for i in items(query)[:count]]
        return [decode(item, env, self.settings) for item in shown]

    def _join(self, node: Node) -> Env:
        left, right = doc.children(node)
        kind = doc.join_kind(node) or ""
        if kind in _OUTER:
            return self._outer(node, _OUTER[kind])
        if kind not in _INNER:
            raise unsupported("{kind} JOIN", kind=Word(kind))
        env = {**self.add(left), **self.add(right)}
        for condition in doc.expressions(node):
            self.predicates.extend(conjuncts(decode(condition, env, self.settings)))
        return env

    def _aggregation(self, node: Node) -> Env:
        if self.below is not None:
            raise unsupported("two aggregations that are joined")
        first = len(self.relations)
        below = self.add(doc.child(node))
        keys = tuple(decode(key, below, self.settings) for key in doc.keys_of(node))
        if not keys:
            raise unsupported("an aggregation below without GROUP BY, which is one row")
        above = self.items_above(doc.expressions(node), below)
        self.check_nested(keys)
        self.below = Below(keys, range(first, len(self.relations)))
        return above

    def _groups(self, node: Node) -> Env:
        """The groups of an aggregation as one of the relations."""
        if expand_below(node) is not None:
            raise unsupported("GROUPING SETS")
        tree = Tree(self.settings, self.tables, passed=passed_below(node))
        env = tree.add(doc.child(node))
        keys = tuple(decode(key, env, self.settings) for key in doc.keys_of(node))
        shown = {doc.id_of(i): tried(i, env, self.settings) for i in doc.expressions(node)}
        outputs = (Output("", e) for e in shown.values() if not isinstance(e, NotSupported))
        relations, predicates = tuple(tree.relations), tuple(tree.predicates)
        block = Block(relations, predicates, tuple(outputs), keys, outer=tuple(tree.outer))
        found = as_relation(block, len(self.relations))
        self.relations.append(found.relation)
        self.predicates.extend(found.predicates)
        above = {key: _over(expr, found) for key, expr in shown.items()}
        self.columns.extend(c for c in above.values() if isinstance(c, Col))
        return above

    def items_above(self, written: list[Entry], below: Env) -> Env:
        """What an aggregation puts out, merged with the one below it if there is one."""
        found = {doc.id_of(item): tried(item, below, self.settings) for item in written}
        return found if self.below is None else {k: _merged(e) for k, e in found.items()}

    def check_nested(self, keys: Iterable[Expr] = ()) -> None:
        """Refuse conditions and group keys over aggregates of the level below."""
        if self.below is not None:
            no_aggregates(self.predicates, "a condition")
            no_aggregates((p for join in self.outer for p in join.conditions()), "a condition")
            no_aggregates(keys, "a GROUP BY key")

    def _not_grouped(self, before: Below | None, node: Node) -> None:
        """A row of the right side is there once for each partner: its groups would not be."""
        if self.below is not before:
            raise unsupported(
                "{kind} JOIN of other tables with an aggregation",
                kind=Word(doc.join_kind(node) or ""),
            )

    def _full(self, node: Node) -> Env:
        envs: list[Env] = []
        sides: list[Side] = []
        for child in doc.children(node):
            first = len(self.relations), len(self.predicates), len(self.outer)
            below = self.below
            envs.append(self.add(child))
            self._not_grouped(below, node)
            if len(self.outer) > first[2]:
                raise unsupported(
                    "{kind} JOIN of tables that are outer joined",
                    kind=Word(doc.join_kind(node) or ""),
                )
            rels = tuple(range(first[0], len(self.relations)))
            sides.append(Side(rels, tuple(self.predicates[first[1] :])))
            del self.predicates[first[1] :]
        both = {**envs[0], **envs[1]}
        on = [p for c in doc.expressions(node) for p in conjuncts(decode(c, both, self.settings))]
        outer_tables = (*sides[0].rels, *sides[1].rels)
        own = declared(self.columns, outer_tables)
        self.outer.append(OuterJoin("full", outer_tables, tuple(on), own, tuple(sides)))
        return {key: _nullable(expr) for key, expr in both.items()}

    def _outer(self, node: Node, kind: str) -> Env:
        if kind == "full":
            return self._full(node)
        envs: list[Env] = []
        outer_tables: tuple[int, ...] = ()
        on: list[Expr] = []
        for number, child in enumerate(doc.children(node)):
            first = len(self.relations), len(self.predicates), len(self.outer)
            below = self.below
            envs.append(self.add(child))
            if number == (0 if kind == "right" else 1):
                self._not_grouped(below, node)
                if len(self.outer) > first[2]:
                    raise unsupported(
                        "{kind} JOIN of tables that are outer joined",
                        kind=Word(doc.join_kind(node) or ""),
                    )
                outer_tables = tuple(range(first[0], len(self.relations)))
                on = self.predicates[first[1] :]
                del self.predicates[first[1] :]
        both = {**envs[0], **envs[1]}
        for condition in doc.expressions(node):
            on.extend(conjuncts(decode(condition, both, self.settings)))
        kept, given = (envs[1], envs[0]) if kind == "right" else (envs[0], envs[1])
        if kind == "right":
            kind = "left"
        self.outer.append(
            OuterJoin(kind, outer_tables, tuple(on), declared(self.columns, outer_tables))
        )
        if kind != "left":
            return kept
        return {**kept, **{key: _nullable(expr) for key, expr in given.items()}}

    def _relation(self, node: Node) -> Env:
        place = doc.table_number(node)
        assert place is not None
        table = self.tables[place]
        name = table["name"]
        if table["kind"] == "other":
            raise NotSupported(
                ReasonCode.UNSUPPORTED_RELATION,
                "{table} is not a table of files",
                table=TableName(name),
            )
        if table["kind"] == "managed":
            raise NotSupported(
                ReasonCode.UNSUPPORTED_RELATION,
                "the commits of {table} are managed by a catalog: its log does not tell how "
                "it stands",
                table=TableName(name),
            )
        if table["pinned"]:
            raise NotSupported(
                ReasonCode.UNSUPPORTED_RELATION,
                "the query asks for version {version} of {table}",
                version=Word(str(table["version"])),
                table=TableName(name),
            )
        number = len(self.relations)
        self.relations.append(Relation(table["location"], name))
        found = {
            doc.id_of(a): _column(number, doc.name_of(a), doc.attribute_type(a), doc.is_nullable(a))
            for a in doc.columns(node)
            if doc.tag(a) == doc.ATTRIBUTE
        }
        self.columns.extend(found.values())
        return dict(found)


# A table's columns are read by query after query.
_column = lru_cache(maxsize=16_384)(Col)


def _over(found: Expr | NotSupported, groups: AsRelation) -> Expr | NotSupported:
    try:
        return found if isinstance(found, NotSupported) else groups.over(found)
    except NotSupported as error:
        return error


def _merged(found: Expr | NotSupported) -> Expr | NotSupported:
    try:
        return found if isinstance(found, NotSupported) else merged(found)
    except NotSupported as error:
        return error


def _nullable(found: Expr | NotSupported) -> Expr | NotSupported:
    try:
        return found if isinstance(found, NotSupported) else null_supplied(found)
    except NotSupported as error:
        return error


def tried(item: Entry, env: Env, settings: Settings) -> Expr | NotSupported:
    """One output attribute, or why it is none: kept, not raised, for nobody may use it."""
    if doc.tag(item) == doc.ATTRIBUTE and doc.id_of(item) in env:  # most are only passed on
        return env[doc.id_of(item)]
    try:
        return decode(item, env, settings)
    except NotSupported as error:
        return error


def unsupported(template: str, /, **args: Arg) -> NotSupported:
    """The refusal of a block that holds an operator which is not matched."""
    what = Message(template, **args)
    return NotSupported(ReasonCode.UNSUPPORTED_OPERATOR, "the block holds {what}", what=what)


def passed_below(aggregation: Node) -> frozenset[str]:
    """The operators below an aggregation that only move or order rows, which its groups do not
    show: a sort is none where a call takes the first row or makes a list."""
    return MOVING | {"Sort"} if all(map(_ignores_order, doc.expressions(aggregation))) else MOVING


# As Spark's EliminateSorts has it, which comes after the hook.
_ORDER_FREE: Final = frozenset(
    {"Sum", "Average", "Count", "Min", "Max", "BitAndAgg", "BitOrAgg", "BitXorAgg"}
)


def _ignores_order(entry: Entry) -> bool:
    if doc.tag(entry) == doc.AGGREGATE:
        return doc.class_of(entry) in _ORDER_FREE and doc.type_of(entry) not in FLOATS
    return all(map(_ignores_order, entries_below(entry)))


def items(node: Node) -> list[Entry]:
    """What a node puts out, as named entries."""
    if doc.operator(node) in ("Project", "Aggregate"):
        return list(doc.expressions(node))
    if doc.operator(node) == "LogicalRelation":
        return list(doc.columns(node))
    children = doc.children(node)
    if doc.join_kind(node) in ("LEFT SEMI", "LEFT ANTI"):
        children = children[:1]
    return [item for child in children for item in map(_as_attribute, items(child))]


def _as_attribute(item: Entry) -> Entry:
    # Above the node that computes it, an output is known by its id alone.
    is_named = doc.tag(item) in doc.NAMED
    return doc.attribute(doc.id_of(item), doc.name_of(item)) if is_named else item
