"""Decisions remembered by query shape, so that a dashboard's next parameter value is quick as well.

A shape is the block with its compared constants lifted: `d_year = 1993` and `d_year = 1997` are
one shape, `sum(x * 2)` and
`sum(x * 3)` are two. Which caches serve a shape still depends on the lifted constants where a
cache has constants in its own
predicates. So each shape keeps these predicates as tests, and the caches that were valid for each
combination of outcomes.
What is remembered is only where to look: the caches are matched anew with the new constants, so
memory never makes a
wrong rewrite, and a cache that turns out not to serve sends the query back to the index.
"""

from __future__ import annotations

from typing import Final

from matcher.expr import Call, Expr, Lit
from matcher.ir import Block
from matcher.normal_form import NormalQuery, PreparedPlan

_COMPARES: Final = frozenset("eq ne lt le gt ge nseq in like startswith endswith contains".split())
_CONNECTS: Final = frozenset(("and", "or", "not"))
_CAPACITY: Final = 4096
_MAX_TESTS: Final = 16


class Seen:
    """What is known of one shape: the tests, and for each outcome the caches that were valid, best
    first."""

    __slots__ = ("_tests", "_valid")

    def __init__(self, tests: tuple[Expr, ...]) -> None:
        self._tests = tests
        self._valid: dict[tuple[bool, ...], tuple[PreparedPlan, ...]] = {}

    def plans_for(self, query: NormalQuery) -> tuple[PreparedPlan, ...]:
        """The caches to try; none when such constants were not seen yet or nothing served them."""
        return self._valid.get(self._outcome(query), ())

    def add(self, query: NormalQuery, plans: tuple[PreparedPlan, ...]) -> None:
        """Remember the caches valid for constants like the query's."""
        self._valid[self._outcome(query)] = plans

    def _outcome(self, query: NormalQuery) -> tuple[bool, ...]:
        context = query.context()
        return tuple(context.implies(test) for test in self._tests)


class Shapes:
    """A bounded map from shape to `Seen`; the oldest shapes make room. Replaced whole when the
    registry changes."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[object, Seen] = {}

    def get(self, shape: object) -> Seen | None:
        """What is known of `shape`, if anything."""
        return self._seen.get(shape)

    def put(
        self,
        shape: object,
        query: NormalQuery,
        proposed: tuple[PreparedPlan, ...],
        valid: tuple[PreparedPlan, ...],
    ) -> None:
        """Remember that of the `proposed` caches those in `valid` serve a query of that shape."""
        seen = self._seen.get(shape)
        if seen is None:
            tests = dict.fromkeys(t for plan in proposed for t in plan.literal_predicates)
            if len(tests) > _MAX_TESTS:
                return
            seen = Seen(tuple(tests))
            while len(self._seen) >= _CAPACITY:
                self._seen.pop(next(iter(self._seen)), None)
            self._seen[shape] = seen
        seen.add(query, valid)


def shape_of(block: Block) -> object:
    """A hashable value that is equal for blocks which differ in compared constants only."""
    parts: list[object] = [tuple(r.key for r in block.relations), block.grouping_sets, block.limit]
    parts += [block.offset, block.group_keys is None, len(block.predicates)]
    for predicate in block.predicates:
        _lift(predicate, parts)
    parts += block.group_keys or ()
    for output in block.outputs:
        parts += (output.name, output.expr)
    for condition in block.having:
        _lift(condition, parts)
    for key in block.order_by:
        parts += (key.expr, key.ascending, key.nulls_first)
    return tuple(parts)


def _lift(predicate: Expr, parts: list[object]) -> None:
    """Append `predicate` with the constants that it compares with replaced by their types."""
    if not isinstance(predicate, Call):
        parts.append(predicate)
        return
    parts += (predicate.op, len(predicate.args), predicate.params)
    if predicate.op in _CONNECTS:
        for arg in predicate.args:
            _lift(arg, parts)
        return
    for arg in predicate.args:
        lifted = predicate.op in _COMPARES and isinstance(arg, Lit) and arg.value is not None
        parts.append(arg.type if lifted else arg)
