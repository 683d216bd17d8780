"""The groups of a block below as a relation of the block around it.

`sales JOIN (SELECT item, SUM(qty) AS s FROM sales GROUP BY item) g ON …` reads two relations: a
table, and groups. The groups of a cache and of a query are the same relation if their *keys* are
equal, a digest of what is grouped, by what and under which conditions; so all that the matcher
knows of relations holds of them, too. They are compared in one form:

1. What the block below selects is no part of it. Each group key and each aggregate is a column,
   named by what it is, and what is computed from them is computed in the block around. So a query
   may ask for fewer aggregates than the cache, or for others of the same groups.
2. HAVING is a condition of the block around on these columns, and so is a condition in WHERE on
   group keys alone: it takes a group whole, or leaves it out whole. Spark pushes such conditions
   below the groups, and infers more of them from joins above.
3. Tables are in one order, equal columns have one representative, a condition that follows from the
   others is left out.

Everything else has to be the same: tables, kinds of joins, conditions, keys. Groups by finer keys
are other rows, and the block around may count or join them, so nothing is rolled up here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice, permutations, product
from typing import Any, Final

from matcher.model.budget import tick
from matcher.model.codec import encode_expr
from matcher.model.errors import NotSupported
from matcher.model.expr import (
    Agg,
    Col,
    Expr,
    Lit,
    aggregates,
    columns,
    conjuncts,
    is_constant,
    transform,
)
from matcher.model.ir import (
    Block,
    Groups,
    OuterJoin,
    Output,
    RecordPreservingJoin,
    Relation,
    base_tables,
)
from matcher.model.message import Arg, ColumnName, Message, Sql, Word
from matcher.model.reasons import ReasonCode
from matcher.model.types import FLOATS, is_blurred
from matcher.normalize.constant_joins import with_constant_joins
from matcher.normalize.outer_join_keys import OuterJoinKey, either_side, outer_join_keys
from matcher.normalize.outer_joins import renumbered
from matcher.normalize.relation_numbers import relabel
from matcher.normalize.simplify import simplified
from matcher.predicates.context import PredicateContext, column_equality
from matcher.predicates.domains import universe
from matcher.predicates.implication import implies
from matcher.predicates.negative_zeros import compares_minus_zero
from matcher.predicates.raising import may_raise
from matcher.render.select import readable

GROUPS: Final = "groups:"
# CTEs that read each other twice would double the tables with each
_MOST_TABLES: Final = 64
# Orders of tables that are read more than once
_MOST_ORDERS: Final = 24
_DIGITS: Final = 12
_MOST_SHOWN: Final = 60
_MOST_TOLD: Final = 200
# The same whichever way the rows come
_STABLE: Final = frozenset(
    {"count", "sum", "try_sum", "avg", "try_avg", "min", "max", "bit_and", "bit_or", "bit_xor"}
)
_ADDED_UP: Final = frozenset({"sum", "try_sum", "avg", "try_avg"})


@dataclass(frozen=True, slots=True)
class AsRelation:
    """What a block is to the block around it.

    Args:
        relation: Its groups.
        predicates: What is asked of them, over their columns.
        over: An expression over keys and aggregates of the block, as one over their columns.
    """

    relation: Relation
    predicates: tuple[Expr, ...]
    over: Callable[[Expr], Expr]


def as_relation(block: Block, number: int) -> AsRelation:
    """The groups of a block.

    Args:
        block: A block with groups, as it was read: not simplified, for what is asked of group keys
            is no part of it.
        number: The number of the relation in the block around.

    Raises:
        NotSupported: The block is no relation.
    """
    _refuse(block)
    block = with_constant_joins(block)
    keys = tuple(dict.fromkeys(block.group_keys or ()))
    parts = tuple(p for predicate in block.predicates for p in conjuncts(predicate))
    asked = [o.expr for o in block.outputs] + list(block.having)
    found = tuple(dict.fromkeys(agg for expr in asked for agg in aggregates(expr)))
    lifted = _on_keys(parts, keys, found)
    core = simplified(
        Block(
            block.relations,
            tuple(p for p in parts if p not in lifted),
            tuple(Output("", agg) for agg in found),
            group_keys=keys,
            outer=block.outer,
        )
    )
    form = min((_Form.of(core, order) for order in _orders(core)), key=lambda form: form.told)
    named = _Named(form, number)
    columns_of = {
        key: named.column(new) for key, new in zip(keys, core.group_keys or (), strict=True)
    }
    columns_of |= {agg: named.column(o.expr) for agg, o in zip(found, core.outputs, strict=True)}

    def over(expr: Expr) -> Expr:
        return _over(expr, columns_of)

    above = tuple(over(p) for p in lifted.values())
    above += tuple(part for h in block.having for part in conjuncts(over(h)))
    return AsRelation(named.relation(), above, over)


def unique_keys(relations: Iterable[Relation]) -> tuple[RecordPreservingJoin, ...]:
    """What is known of groups: whatever is joined to them by all of their keys finds one at most.

    Args:
        relations: Relations, of which tables are passed over.
    """
    found = {r.key: r for r in relations if r.groups is not None}
    return tuple(
        RecordPreservingJoin(
            f"GROUP BY {', '.join(readable(k.expr) for k in groups.keys) or '()'}",
            left="",
            right=key,
            keys=tuple(("", k.name) for k in groups.keys),
            finds_each=False,
        )
        for key, relation in found.items()
        if (groups := relation.groups) is not None
    )


def check_groups(block: Block) -> Block:
    """`block`, if nothing in it depends on how the groups below happened to be added up.

    The last digits of a FLOAT sum, and which row's value FIRST takes, are others each time that
    Spark works them out. They may be shown; where rows are joined, filtered, grouped or added up by
    them, other rows would come out.

    Raises:
        NotSupported: Something does.
    """
    unstable = {
        Col(rel, column.name, column.expr.type): column.expr
        for rel, relation in enumerate(block.relations)
        for column in (() if relation.groups is None else relation.groups.aggregates)
        if not _is_stable(column.expr)
    }
    if unstable:
        sums = [a for expr in block.shown() for a in aggregates(expr)]
        conditions = [p for join in block.outer for p in join.conditions()]
        for expr in (
            *block.predicates,
            *(block.group_keys or ()),
            *sums,
            *block.having,
            *conditions,
        ):
            for column in columns(expr):
                if column in unstable:
                    raise _unsupported(
                        "{what}, which may come out differently each time, in a condition, a group "
                        "key or an aggregate above its groups",
                        what=Sql(readable(unstable[column])),
                    )
    return block


def _is_stable(expr: Expr) -> bool:
    if not isinstance(expr, Agg):
        return True
    floats = any(arg.type in FLOATS for arg in expr.args)
    return expr.func in _STABLE and not (floats and expr.func in _ADDED_UP)


def _refuse(block: Block) -> None:
    keys = block.group_keys
    if keys is None:
        raise _unsupported("a subquery without groups")
    for clause, present in (
        ("GROUPING SETS", block.grouping_sets is not None),
        ("LIMIT", block.limit is not None or block.offset is not None),
    ):
        if present:
            raise _unsupported("an aggregation below with {clause}", clause=Word(clause))
    for key in keys:
        if is_constant(key):
            raise _unsupported("an aggregation below by a constant")
        if is_blurred(key.type):
            raise _unsupported(
                "an aggregation below by {key}, of type {type}, whose equal values may differ",
                key=ColumnName(readable(key)),
                type=Word(key.type),
            )
    for condition in (*block.predicates, *(p for join in block.outer for p in join.conditions())):
        if compares_minus_zero(condition):
            raise _unsupported(
                "an aggregation below where {condition}, which compares with -0.0",
                condition=Sql(readable(condition)),
            )
    if len(base_tables(block.relations)) > _MOST_TABLES:
        raise NotSupported(
            ReasonCode.QUERY_TOO_LARGE,
            "groups of groups that read more than {most} tables",
            most=Word(str(_MOST_TABLES)),
        )


def _on_keys(
    parts: tuple[Expr, ...], keys: tuple[Expr, ...], found: tuple[Agg, ...]
) -> dict[Expr, Expr]:
    """The conjuncts on group keys alone, each as it is said of the keys themselves.

    None where something that is worked out below may raise an error: a condition may be what keeps
    it from that. What joins two tables stays, as it is how they are joined.
    """
    key_set = frozenset(keys)
    if not keys:
        return {}
    context: PredicateContext | None = None
    lifted: dict[Expr, Expr] = {}
    for part in parts:
        if not columns(part) or may_raise(part, overflow=False) or len(_rels(part)) > 1:
            continue
        said = part
        if not _covered(said, key_set):
            context = context or PredicateContext(parts)
            said = _said_of_keys(part, keys, context)
        if _covered(said, key_set):
            lifted[part] = said
    rest = (*keys, *found, *(p for p in parts if p not in lifted))
    return {} if any(may_raise(expr, overflow=False) for expr in rest) else lifted


def _rels(expr: Expr) -> set[int]:
    return {c.rel for c in columns(expr)}


def _covered(expr: Expr, keys: frozenset[Expr]) -> bool:
    if expr in keys:
        return True
    return not isinstance(expr, Col) and all(_covered(child, keys) for child in expr.children)


def _said_of_keys(part: Expr, keys: tuple[Expr, ...], context: PredicateContext) -> Expr:
    """A condition with group keys in the place of columns that are equal to them."""
    equal = {member: key for key in keys if isinstance(key, Col) for member in context.members(key)}
    return transform(part, lambda e: equal.get(e) if isinstance(e, Col) else None)


def _orders(core: Block) -> Iterator[tuple[int, ...]]:
    """The orders in which the relations may be numbered: by their keys, those of one key by what is
    said of them; where nothing tells them apart, in each way."""
    keys = [relation.key for relation in core.relations]
    if len(set(keys)) == len(keys):
        yield tuple(sorted(range(len(keys)), key=lambda place: keys[place]))
        return
    places: dict[tuple[str, str], list[int]] = {}
    for place, key in enumerate(keys):
        told = _told_of(core, place) if keys.count(key) > 1 else ""
        places.setdefault((key, told), []).append(place)
    ways = [permutations(places[of]) for of in sorted(places)]
    for chosen in islice(product(*ways), _MOST_ORDERS):
        yield tuple(place for group in chosen for place in group)


def _told_of(core: Block, place: int) -> str:
    """What is said of one of several occurrences of a table, whatever numbers the others have."""

    def named(expr: Expr) -> Expr | None:
        if not isinstance(expr, Col):
            return None
        name = f"{core.relations[expr.rel].key} {expr.name}"
        return Col(int(expr.rel == place), name, expr.type)

    spell = PredicateContext(()).canonical
    conditions = [(p, "") for p in core.predicates] + [(k, "key ") for k in core.group_keys or ()]
    for join in core.outer:
        conditions += [(p, f"{join.kind} ") for p in join.conditions()]
    found = (
        f"{word}{_said(spell(transform(expr, named)))}"
        for expr, word in conditions
        if place in _rels(expr)
    )
    return " ".join(sorted(found))


@dataclass(frozen=True, slots=True)
class _Form:
    """A block with its relations in one order, and what it is as text."""

    core: Block
    order: tuple[int, ...]
    context: PredicateContext
    rels: tuple[int, ...]
    memo: dict[Expr, Expr]
    told: str

    @staticmethod
    def of(core: Block, order: tuple[int, ...]) -> _Form:
        tick()
        rels = tuple(order.index(place) for place in range(len(order)))
        memo = either_side(core.outer, rels, {})
        predicates = tuple(relabel(p, rels, memo) for p in core.predicates)
        context = PredicateContext(predicates)
        outer = outer_join_keys(core.outer, rels, memo)
        keys = [context.canonical(relabel(k, rels, memo)) for k in core.group_keys or ()]
        told = [
            [core.relations[place].key for place in order],
            sorted(
                sorted(_said(member) for member in members)
                for members in context.classes().values()
            ),
            _facts(predicates, context),
            sorted(set(map(_said, keys))),
            sorted(map(_said_join, outer)),
        ]
        return _Form(core, order, context, rels, memo, json.dumps(told))

    def placed(self, expr: Expr) -> Expr:
        return relabel(expr, self.rels, self.memo)


def _facts(predicates: tuple[Expr, ...], context: PredicateContext) -> list[str]:
    """What the conditions say besides that columns are equal: the values that operands may have,
    and what is left as it is. Of those that follow from others nothing is told."""
    equal = [p for p in predicates if column_equality(p) is not None]
    rest = sorted(
        {context.canonical(p) for p in predicates if column_equality(p) is None}, key=_said
    )
    left = list(rest)
    for part in rest:
        others = [p for p in left if p is not part]
        about = set(columns(part))
        if about and about.isdisjoint(c for p in others for c in columns(p)):
            continue  # said of columns that nothing else is said of
        if implies(PredicateContext((*equal, *others)), part):
            left = others
    said = PredicateContext((*equal, *left))
    found = {
        f"{_said(operand)} in {allowed!r}"
        for operand, allowed in said.domains.items()
        if allowed != universe(operand.type)
    }
    return sorted(found.union(map(_said, said.residuals)))


def _said_join(join: OuterJoinKey) -> str:
    sides = sorted([sorted(rels), sorted(map(_said, where))] for rels, where in join.sides)
    return json.dumps([join.kind, sorted(join.right), sorted(map(_said, join.on)), sides])


def _said(expr: Expr) -> str:
    """An expression as text, equal for equal ones alone; whatever is known of NULL in it."""
    return json.dumps(_without_nullability(encode_expr(expr)))


# Where the kinds of nodes of `encode_expr` keep whether they may be NULL.
_NULLABLE_AT: Final = {"c": 4, "f": 4, "a": 4}


def _without_nullability(data: Any) -> Any:
    if not isinstance(data, list) or not data:
        return data
    at = _NULLABLE_AT.get(data[0]) if isinstance(data[0], str) and len(data) > 4 else None
    return [0 if i == at else _without_nullability(part) for i, part in enumerate(data)]


class _Named:
    """The columns of groups, made as they are asked for."""

    def __init__(self, form: _Form, number: int) -> None:
        self._form: Final = form
        self._number: Final = number
        self._names: Final[dict[Expr, str]] = {}
        self._aggregates: Final[dict[str, Expr]] = {}
        self._keys: Final = {
            self._name(key): key for key in map(form.placed, form.core.group_keys or ())
        }

    def column(self, expr: Expr) -> Expr:
        """The column for a key or an aggregate of the block; itself if it became a constant."""
        if isinstance(expr, Lit):
            return expr
        placed = self._form.placed(expr)
        name = self._name(placed)
        if isinstance(placed, Agg):
            self._aggregates.setdefault(name, placed)
            return Col(self._number, name, expr.type, expr.nullable)
        context = self._form.context
        never_null = context.never_null(context.canonical(placed))
        return Col(self._number, name, expr.type, not never_null)

    def relation(self) -> Relation:
        """The groups, with the columns that were asked for."""
        form = self._form
        core = form.core
        relations = tuple(core.relations[place] for place in form.order)
        groups = Groups(
            relations,
            tuple(map(form.placed, core.predicates)),
            tuple(Output(name, key) for name, key in sorted(self._keys.items())),
            tuple(Output(name, agg) for name, agg in sorted(self._aggregates.items())),
            tuple(_placed_join(join, form) for join in core.outer),
        )
        digest = sha256(form.told.encode()).hexdigest()[:32]
        return Relation(f"{GROUPS}{digest}", _told(groups), groups)

    def _name(self, placed: Expr) -> str:
        canonical = self._form.context.canonical(placed)
        found = self._names.get(canonical)
        if found is None:
            digest = sha256(_said(canonical).encode()).hexdigest()[:_DIGITS]
            shown = readable(canonical).replace("`", "'")[:_MOST_SHOWN]
            found = self._names[canonical] = f"{shown} #{digest}"
        return found


def _told(groups: Groups) -> str:
    """What people are shown of groups."""
    text = ", ".join(relation.name for relation in groups.relations)
    if groups.predicates:
        text += f" WHERE {' AND '.join(map(readable, groups.predicates))}"
    if len(text) > _MOST_TOLD:
        text = f"{text[:_MOST_TOLD]} …"
    return f"({text} GROUP BY {', '.join(readable(k.expr) for k in groups.keys) or '()'})"


def _placed_join(join: OuterJoin, form: _Form) -> OuterJoin:
    # as their tables declare them, and not as a FULL join has them
    declared = (Col(form.rels[c.rel], c.name, c.type, c.nullable) for c in join.declared)
    moved = renumbered(join, form.placed, form.rels.__getitem__)
    return replace(moved, declared=tuple(declared))


def _over(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    def visit(node: Expr) -> Expr | None:
        found = known.get(node)
        if found is None and isinstance(node, (Agg, Col)):
            raise _unsupported(
                "{part}, which is neither a group key nor an aggregate of the aggregation below",
                part=Sql(readable(node)),
            )
        return found

    return transform(expr, visit)


def _unsupported(template: str, /, **args: Arg) -> NotSupported:
    what = Message(template, **args)
    return NotSupported(ReasonCode.UNSUPPORTED_OPERATOR, "the block holds {what}", what=what)
