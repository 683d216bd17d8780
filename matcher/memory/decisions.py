"""Decisions remembered by query shape, so that a dashboard's next parameter value is quick as well.

A shape is the block with its compared constants lifted: `d_year = 1993` and `d_year = 1997` are
one shape, `sum(x * 2)` and
`sum(x * 3)` are two. Which caches serve a shape still depends on the lifted constants where a
cache has constants in its own
predicates. So each shape keeps these predicates as tests, and the caches that were valid for each
combination of outcomes.
What is remembered is where to look: the caches are matched anew with the new constants. Only where
the constants cannot
have decided anything (a cache without constants of its own, a roll-up, each constant in one filter
of the rewrite and nowhere
else) is the earlier rewrite filled in with the new ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from matcher.memory.bounded import Changes, Remembered, Tables
from matcher.memory.constant_sensitivity import (
    decide_over_others,
    has_no_constants,
    misses_alike,
    order_of,
)
from matcher.model.expr import Call, Expr, Lit, columns, rebuild, walk
from matcher.model.ir import Block, Rewrite
from matcher.model.operators import COMPARES, TEXT_TESTS
from matcher.model.reasons import Reason
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import relabel
from matcher.predicates.context import PredicateContext
from matcher.predicates.implication import implies
from matcher.predicates.negative_zeros import is_minus_zero

_LOOK_AT_VALUES: Final = COMPARES | TEXT_TESTS
_CONNECTS: Final = frozenset(("and", "or", "not"))
_CAPACITY: Final = 1024
_MAX_TESTS: Final = 16
_MAX_OUTCOMES: Final = 64
# COUNT over nothing, and the guard of AVG: ours, in no query
_ZERO: Final = Lit(0, "bigint")


@dataclass(frozen=True, slots=True)
class Served:
    """A cache that was valid for a shape, and the rewrite to fill in with other constants if that
    is safe."""

    plan: PreparedPlan
    template: Rewrite | None
    slots: tuple[Lit, ...]
    may_join_tables: bool = False

    def filled(self, constants: tuple[Lit, ...]) -> Rewrite | None:
        """The rewrite with `constants` where the first query had its own; None if it must be
        matched."""
        if self.template is None:
            return None
        by_slot: dict[int, Expr] = {
            id(old): new for old, new in zip(self.slots, constants, strict=True)
        }
        filters = tuple(_filled(f, by_slot) for f in self.template.filters)
        guards = frozenset(_filled(g, by_slot) for g in self.template.guards)
        return replace(self.template, filters=filters, guards=guards)


def _filled(expr: Expr, by_slot: dict[int, Expr]) -> Expr:
    """`expr` with what stands in the slots, which are told apart by identity."""
    if not expr.children:
        return by_slot.get(id(expr), expr)
    return rebuild(expr, tuple([_filled(child, by_slot) for child in expr.children]))


class Seen:
    """What is known of one shape: the tests, and for each outcome the caches that were valid, best
    first; and what was said where none was, for constants that compare with each other alike."""

    __slots__ = ("_missed", "_outcomes", "_places", "_relations", "_relevant", "_tests", "_valid")

    def __init__(self, query: NormalQuery, tests: tuple[Expr, ...]) -> None:
        self._tests: Final = tests
        self._relations: Final = query.relations
        self._relevant: Final = _connected(query.predicates, tests)
        self._places: Final = _places(query.block.predicates, self._relevant)
        self._outcomes: dict[tuple[Lit, ...], tuple[bool, ...]] = {}
        self._valid: dict[tuple[bool, ...], tuple[tuple[Served, ...], bool]] = {}
        self._missed: dict[object, tuple[Reason, ...]] = {}

    def missed(self, block: Block, constants: tuple[Lit, ...]) -> tuple[Reason, ...] | None:
        """Why no cache serves such constants, if that is known."""
        return self._missed.get(_as_told(block, constants)) if self._missed else None

    def add_miss(
        self, block: Block, constants: tuple[Lit, ...], reasons: tuple[Reason, ...]
    ) -> None:
        """Remember that no cache serves constants like these."""
        if len(self._missed) >= _MAX_OUTCOMES:
            self._missed = {}
        self._missed[_as_told(block, constants)] = reasons

    def served(self, block: Block, constants: tuple[Lit, ...]) -> tuple[tuple[Served, ...], bool]:
        """The caches to try, none when such constants were not seen yet or nothing served them;
        and if those are among them that must be joined with a table."""
        return self._valid.get(self._outcome(block, constants), ((), False))

    def add(
        self,
        block: Block,
        constants: tuple[Lit, ...],
        served: tuple[Served, ...],
        tried_joining: bool,
    ) -> None:
        """Remember the caches valid for constants like the block's."""
        self._valid[self._outcome(block, constants)] = served, tried_joining

    def _outcome(self, block: Block, constants: tuple[Lit, ...]) -> tuple[bool, ...]:
        if not self._tests:
            return ()
        asked = tuple(constants[i] for i in self._places)
        found = self._outcomes.get(asked)
        if found is None:
            memo: dict[Expr, Expr] = {}
            predicates = [block.predicates[i] for i in self._relevant]
            context = PredicateContext(relabel(p, self._relations, memo) for p in predicates)
            found = tuple(implies(context, test) for test in self._tests)
            if len(self._outcomes) >= _MAX_OUTCOMES:
                self._outcomes = {}
            self._outcomes[asked] = found
        return found


