"""What a person who asks why is told: each cache considered, whether it can serve or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from matcher.index.shards import Shard, mask_of
from matcher.model.ir import MatchOptions, Miss, Passed, Rewrite
from matcher.model.reasons import Reason
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import FIRST_UNKNOWN_TABLE, OCCURRENCE
from matcher.rules.choose import rank
from matcher.rules.match_view import match_plan

_MAX_SHARDS: Final = 256


def nearest(
    query: NormalQuery, by_table: Mapping[int, tuple[int, ...]], shards: Mapping[int, Shard]
) -> Iterator[PreparedPlan]:
    """The caches that share a table with the query: first those that lack the fewest of its tables,
    then those that lack the fewest of its columns, then those with the fewest other tables.

    Args:
        query: The query.
        by_table: The shards of each table.
        shards: The index.
    """
    tables = {rel % OCCURRENCE for rel in query.relations}
    known = mask_of(tuple(t for t in tables if t < FIRST_UNKNOWN_TABLE))
    masks: dict[int, None] = {}
    for table in sorted(t for t in tables if t < FIRST_UNKNOWN_TABLE):
        masks.update(dict.fromkeys(by_table.get(table, ())[:_MAX_SHARDS]))
    needed = query.required
    ranked: list[tuple[int, int, int, int, tuple[PreparedPlan, ...]]] = []
    for mask in masks:
        shard = shards.get(mask)  # gone if it was dropped meanwhile
        if shard is None:
            continue
        bits = [b for b in map(shard.bits.get, needed) if b is not None]
        missing, others = (known & ~mask).bit_count(), (mask & ~known).bit_count()
        for mentioned, plans in list(shard.groups.items()):
            lacking = len(needed) - sum(mentioned >> bit & 1 for bit in bits)
            ranked.append((missing, lacking, others, len(ranked), plans))
    for *_, plans in sorted(ranked, key=lambda found: found[:4]):
        yield from plans


def sharing_tables(
    query: NormalQuery, plans: Iterable[PreparedPlan], first_rows: bool
) -> list[PreparedPlan]:
    """The caches among some that have anything to do with a query.

    Args:
        query: The query.
        plans: The caches.
        first_rows: Leave all out but caches of the first rows (ORDER BY … LIMIT) and of groups that
            passed a HAVING.
    """
    mine = {rel % OCCURRENCE for rel in query.tables}
    found = [p for p in plans if not mine.isdisjoint(rel % OCCURRENCE for rel in p.relations)]
    return [p for p in found if p.plan.holds_some] if first_rows else found


def consider(
    query: NormalQuery,
    plans: Sequence[PreparedPlan],
    options: MatchOptions,
    clear: Callable[[Rewrite], Passed | Reason],
) -> tuple[tuple[Rewrite, Passed] | None, list[Rewrite], list[Miss]]:
    """Try caches, also those that the index would not propose. Of a cube the first set that serves
    may be chosen, as where nobody asks why; the others are told.

    Args:
        query: The query.
        plans: The caches.
        options: The session's switches.
        clear: Asked for each valid rewrite, best first; a reason is a refusal.

    Returns:
        The rewrite to take with what `clear` gave, the others that would do, and what was refused.
    """
    misses: list[Miss] = []
    served: tuple[Rewrite, Passed] | None = None
    valid: list[Rewrite] = []
    for may_join_tables in (False, True):
        rewrites: list[Rewrite] = []
        others: list[Rewrite] = []
        for plan in plans:
            found = list(match_plan(query, plan, options, may_join_tables=may_join_tables))
            serving = [f for f in found if isinstance(f, Rewrite)]
            rewrites += serving[:1]
            others += serving[1:]
            known = [m for m in misses if m.cache == plan.name]
            misses += [f for f in found if isinstance(f, Miss) and f not in known]
        for rewrite in (*rank(rewrites), *others):
            passed = clear(rewrite)
            if isinstance(passed, Reason):
                misses.append(Miss(rewrite.cache, rewrite.grouping_set, (passed,), matched=True))
            elif served is None and rewrite in rewrites:
                served = rewrite, passed
            else:
                valid.append(rewrite)
        if served is not None:
            break
    return served, valid, misses
