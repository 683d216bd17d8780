"""One SELECT of the text door as a block: predicates, outputs and names, groups, HAVING, ORDER BY.

Every clause is tried; what cannot be taken is noted as a reason, and the block is then refused with
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from sqlglot import exp

from matcher.model.errors import InputCode, NotSupported, SqlInputError
from matcher.model.expr import (
    Agg,
    Call,
    Col,
    Expr,
    Lit,
    aggregates,
    columns,
    conjuncts,
    transform,
    walk,
)
from matcher.model.ir import Block, OuterJoin, Output, Relation, SortKey
from matcher.model.message import Arg, ColumnName, Sql, Word
from matcher.model.numbers import whole_number
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.model.tree_size import TreeSize
from matcher.normalize.grouped_relations import check_groups
from matcher.normalize.simplify import simplified
from matcher.sql.expressions.expr import ExprBuilder, written_conjuncts
from matcher.sql.expressions.scope import (
    UNKNOWN_REL,
    Scope,
    field_of,
    no_field,
    parts_of,
    unsupported,
)
from matcher.sql.expressions.types import UNKNOWN, TextSettings
from matcher.sql.from_clause import FromClause
from matcher.sql.group import read_groups
from matcher.sql.merge import merged
from matcher.sql.subqueries import as_join, subquery_test

_KNOWN_CLAUSES: Final = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
     "distinct", "with_", "hint", "laterals"}
)  # fmt: skip
_PRINTED: Final[dict[type[exp.Expr], str]] = {
    exp.Sum: "sum", exp.Count: "count", exp.Min: "min", exp.Max: "max", exp.Avg: "avg",
}  # fmt: skip
T = TypeVar("T")


@dataclass(slots=True)
class Item:
    """One column of the select list; `name` is None where Spark would make one up from the
    expression's text. `given` is false of a column without an alias."""

    name: str | None
    expr: Expr
    given: bool = True


