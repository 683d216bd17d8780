"""Which unique keys hold in what a query itself reads, beside the caches.

A cache knows of the joins at its own snapshot (`cachemgr.serving.served_cache`). A table that a
rewrite joins to it is read as the query reads it, so its key counts only if it was found unique in
that very state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from cachemgr.base_state import BaseState
from cachemgr.config.result_settings import Fingerprint, SettingsComparer, fingerprint
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.serving.seen_tables import Seen
from cachemgr.vocabulary import JoinState
from matcher.model.ir import LapsedJoin, RecordPreservingJoin


class JoinsUnderSettings:
    """The joins as a session may rely on them, at the cost of a look-up while neither they nor its
    settings change.

    Args:
        comparer: Compares settings.
    """

    def __init__(self, comparer: SettingsComparer) -> None:
        self._comparer = comparer
        self._last: tuple[tuple[JoinRecord, ...], Fingerprint, tuple[JoinRecord, ...]] | None = None

    def of(self, joins: tuple[JoinRecord, ...], settings: Fingerprint) -> tuple[JoinRecord, ...]:
        """The joins, where one that was validated under other settings is as if nobody had: its
        keys may be others here, as days and instants of another time zone or calendar are.

        Args:
            joins: The joins as they are declared now.
            settings: The session's.
        """
        last = self._last
        if last is not None and last[0] is joins and last[1] == settings:
            return last[2]
        made = tuple(
            join if self._covers(join, settings) else replace(join, validated_versions={})
            for join in joins
        )
        self._last = (joins, settings, made)
        return made

    def _covers(self, join: JoinRecord, settings: Fingerprint) -> bool:
        under = join.validated_under
        return under is not None and self._comparer.compare(settings, fingerprint(under)) is None


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """What is known of unique keys where a query is decided.

    Args:
        keys: The joins whose right side has a unique key.
        lapsed: What is declared and not known to hold.
        promised: Of which joins nobody has looked at the tables: where a rewrite relies on one,
            somebody has to.
    """

    keys: tuple[RecordPreservingJoin, ...]
    lapsed: tuple[LapsedJoin, ...]
    promised: tuple[JoinRecord, ...] = ()


def known_keys(joins: Collection[JoinRecord], seen: Seen) -> KnownKeys:
    """What holds in the tables as a query sees them.

    Args:
        joins: The joins as they are declared now.
        seen: The query's tables by location.
    """
    return KnownKeys(keys_seen(joins, seen), lapsed_in(joins, seen))


def promised_keys(joins: Collection[JoinRecord], places: Collection[str]) -> KnownKeys:
    """What holds in the tables of a query if none of them moved, before anybody looked.

    Args:
        joins: The joins as they are declared now.
        places: Where the query's tables lie.
    """
    keys = keys_promised(joins, places)
    names = {key.name for key in keys}
    promised = tuple(join for join in joins if join.name in names)
    return KnownKeys(keys, lapsed_at(joins, places), promised)


def keys_seen(joins: Iterable[JoinRecord], seen: Seen) -> tuple[RecordPreservingJoin, ...]:
    """The joins whose right side has a unique key in what a query reads: they were validated at
    the very state of it that the query sees, wherever it reads it. Only where that is so of the
    left side too does each of its rows find one (`finds_each`).

    Args:
        joins: The joins as they are declared now.
        seen: The query's tables by location.
    """
    found = []
    for join in joins:
        if _is_as_validated(join, join.right, seen):
            fact = join.as_fact()
            if fact.finds_each and not _is_as_validated(join, join.left, seen):
                fact = replace(fact, finds_each=False)
            found.append(fact)
    return tuple(found)


def keys_promised(
    joins: Iterable[JoinRecord], places: Collection[str]
) -> tuple[RecordPreservingJoin, ...]:
    """The same before anybody looked at the tables: what `keys_seen` finds if none of them moved.

    Args:
        joins: The joins as they are declared now.
        places: Where the query's tables lie.
    """
    return tuple(
        join.as_fact()
        for join in joins
        if join.right.location in places and _validated_at(join, join.right) is not None
    )


def lapsed_in(joins: Iterable[JoinRecord], seen: Seen) -> tuple[LapsedJoin, ...]:
    """The joins by which each row of a table finds one of another, as is declared and not proven
    for what a query reads of both.

    Args:
        joins: The joins as they are declared now.
        seen: The query's tables by location.
    """
    return tuple(
        _as_lapsed(join)
        for join in joins
        if join.finds_each
        and seen.get(join.left.location)
        and seen.get(join.right.location)
        and not all(_is_as_validated(join, side, seen) for side in (join.left, join.right))
    )


def lapsed_at(joins: Iterable[JoinRecord], places: Collection[str]) -> tuple[LapsedJoin, ...]:
    """The same before anybody looked at the tables: those that were validated in no state of them.

    Args:
        joins: The joins as they are declared now.
        places: Where the query's tables lie.
    """
    return tuple(
        _as_lapsed(join)
        for join in joins
        if join.finds_each
        and (join.state is not JoinState.VALID or not join.validated_versions)
        and join.left.location in places
        and join.right.location in places
    )


def _as_lapsed(join: JoinRecord) -> LapsedJoin:
    return LapsedJoin(join.as_fact(), join.state is JoinState.BROKEN)


def _is_as_validated(join: JoinRecord, side: JoinSide, seen: Seen) -> bool:
    """Whether the query reads a side of a join, and in the very state in which it was validated."""
    checked = _validated_at(join, side)
    states = [table.state for table in seen.get(side.location, ())]
    return checked is not None and bool(states) and all(map(checked.is_same, states))


def _validated_at(join: JoinRecord, side: JoinSide) -> BaseState | None:
    """The state in which a side of a join was found to be as declared, if ever."""
    checked = join.validated_versions.get(side.location)
    if join.state is not JoinState.VALID or checked is None:
        return None
    return None if checked.table_id is None or checked.version is None else checked


def validated_places(joins: Iterable[JoinRecord]) -> frozenset[str]:
    """The tables of which some key was found unique.

    Args:
        joins: The joins as they are declared now.
    """
    return frozenset(j.right.location for j in joins if j.state is JoinState.VALID)
