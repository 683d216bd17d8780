"""Tails: rows that were appended since a cache's refresh, as its definition has them, held in
memory.

A tail is a cache of these rows alone, where a group may have several rows. What is known of the
cache does not hold for it, so that it is matched anew, as a cache of which nothing is known but
which of its joins kept each row. It is asked for states alone, which are merged with the cache's
anyway: those of a group that has several rows are so as well. It holds files and no versions:
whoever sees these files among those that were appended since the refresh may read it in their
place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from cachemgr.base_state import BaseState
from cachemgr.delta.changes import DataFile
from matcher.model.ir import (
    Block,
    CachePlan,
    GroupingSet,
    MatchOptions,
    RecordPreservingJoin,
    Rewrite,
)
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import Interner, occurrences
from matcher.render.placeholders import TAIL
from matcher.render.select import NotRenderable, render_rewrite
from matcher.rules.match_view import match_plan


class Tail:
    """The rows of some appended files, grouped as a cache groups them, in one part or several; safe
    for several threads.

    Args:
        plan: What is known of them; see `plan_of_tail`.
        files: The files that they come from, by path and deletion vector.
        relation: What a hit reads.
        joined: The tables that were joined to them, by location, and in which states.
    """

    __slots__ = ("_intern", "_view", "files", "joined", "plan", "relation")

    def __init__(
        self,
        plan: CachePlan,
        files: frozenset[tuple[str, str]],
        relation: object,
        joined: Mapping[str, frozenset[BaseState]],
    ) -> None:
        self.plan: Final = plan
        self.files: Final = files
        self.relation: Final = relation
        self.joined: Final = joined
        self._intern = Interner()
        self._view = PreparedPlan(plan, self._intern)

    @property
    def is_lossless(self) -> bool:
        """Whether each row of its files found its partners: it then holds the same rows however the
        joined tables grow under new keys."""
        return bool(self.plan.joins)

    def states(self, block: Block, options: MatchOptions) -> str | None:
        """The SELECT of a block's states over the tail, outputs named c0, c1, …; None if they do
        not follow from it.

        Args:
            block: The query for them.
            options: The session's switches.
        """
        if not {r.key for r in block.relations} <= {r.key for r in self.plan.relations}:
            return None
        relations = occurrences(self._intern(r.key) for r in block.relations)
        options = replace(options, forced=frozenset(), keys=())
        found = match_plan(NormalQuery(block, relations), self._view, options)
        rewrite = next((each for each in found if isinstance(each, Rewrite)), None)
        if rewrite is None:
            return None
        try:
            return render_rewrite(rewrite, TAIL, positional=True)
        except NotRenderable:
            return None


def plan_of_tail(
    plan: CachePlan,
    grouping_set: GroupingSet | None,
    joins: Iterable[RecordPreservingJoin],
    rows: int,
) -> CachePlan:
    """What is known of a tail.

    Args:
        plan: The cache's plan.
        grouping_set: Its set that the tail is a part of.
        joins: The joins that are known to have kept each row of the tail.
        rows: How many rows it has.
    """
    sets = () if grouping_set is None else (replace(grouping_set, rows=rows, bytes=None),)
    return replace(
        plan,
        grouping_sets=sets,
        rows=rows,
        bytes=None,
        exact_sums=frozenset(),
        non_null=frozenset(),
        joins=tuple(joins),
        partials=frozenset(),
        base_rows=None,
        base_bytes=(),
        bounds=(),
    )


def files_beside(tail: Tail | None, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """Those of some files that a tail does not hold.

    Args:
        tail: The tail; None for none.
        files: The files.
    """
    return tuple(f for f in files if tail is None or f.key not in tail.files)