def _as_told(block: Block, constants: tuple[Lit, ...]) -> object:
    """What reasons of a shape differ by: how its constants compare, and its tables' names."""
    return order_of(constants), tuple(relation.name for relation in block.relations)


def _places(predicates: tuple[Expr, ...], relevant: tuple[int, ...]) -> tuple[int, ...]:
    """Which of the lifted constants stand in the relevant predicates."""
    found: list[int] = []
    start = 0
    for number, predicate in enumerate(predicates):
        lifted: list[Lit] = []
        _lift(predicate, [], lifted)
        if number in relevant:
            found += range(start, start + len(lifted))
        start += len(lifted)
    return tuple(found)


def _connected(predicates: tuple[Expr, ...], tests: tuple[Expr, ...]) -> tuple[int, ...]:
    """The places of the predicates that can have a say in the tests: those about their columns,
    about columns compared with these, and so on."""
    if not tests:
        return ()
    reached = {column for test in tests for column in columns(test)}
    left = {i: frozenset(columns(p)) for i, p in enumerate(predicates)}
    found: list[int] = []
    while near := [i for i, named in left.items() if not named or not named.isdisjoint(reached)]:
        for i in near:
            reached |= left.pop(i)
        found += near
    return tuple(sorted(found))


class Shapes:
    """What is known of shapes, as long as it holds.

    Args:
        changes: Of the registry.
    """

    __slots__ = ("_seen",)

    def __init__(self, changes: Changes) -> None:
        self._seen: Final[Remembered[Seen]] = Remembered(changes, _CAPACITY)

    def get(self, shape: object, tables: Tables) -> Seen | None:
        """What is known of `shape`, if anything."""
        return self._seen.get(shape, tables)

    def put(
        self,
        shape: object,
        since: int,
        query: NormalQuery,
        constants: tuple[Lit, ...],
        proposed: tuple[PreparedPlan, ...],
        valid: list[tuple[Rewrite, PreparedPlan]],
        *,
        tried_joining: bool = False,
        reasons: tuple[Reason, ...] = (),
    ) -> None:
        """Remember that of the `proposed` caches the `valid` ones serve a query of that shape.

        Args:
            shape: The shape, and what else the decision goes by.
            since: `Changes.now` of before they were proposed.
            query: The query.
            constants: Its lifted constants.
            proposed: The caches that were looked at.
            valid: Those that serve, best first.
            tried_joining: Whether those were looked at that must be joined with a table.
            reasons: Why none serves.
        """
        tests = dict.fromkeys(t for plan in proposed for t in plan.literal_predicates)
        if len(tests) > _MAX_TESTS:
            return
        tables = tables_of(query.block)
        seen = self._seen.keep(shape, tables, since, lambda: Seen(query, tuple(tests)))
        if seen is None:
            return
        if not valid and misses_alike(query, constants, proposed, reasons):
            seen.add_miss(query.block, constants, reasons)
        else:
            found = tuple(served(r, plan, query, constants) for r, plan in valid)
            seen.add(query.block, constants, found, tried_joining)

    def forget(self) -> None:
        """Drop all that is known."""
        self._seen.forget()


