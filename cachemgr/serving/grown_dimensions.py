"""Dimensions that were appended to since a cache's refresh, and changed none of its rows.

A record-preserving INNER join that held at the snapshot gave each row of its left side one row of
the right side. Rows that were appended to the right side under keys that were not there give it no
other one. So the rows of a block that joins the two by that join's keys are the same before and
after, as far as they come from rows of the left side that the cache has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from cachemgr.base_state import BaseState, TableAt
from cachemgr.delta.changes import ChangeKind, Changes
from cachemgr.serving.freshness import Histories
from cachemgr.serving.seen_tables import Seen
from cachemgr.serving.served_cache import ServedCache
from matcher.model.ir import Block, RecordPreservingJoin
from matcher.partials.lossless import equal_columns


class NewKeys(Protocol):
    """Says whether appended keys are new."""

    def are_new(
        self, table: TableAt, since: BaseState, changes: Changes, columns: tuple[str, ...]
    ) -> bool | None:
        """Whether no key of the appended rows is in the table twice; None where that is being
        looked at.

        Args:
            table: The table as it is seen.
            since: The state that it was appended to.
            changes: What was appended.
            columns: The columns of the key.
        """
        ...


def without_new_keys(
    block: Block,
    cache: ServedCache,
    appended: Mapping[str, Changes],
    seen: Seen,
    keys: NewKeys,
) -> dict[str, Changes]:
    """What was appended, without the dimensions that got new keys alone.

    Args:
        block: A query's block.
        cache: The cache.
        appended: What was appended to the block's tables since its snapshot, by location.
        seen: The query's tables by location.
        keys: Says which keys are new.
    """
    left = dict(appended)
    for place, changes in appended.items():
        (table,) = {t for t in seen[place] if isinstance(t, TableAt)}
        columns = _key_of(block, cache, place)
        if columns and keys.are_new(table, cache.snapshot[place], changes, columns):
            del left[place]
    return left


def has_rows_of(
    table: TableAt, states: Iterable[BaseState], histories: Histories, *, or_more: bool
) -> bool:
    """Whether a table has the rows that it had in some states.

    That it only got new keys since a snapshot does not say so: a row that came after the snapshot
    may have been changed, or have gone again.

    Args:
        table: The table as it is seen.
        states: States of it.
        histories: Where its past comes from.
        or_more: Whether others may have been appended since.
    """
    allowed = {ChangeKind.SAME, ChangeKind.APPENDS} if or_more else {ChangeKind.SAME}
    return {histories.changes(table, state).kind for state in states} <= allowed


def _key_of(block: Block, cache: ServedCache, place: str) -> tuple[str, ...]:
    """The columns of a table's key by which the block joins it, as a join does that held at the
    snapshot; none if it reads the table otherwise."""
    for join in cache.plan.joins:
        proven = join.validated and join.finds_each
        if proven and join.right == place and _is_joined_by(block, join):
            return tuple(right for _, right in join.keys)
    return ()


def _is_joined_by(block: Block, join: RecordPreservingJoin) -> bool:
    places = [relation.key for relation in block.relations]
    if len(block.tables) != len(places):  # groups below may read them, too
        return False
    if places.count(join.left) != 1 or places.count(join.right) != 1:
        return False
    left, right = places.index(join.left), places.index(join.right)
    if any({left, right} & set(outer.right) for outer in block.outer):
        return False
    pairs = [pair for part in block.predicates if (pair := equal_columns(part))]
    equal = {frozenset((c.rel, c.name.lower()) for c in pair) for pair in pairs}
    return all(
        frozenset({(left, mine.lower()), (right, theirs.lower())}) in equal
        for mine, theirs in join.keys
    )
