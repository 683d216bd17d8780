"""What is said of a block that no cache answers: the reasons, the nearest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from matcher.model.ir import Block, Miss
from matcher.model.message import CacheName, Message, Number, TableName, Word, listed
from matcher.model.reasons import Reason, ReasonCode

# Refusals of a whole cache that no further table mends.
_FOR_GOOD: Final = frozenset(
    {
        ReasonCode.PREDICATE_NOT_CONTAINED,
        ReasonCode.JOIN_CONDITION_DIFFERS,
        ReasonCode.EXTRA_TABLE_NOT_PRESERVING,
        ReasonCode.EXTRA_TABLE_FILTERED,
        ReasonCode.HAVING_NOT_CONTAINED,
        ReasonCode.LIMIT_NOT_CONTAINED,
        ReasonCode.CACHE_IS_AGGREGATED,
    }
)


def no_cache(block: Block) -> Reason:
    """The index proposes nothing."""
    return _none(
        block,
        "no cache covers {tables} with the columns that the query needs",
        "EXPLAIN REWRITE names what the nearest caches lack",
    )


def none_near(block: Block) -> Reason:
    """All were looked at, and none can be compared with the block."""
    return _none(block, "no cache reads {tables}", "CREATE RELATIONAL CACHE makes one")


def out_of_steps(most: int, compared: int | None = None) -> Reason:
    """The decision has used up its steps.

    Args:
        most: The most steps.
        compared: With how many caches the block was compared till then; None before the first.
    """
    after = Message("") if compared is None else Message(" after {n} caches", n=Number(compared))
    return Reason(
        ReasonCode.TOO_MANY_STEPS,
        "the {most} steps that a decision may take were used up{after}",
        "split or simplify the query, or allow its decision more, in a Spark session: "
        "/*+ RELATIONAL_CACHE_STEPS({more}) */",
        most=Number(most, ","),
        after=after,
        more=Number(max(most, 1) * 10),
    )


def replaced_table(cache: str, table: str) -> Reason:
    """A cache reads another table under the name of one of the query's.

    Args:
        cache: The cache's name.
        table: The table's name.
    """
    return Reason(
        ReasonCode.TABLE_RECREATED,
        "{table} was created again at another place since the snapshot of {cache}",
        "REFRESH RELATIONAL CACHE {cache}",
        table=TableName(table),
        cache=CacheName(cache),
    )


def _none(block: Block, template: str, remedy: str) -> Reason:
    names = dict.fromkeys(r.name for r in block.relations)
    tables = listed(TableName, names) if names else Word("no table")
    return Reason(ReasonCode.NO_CACHE_FOR_TABLES, template, remedy, tables=tables)


def best_reasons(misses: Iterable[Miss], otherwise: Reason) -> tuple[Reason, ...]:
    """The refusals that came furthest first: of caches that match and may not serve now, then of
    views before whole caches, the least lacking ahead; that a cache lacks a table last, as it may
    be joined. Of the grouping sets of one cache the nearest alone have their say.

    Args:
        misses: The refusals.
        otherwise: What is said where there is none.
    """
    ordered = sorted(_of_nearest_sets(misses), key=_nearness)
    found = dict.fromkeys(r for m in ordered for r in m.reasons)
    return tuple(found) or (otherwise,)


def _nearness(miss: Miss) -> tuple[bool, bool, bool, int]:
    if miss.reasons and miss.reasons[0].code is ReasonCode.TOO_MANY_STEPS:
        return False, False, False, -1  # the others may not be all
    lacks_table = any(r.code is ReasonCode.TABLE_NOT_IN_CACHE for r in miss.reasons)
    whole = miss.grouping_set is None and miss.lacking == 0
    return not miss.matched, lacks_table, whole, miss.lacking


def _of_nearest_sets(misses: Iterable[Miss]) -> Iterator[Miss]:
    """The refusals without those of sets of a cache that another one of its sets is nearer than,
    or that ask for the same change as one with more keys: a cube of a hundred sets says once that
    it lacks a measure."""
    ranked = [(_nearness(miss), miss) for miss in misses]
    nearest: dict[str, tuple[bool, bool, bool, int]] = {}
    for near, miss in ranked:
        if miss.grouping_set is not None:
            nearest[miss.cache] = min(nearest.get(miss.cache, near), near)
    finest: dict[object, tuple[int, Miss]] = {}
    for near, miss in ranked:
        if miss.grouping_set is None:
            yield miss
        elif near == nearest[miss.cache]:
            asked = (miss.cache, tuple((r.code, r.suggestion) for r in miss.reasons))
            keys = len(miss.grouping_set.keys)
            if asked not in finest or keys > finest[asked][0]:
                finest[asked] = (keys, miss)
    yield from (miss for _, miss in finest.values())


def hopeless(misses: Iterable[Miss], served: Iterable[str]) -> frozenset[str]:
    """The caches that were refused for nothing that a joined table could remedy, and those that
    serve as they are and may not.

    Args:
        misses: The refusals.
        served: The caches that have a rewrite as they are.
    """
    codes: dict[str, set[ReasonCode]] = {}
    for miss in misses:
        codes.setdefault(miss.cache, set()).update(reason.code for reason in miss.reasons)
    serve = frozenset(served)
    return frozenset(n for n, found in codes.items() if n in serve or found <= _FOR_GOOD)