def tables_of(block: Block) -> Tables:
    """The keys of the base tables that a block reads."""
    return tuple(table.key for table in block.tables)


def served(
    rewrite: Rewrite, plan: PreparedPlan, query: NormalQuery, constants: tuple[Lit, ...]
) -> Served:
    """A rewrite to remember, with itself as the template where other constants can be filled in."""
    safe = (
        not plan.outer_joins
        and not query.outer_joins
        and has_no_constants(plan)
        and not rewrite.by_constants
        and not _relies_on_pins(rewrite, query)
        and _each_once(constants, rewrite)
        and not decide_over_others(query.block.predicates)
    )
    return Served(plan, rewrite if safe else None, constants, bool(rewrite.extra))


def _relies_on_pins(rewrite: Rewrite, query: NormalQuery) -> bool:
    """True if the values of constants may have decided the groups, or stand in the outputs."""
    if rewrite.group_keys is None and query.group_keys and rewrite.groups_by_constants:
        return True
    own = {id(node) for expr in query.expressions() for node in walk(expr)}
    shown = [o.expr for o in rewrite.outputs] + list(rewrite.group_keys or ())
    shown += [*rewrite.having, *(k.expr for k in rewrite.order_by)]
    return any(
        isinstance(node, Lit) and id(node) not in own and node != _ZERO
        for expr in shown
        for node in walk(expr)
    )


def _each_once(constants: tuple[Lit, ...], rewrite: Rewrite) -> bool:
    """Every lifted constant is compared in exactly one place of the filters, and nowhere else.

    One that is missing was in a condition that the cache guarantees, which other constants may not
    be.
    """
    places: dict[int, int] = {id(c): 0 for c in constants}
    if len(places) < len(constants):
        return False
    for expr in rewrite.filters:
        for node in walk(expr):
            if id(node) in places:
                places[id(node)] += 1
    rest = [o.expr for o in rewrite.outputs] + [*rewrite.having, *(rewrite.group_keys or ())]
    elsewhere = any(id(node) in places for expr in rest for node in walk(expr))
    return not elsewhere and all(count == 1 for count in places.values())


def shape_of(block: Block) -> tuple[object, tuple[Lit, ...]]:
    """The shape, equal for blocks that differ in compared constants only, and these constants in
    order."""
    constants: list[Lit] = []
    parts: list[object] = [tuple(r.key for r in block.relations), block.grouping_sets, block.limit]
    parts += [block.offset, block.group_keys is None, block.outer, len(block.predicates)]
    for predicate in block.predicates:
        _lift(predicate, parts, constants)
    parts += block.group_keys or ()
    for output in block.outputs:
        parts += (output.name, output.expr)
    parts += block.having
    for key in block.order_by:
        parts += (key.expr, key.ascending, key.nulls_first)
    return tuple(parts), tuple(constants)


def _lift(predicate: Expr, parts: list[object], constants: list[Lit]) -> None:
    """Append `predicate` with the constants that it compares with replaced by their types."""
    if not isinstance(predicate, Call):
        parts.append(predicate)
        return
    parts += (predicate.op, len(predicate.args), predicate.params)
    if predicate.op in _CONNECTS:
        for arg in predicate.args:
            _lift(arg, parts, constants)
        return
    for arg in predicate.args:
        if predicate.op in _LOOK_AT_VALUES and isinstance(arg, Lit) and _is_free(arg):
            parts.append(arg.type)
            constants.append(arg)
        else:
            parts.append(arg)


def _is_free(constant: Lit) -> bool:
    """True if another constant may stand there: NULL decides what a comparison is, and no cache
    answers one with -0.0."""
    return constant.value is not None and not is_minus_zero(constant)
