"""Hits between refreshes: a block that is answered from a cache and the rows that were appended to
one of its tables since, together.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cachemgr.serving.appended import Appended
from cachemgr.serving.averages import averages_proven, not_exact, why_not_averaged
from cachemgr.serving.decision import Hit
from cachemgr.serving.eligibility import Cleared, Eligibility, Moved
from cachemgr.serving.policy import KeysMoved
from cachemgr.serving.tails import Tail
from cachemgr.serving.unique_keys import keys_seen
from matcher.catalyst.reader import LocatedBlock
from matcher.index.registry import Registry
from matcher.model.expr import columns
from matcher.model.ir import Block, Candidate, MatchOptions, RecordPreservingJoin, Rewrite
from matcher.model.message import CacheName, Sql
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.partials.merge import merge, render_merged
from matcher.partials.split import States, split, why_not_by_value
from matcher.render.placeholders import bases
from matcher.render.select import NotRenderable, quote, render_stored
from matcher.rules.cost import cost_beside

STEP = "add_appended_rows"


def base_columns(block: Block) -> list[frozenset[str]]:
    """The columns that a block reads of each of its tables, in lower case."""
    read = {column for expr in block.expressions() for column in columns(expr)}
    return [
        frozenset(column.name.lower() for column in read if column.rel == rel)
        for rel in range(len(block.relations))
    ]


def may_read_appended(located: LocatedBlock, eligibility: Eligibility) -> bool:
    """Whether a block may be answered with appended rows at all: ORDER BY … LIMIT over a block may
    not, and the session may have switched that off.

    Args:
        located: Where the block stands.
        eligibility: Knows the session's limits.
    """
    limits = eligibility.query.fresh
    return not located.is_tail and (limits is None or limits.files != 0)


def fresh_hit(
    located: LocatedBlock,
    block: Block,
    registry: Registry,
    eligibility: Eligibility,
    options: MatchOptions,
    alone: Hit | None = None,
) -> Hit | tuple[Reason, ...]:
    """Answer a block from a cache and the rows that were appended since, or say why not.

    Args:
        located: Where the block stands.
        block: The block, which some cache would answer were nothing appended; it
            `may_read_appended`.
        registry: The caches' plans.
        eligibility: Says of each rewrite whether its cache may serve.
        options: The matcher's switches.
        alone: How the block is answered without such rows; only what costs less is looked for.

    Raises:
        KeysMoved: A rewrite relies on a promised key that does not hold.
    """
    states = split(block, options)
    if isinstance(states, Reason):
        return (states,)
    bare = _merged_by_any(block, states, options)
    if isinstance(bare, Reason):
        return (bare,)
    matched = moved = False

    def clear(rewrite: Rewrite) -> tuple[Cleared, Rewrite] | Reason:
        """The cache, and the block from its states."""
        nonlocal matched, moved
        matched = True
        found = eligibility.clear_with_appended(states.block, rewrite)
        if isinstance(found, Moved):
            moved = True
            return found.reason
        if isinstance(found, Reason):
            return found
        dearer = None if alone is None else _dearer(rewrite, found, block, alone)
        if dearer is not None:
            return dearer
        merged = bare or _merged_by(block, states, options, found, rewrite, eligibility)
        if isinstance(merged, Reason):
            return merged
        shown = why_shown_above(located, block, rewrite, found, eligibility, options)
        return shown or (found, merged)

    chosen = registry.decide(states.block, options, clear)
    if moved:
        raise KeysMoved
    if chosen.served is None:
        by_value = None if matched else why_not_by_value(block)
        return chosen.reasons if by_value is None else (by_value,)
    rewrite, (found, merged) = chosen.served
    sides, appended = [found.sql], found.appended
    try:
        if appended is not None:
            tail = eligibility.tail(found.cache, rewrite.grouping_set, appended)
            appended, beside = _beside(appended, tail, states, options)
            sides += beside
        sql = render_merged(merged, sides)
    except NotRenderable as error:
        return (not_taken(ReasonCode.UNSUPPORTED_EXPRESSION, "{part}", part=Sql(str(error))),)
    rewrite = replace(rewrite, steps=(*rewrite.steps, STEP))
    return Hit(located.path, block, rewrite, found.cache, True, sql, located.split, appended)


def _dearer(rewrite: Rewrite, found: Cleared, block: Block, alone: Hit) -> Reason | None:
    """Why a rewrite is not preferred to a hit that reads no appended rows; None if it is."""
    cost, appended = rewrite.cost, found.appended
    if appended is not None:
        others = [r.key for r in block.relations if r.key != appended.table.location]
        rows, size = appended.rows, sum(file.bytes for file in appended.files)
        assert rows is not None, "bounded"
        cost += cost_beside(found.cache.plan, others, rows, size)
    if (len(rewrite.extra), cost) < (len(alone.rewrite.extra), alone.rewrite.cost):
        return None
    return Reason(
        ReasonCode.TOO_MUCH_APPENDED,
        "cache {alone} answers by itself and costs no more than {found} with the appended rows",
        "nothing: {alone} answers",
        alone=CacheName(alone.cache.name),
        found=CacheName(found.cache.name),
    )


def why_shown_above(
    located: LocatedBlock,
    block: Block,
    rewrite: Rewrite,
    found: Cleared,
    eligibility: Eligibility,
    options: MatchOptions,
) -> Reason | None:
    """Why averages above a block would differ by the order of the rows that a cache gives; None if
    they would not.

    Args:
        located: Where the block stands, and which of its outputs are averaged above.
        block: The block.
        rewrite: How the cache gives its rows, or its states'.
        found: The cache, and what is read beside it.
        eligibility: Says which tables have which keys.
        options: The matcher's switches.
    """
    if not located.averaged or options.assume_exact_averages:
        return None
    joined = _keys(eligibility, options) if rewrite.extra else None
    return why_not_averaged(block, located.averaged, found.cache, found.appended, joined)


def _beside(
    appended: Appended, tail: Tail | None, states: States, options: MatchOptions
) -> tuple[Appended, list[str]]:
    """What is read beside a cache, and the SELECTs of the states over it."""
    held = None if tail is None else tail.states(states.block, options)
    found = appended if held is None else replace(appended, tail=tail)
    sides = [] if held is None else [held]
    if found.files:
        names = [quote(name) for name in bases(len(states.block.relations))]
        sides.append(render_stored(states.stored, names))
    return found, sides


def _merged_by_any(block: Block, states: States, options: MatchOptions) -> Rewrite | Reason | None:
    """The block from its states, whatever cache gives them, or why that is not exact by any; None
    where it depends on the cache."""
    found = merge(block, states, options)
    if isinstance(found, Rewrite) or found.code is not ReasonCode.AVG_NOT_EXACT:
        return found
    proven = merge(block, states, options, states.averaged)
    return None if isinstance(proven, Rewrite) else proven


def _keys(eligibility: Eligibility, options: MatchOptions) -> tuple[RecordPreservingJoin, ...]:
    """The joins whose right side has a unique key in what the query reads; those that are promised
    are looked at first."""
    promised, seen = eligibility.promised, eligibility.query.seen
    return keys_seen(promised, seen) if promised else options.keys


def _merged_by(
    block: Block,
    states: States,
    options: MatchOptions,
    found: Cleared,
    rewrite: Rewrite,
    eligibility: Eligibility,
) -> Rewrite | Reason:
    """The block from its states over the rows behind one cache and those that were appended."""
    joined = _keys(eligibility, options) if rewrite.extra else None
    proven = averages_proven(states, found.cache, found.appended, joined)
    if isinstance(proven, Reason):
        return proven
    merged = merge(block, states, options, proven)
    return merged if isinstance(merged, Rewrite) else not_exact(found.cache, found.appended)


def not_needed(
    candidates: tuple[Candidate, ...], behind: Collection[Reason], hit: Hit
) -> tuple[Candidate, ...]:
    """The candidates of a block that is answered. Those that are refused for nothing but rows that
    were appended since might have answered with these rows: they want no refresh. Other sets of the
    cache that does answer with these rows would as well.

    Args:
        candidates: What was said of them.
        behind: The reasons of those that are behind, and nothing else.
        hit: What answers.
    """

    answering = CacheName(hit.cache.name)

    def stands_back(reason: Reason) -> Reason:
        remedy = "nothing: {cache} answers; without it this one might"
        return Reason(reason.code, "{why}", remedy, why=reason.fault, cache=answering)

    def told(one: Candidate) -> Candidate:
        is_behind = bool(one.reasons) and all(reason in behind for reason in one.reasons)
        if is_behind and one.cache == hit.cache.name:
            return replace(one, outcome="valid", reasons=())
        reasons = (stands_back(r) if r in behind else r for r in one.reasons)
        return replace(one, reasons=tuple(reasons))

    return tuple(map(told, candidates))