@dataclass(slots=True)
class SelectReader:
    """Reads the clauses of one SELECT whose FROM is read already.

    `joined` holds the identities of the subqueries in WHERE that are joins of the block, `written`
    the block before it is simplified, `size` how large what was read so far is.
    """

    select: exp.Select
    scope: Scope
    settings: TextSettings
    reasons: list[Reason] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    keys: tuple[Expr, ...] | None = None
    key_names: dict[Expr, str] = field(default_factory=dict)
    sets: tuple[tuple[int, ...], ...] | None = None
    joined: set[int] = field(default_factory=set)
    written: Block | None = None
    size: TreeSize = field(default_factory=TreeSize)

    def read(self, clause: FromClause) -> Block:
        """The block; of use only if `reasons` stays empty.

        Raises:
            SqlInputError: a name that nothing in scope has, or a column that is neither grouped
            nor aggregated.
        """
        for key, value in self.select.args.items():
            if value and key not in _KNOWN_CLAUSES:
                word = key.rstrip("_").replace("_", " ").upper()
                self._refuse(
                    ReasonCode.UNSUPPORTED_OPERATOR,
                    "clause {clause}",
                    clause=Word(word),
                )
        relations, outer, predicates = clause.relations[:], clause.outer[:], clause.predicates[:]
        for part in self._read_where(clause, relations):
            if isinstance(part, OuterJoin):
                outer.append(part)
            else:
                predicates.append(part)
        self._read_items()
        self._try(self._read_groups)
        having_node = self.select.args.get("having")
        having: tuple[Expr, ...] = ()
        if having_node is not None:
            found = self._try(lambda: self._tail_builder(having=True).predicate(having_node.this))
            below, having = self._split_having(conjuncts(found) if found is not None else ())
            predicates += below
        order = self._read_order()
        self._read_distinct(order)
        block = Block(
            relations=tuple(relations),
            predicates=tuple(predicates),
            outputs=tuple(Output(i.name or "", i.expr) for i in self.items),
            group_keys=self.keys,
            grouping_sets=self.sets,
            having=having,
            order_by=order,
            limit=self._count("limit"),
            offset=self._count("offset"),
            outer=tuple(outer),
        )
        if not self.reasons and not clause.reasons:
            block = self._try(lambda: self._check_grouping(block)) or block
            read = self.written = block
            block = self._try(lambda: simplified(check_groups(read))) or block
        return block

    def over_groups(self, block: Block, groups: tuple[int, Block]) -> Block | None:
        """`block`, as `read` returned it, and the aggregating subquery that it reads as one; None
        where they stay two."""
        checked = self._try(lambda: self._check_grouping(block))
        found = merged(checked, groups[1], groups[0]) if checked is not None else None
        if found is None:
            return None
        self.written = found
        return self._try(lambda: simplified(check_groups(found)))

    def _refuse(self, code: ReasonCode, template: str, /, **args: Arg) -> None:
        self.reasons.append(not_taken(code, template, **args))

    def _try(self, step: Callable[[], T]) -> T | None:
        try:
            found = step()
            if isinstance(found, Expr):
                self.size.add(found)  # before anything walks it
            return found
        except NotSupported as error:
            self.reasons.append(error.reason)
            return None

    # -- WHERE ------------------------------------------------------------------------------------

    def _read_where(
        self, clause: FromClause, relations: list[Relation]
    ) -> Iterator[Expr | OuterJoin]:
        """Its predicates, and the joins that subqueries in it are, whose tables are added to
        `relations`."""
        where = self.select.args.get("where")
        if where is None:
            return
        parts = [(part, subquery_test(part)) for part in written_conjuncts(where.this)]
        rest = [part for part, test in parts if test is None]
        if rest:
            found = self._try(lambda: ExprBuilder(self.scope, self.settings).all_of(rest))
            yield from conjuncts(found) if found is not None else ()
        for test in (test for _, test in parts if test is not None):
            join = self._try(partial(as_join, test, clause, relations, self.settings))
            if join is not None:
                self.joined.add(id(test.select))
                yield join

    # -- the select list --------------------------------------------------------------------------

    def _read_items(self) -> None:
        builder = ExprBuilder(self.scope, self.settings, aggregates=True, alias=self._lateral)
        for node in self.select.expressions:
            if isinstance(node, exp.Star) or (
                isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
            ):
                self._try(partial(self._star, node))
                continue
            expr = self._try(partial(builder.build, node))
            name = _output_name(node, expr)
            if expr is None:
                expr = Col(UNKNOWN_REL, name or "", UNKNOWN)
            self.items.append(Item(name, expr, not isinstance(node, exp.Column)))

    def _star(self, node: exp.Expr) -> None:
        star = node if isinstance(node, exp.Star) else node.this
        if any(v for k, v in star.args.items() if k != "except_"):
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION, "{sql}", sql=Sql(node.sql("spark"))
            )
        qualifier = parts_of(node)[:-1] if isinstance(node, exp.Column) else ()
        dropped = {c.name.lower() for c in star.args.get("except_") or ()}
        for column in self.scope.star(qualifier):
            if column.name.lower() not in dropped:
                expr = self._try(column.named)
                if expr is None:  # the query around may name it all the same
                    expr = Col(UNKNOWN_REL, column.name, column.expr.type)
                # a column of a subquery that Spark has made up a name for
                self.items.append(Item(column.name or None, expr, given=False))

    def _lateral(self, node: exp.Column, inside: bool) -> Expr | None:
        """An alias given earlier in the same select list, where no input column has the name."""
        return None if self.scope.has(*parts_of(node)) else self._aliased(node)

    def _aliased(self, node: exp.Column) -> Expr | None:
        name, *fields = parts_of(node)
        lower = name.lower()
        found = [i.expr for i in self.items if i.name is not None and i.name.lower() == lower]
        if not found or (fields and not _may_be_struct(found[0])):
            return None
        if any(f != found[0] for f in found[1:]):
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "{name} names two columns of the SELECT",
                name=ColumnName(name),
            )
        expr = field_of(found[0], fields)
        if expr is None:
            raise no_field(found[0], parts_of(node), 1)
        return expr

    # -- groups -----------------------------------------------------------------------------------

    def _read_groups(self) -> None:
        group = self.select.args.get("group")
        aggregated = any(aggregates(i.expr) for i in self.items)
        if group is None:
            if aggregated or self.select.args.get("having") is not None:
                self.keys = ()
            return
        if group.args.get("all"):
            self.keys = self._all_keys()
            return
        self.keys, self.sets = read_groups(group, self._key)
        if self.sets == ((),) and not self.keys:
            if not self.settings.is_since(4, 2):
                raise unsupported(ReasonCode.UNSUPPORTED_OPERATOR, self._set_without_keys())
            self.sets = None  # to Spark that is an aggregation without keys, which has one row
        for item in self.items if self.sets is not None else ():
            if not item.given:  # to Spark it is the key, by the name that the key was written by
                item.name = self.key_names.get(item.expr, item.name)
        if self.sets is None:
            # constants do not group; without any other key they still make it a GROUP BY
            real = tuple(k for k in self.keys if not isinstance(k, Lit))
            self.keys = real or self.keys[:1]

    def _set_without_keys(self) -> str:
        if self.settings.spark is not None:
            return "GROUPING SETS (()) alone, which over no rows has no row before Spark 4.2"
        return (
            "GROUPING SETS (()) alone, which over no rows has one row since Spark 4.2, and none "
            "before: say which Spark runs it by spark.cachemgr.sparkVersion"
        )

    def _key(self, node: exp.Expr) -> Expr:
        if isinstance(node, exp.Paren):
            return self._key(node.this)
        found = self._ordinal(node, "GROUP BY")
        if found is None:
            builder = ExprBuilder(self.scope, self.settings, alias=self._lateral)
            found = builder.build(node)
            self.size.add(found)
            if isinstance(node, exp.Column):
                self.key_names.setdefault(found, node.name)
        if aggregates(found):
            raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "GROUP BY an aggregate")
        return found

    def _ordinal(self, node: exp.Expr, clause: str) -> Expr | None:
        if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
            return None
        number = whole_number(node.name)
        if number is None or not 1 <= number <= len(self.items):
            raise SqlInputError(
                InputCode.POSITION_OUT_OF_RANGE,
                f"{clause} {node.name[:20]}: the SELECT has {len(self.items)} columns",
            )
        return self.items[number - 1].expr

    def _all_keys(self) -> tuple[Expr, ...]:
        plain = [i.expr for i in self.items if not aggregates(i.expr)]
        keys = [e for e in plain if not isinstance(e, Lit)]
        for item in self.items:
            keys += [c for c in _uncovered(item.expr, tuple(keys)) if isinstance(c, Col)]
        if not keys and plain:
            keys = plain[:1]
        return tuple(dict.fromkeys(keys))

    # -- HAVING, ORDER BY, DISTINCT, LIMIT --------------------------------------------------------

    def _tail_builder(self, having: bool = False) -> ExprBuilder:
        def names(node: exp.Column, inside: bool) -> Expr | None:
            alias = self._aliased(node)
            if alias is not None and len(node.parts) > 1:
                return self._sole(node, alias)
            if alias is None or not self.scope.has(node.name):
                return alias
            column = self.scope.resolve(node)
            if column == alias:
                return alias
            usable = not aggregates(alias) if inside else self.keys is None or column in self.keys
            if inside and not usable:
                return column
            if (having or inside) and usable:
                raise unsupported(
                    ReasonCode.UNSUPPORTED_EXPRESSION,
                    "{column} is a column and an alias: put the table's name before it",
                    column=ColumnName(node.name),
                )
            return alias

        return ExprBuilder(self.scope, self.settings, self.keys is not None, names)

    def _sole(self, node: exp.Column, alias: Expr) -> Expr:
        """The field of an alias, where no column or field in FROM has the name too."""
        parts = parts_of(node)
        if self.scope.has(*parts) and self.scope.resolve(node) != alias:
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "{name} is of a column and of an alias: give the alias another name",
                name=ColumnName(".".join(parts)),
            )
        return alias

    def _split_having(self, having: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Conditions on group keys alone go below the groups, as Spark's
        PushPredicateThroughNonJoin puts them; not below the one row of a global aggregate, and
        not below GROUPING SETS, where a key may be missing."""
        if not self.keys or self.sets is not None:
            return (), having
        keys = self.keys
        below = tuple(
            h for h in having
            if columns(h) and not aggregates(h) and not any(
                isinstance(left, Col) for left in _uncovered(h, keys)
            )
        )  # fmt: skip
        return below, tuple(h for h in having if h not in below)

    def _read_order(self) -> tuple[SortKey, ...]:
        order = self.select.args.get("order")
        result: list[SortKey] = []
        for node in order.expressions if order is not None else ():
            inner = node.this if isinstance(node, exp.Ordered) else node
            down = bool(node.args.get("desc"))
            first = bool(node.args.get("nulls_first"))
            if isinstance(inner, exp.Var) and inner.name.upper() == "ALL":
                result += [SortKey(i.expr, not down, first) for i in self.items]
                continue
            expr = self._try(partial(self._order_key, inner))
            if expr is not None:
                result.append(SortKey(expr, not down, first))
        return tuple(result)

    def _order_key(self, node: exp.Expr) -> Expr:
        return self._ordinal(node, "ORDER BY") or self._tail_builder().build(node)

    def _read_distinct(self, order: tuple[SortKey, ...]) -> None:
        distinct = self.select.args.get("distinct")
        if distinct is None:
            return
        if distinct.args.get("on") is not None:
            self._refuse(ReasonCode.UNSUPPORTED_OPERATOR, "DISTINCT ON")
        outputs = tuple(dict.fromkeys(i.expr for i in self.items))
        if self.keys is None:
            self.keys = tuple(e for e in outputs if not isinstance(e, Lit)) or outputs[:1]
        elif self.sets is not None or any(k not in outputs for k in self.keys):
            # with all keys shown each group is a row of its own, and DISTINCT changes nothing
            self._refuse(ReasonCode.UNSUPPORTED_OPERATOR, "DISTINCT on top of GROUP BY")

    def _count(self, key: str) -> int | None:
        node = self.select.args.get(key)
        if node is None:
            return None
        value = node.args.get("expression")
        if isinstance(value, exp.Var) and value.name.upper() == "ALL":
            return None
        expr = None
        if value is not None:
            expr = self._try(lambda: ExprBuilder(Scope(""), self.settings).build(value))
        if isinstance(expr, Lit) and isinstance(expr.value, int) and expr.value >= 0:
            return expr.value
        self._refuse(
            ReasonCode.UNSUPPORTED_OPERATOR,
            "{clause} that is not a whole number",
            clause=Word(key.upper()),
        )
        return None

    # -- checks -----------------------------------------------------------------------------------

    def _check_grouping(self, block: Block) -> Block:
        keys = block.group_keys
        if keys is None:
            return block

        def number(expr: Expr) -> Expr | None:
            if expr in keys or isinstance(expr, Agg):
                return expr
            if not isinstance(expr, Call) or expr.op not in ("grouping_id", "grouping"):
                return None
            if expr.op == "grouping":
                if block.grouping_sets is None or expr.args[0] not in keys:
                    raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "GROUPING of no key")
                place = str(keys.index(expr.args[0]))
                return Call("grouping", (), "tinyint", False, (place,))
            if block.grouping_sets is None or expr.args not in ((), keys):
                raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "GROUPING_ID of some keys")
            return Call("grouping_id", (), "bigint", False)

        numbered = block.map_shown(lambda expr: transform(expr, number))
        for expr in numbered.shown():
            for left in _uncovered(expr, keys):
                if isinstance(left, Col):
                    raise SqlInputError(
                        InputCode.MISSING_AGGREGATION,
                        f"column {left.name} is neither in GROUP BY nor inside an aggregate: "
                        "add it to GROUP BY, or aggregate it",
                    )
        return numbered


def _uncovered(expr: Expr, keys: tuple[Expr, ...]) -> list[Expr]:
    """Columns outside of group keys and aggregate calls."""
    if expr in keys or isinstance(expr, Agg):
        return []
    if isinstance(expr, Col):
        return [expr]
    return [left for child in expr.children for left in _uncovered(child, keys)]


def is_plain(block: Block) -> bool:
    """True for select-project-join alone, which merges into the query around it."""
    return (
        block.group_keys is None
        and not block.having
        and not block.order_by
        and block.limit is None
        and block.offset is None
        and not any(isinstance(n, Agg) for o in block.outputs for n in walk(o.expr))
    )


def why_not_plain(block: Block) -> str:
    """What keeps a block from merging, for a miss reason."""
    if block.group_keys is not None:
        return "aggregates: it is a block of its own"
    if block.limit is not None or block.offset is not None:
        return "has LIMIT: it is a block of its own"
    return "has ORDER BY: it is a block of its own"


def _may_be_struct(expr: Expr) -> bool:
    return expr.type.startswith("struct") or expr.type == UNKNOWN


def _output_name(node: exp.Expr, expr: Expr | None) -> str | None:
    """The name that Spark gives an output, None where that depends on how it prints the expression.

    Certain are aliases, columns, fields, and the plain aggregates of one column.
    """
    if isinstance(node, exp.Alias):
        return node.alias
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return node.name
    word = _PRINTED.get(type(node))
    if word is None:
        return None
    if isinstance(node.this, exp.Star):
        return "count(1)" if word == "count" else None
    extra = any(v for k, v in node.args.items() if k not in ("this", "big_int"))
    plain = isinstance(node.this, exp.Column) and not isinstance(node.this.this, exp.Star)
    if isinstance(expr, Agg) and any(isinstance(a, Call) and a.op == "field" for a in expr.args):
        return None
    return f"{word}({node.this.name})" if plain and not extra else None
