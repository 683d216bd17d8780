"""What the caches nearest to a query said to one of its shape, so that the next one need not ask
them all again.

As with decisions (`matcher.memory.decisions`), this is remembered only where other constants cannot change
it: of caches without constants of their own, rewrites that are filled in, and refusals that quote
none. How the query's constants compare with each other is part of the shape here: `a >= 1 AND
a <= 1` leaves one value, as `a = 1` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from matcher.memory.constant_sensitivity import answers_alike, quotes
from matcher.memory.decisions import Served, served
from matcher.model.expr import Lit
from matcher.model.ir import MatchOptions, Miss, Rewrite
from matcher.normalize.normal_form import NormalQuery, PreparedPlan
from matcher.rules.match_view import match_plan

_Found = Rewrite | Miss
_Kept = tuple[Served | Miss, ...]


class Once:
    """The normal form of a query, made when it is first needed: a filled-in template needs none."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], NormalQuery]) -> None:
        self._make = make
        self._made: NormalQuery | None = None

    def __call__(self) -> NormalQuery:
        if self._made is None:
            self._made = self._make()
        return self._made


class Explained:
    """Some caches, and what they said to queries of one shape.

    Args:
        plans: The caches.
    """

    __slots__ = ("_kept", "plans")

    def __init__(self, plans: Iterable[PreparedPlan]) -> None:
        self.plans: Final = tuple(plans)
        self._kept: dict[tuple[str, bool], _Kept | None] = {}

    def match(
        self,
        query: Once,
        constants: tuple[Lit, ...],
        options: MatchOptions,
        plan: PreparedPlan,
        delta: bool,
    ) -> list[_Found]:
        """All that `match_plan` finds.

        Args:
            query: A query of the shape.
            constants: Its lifted constants.
            options: The session's switches.
            plan: One of the caches.
            delta: Whether tables of the query may be joined to it.
        """
        key = (plan.name, delta)
        kept = self._kept.get(key)
        if kept is not None:
            return [_filled(one, constants) for one in kept]
        found = list(match_plan(query(), plan, options, delta=delta))
        if key not in self._kept:
            self._kept[key] = _kept(found, plan, query(), constants)
        return found


def _kept(
    found: Iterable[_Found], plan: PreparedPlan, query: NormalQuery, constants: tuple[Lit, ...]
) -> _Kept | None:
    """What to remember; None if other constants may change it."""
    if not answers_alike(query, constants, (plan,)):
        return None
    kept: list[Served | Miss] = []
    for one in found:
        if isinstance(one, Rewrite):
            again = served(one, plan, query, constants)
            if again.template is None:
                return None
            kept.append(again)
            continue
        if quotes(one.reasons, constants):
            return None
        kept.append(one)
    return tuple(kept)


def _filled(one: Served | Miss, constants: tuple[Lit, ...]) -> _Found:
    if isinstance(one, Miss):
        return one
    rewrite = one.filled(constants)
    assert rewrite is not None  # only these are kept
    return rewrite
