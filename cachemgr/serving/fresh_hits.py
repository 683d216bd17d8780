"""Hits between refreshes: a block that is answered from a cache and the rows that were appended to
one of its tables since, together.
"""

from __future__ import annotations

from dataclasses import replace

from cachemgr.serving.decision import Hit
from cachemgr.serving.eligibility import Cleared, Eligibility
from matcher.catalyst.reader import LocatedBlock
from matcher.index.explain import set_names
from matcher.index.registry import Registry
from matcher.model.ir import Block, Candidate, MatchOptions, Rewrite
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.partials.merge import merge, render_merged
from matcher.partials.split import split
from matcher.render.select import NotRenderable, quote, render_stored

STEP = "add_appended_rows"


def base_names(block: Block) -> list[str]:
    """The names under which a hit reads the tables of its block beside the cache, in its text."""
    return [f"__base{number}" for number in range(len(block.relations))]


def fresh_hit(
    located: LocatedBlock,
    block: Block,
    registry: Registry,
    eligibility: Eligibility,
    options: MatchOptions,
) -> Hit | tuple[Reason, ...]:
    """Answer a block from a cache and the rows that were appended since, or say why not.

    Args:
        located: Where the block stands.
        block: The block, which some cache would answer were nothing appended.
        registry: The caches' plans.
        eligibility: Says of each rewrite whether its cache may serve.
        options: The matcher's switches.
    """
    limits = eligibility.query.fresh
    if limits is not None and limits.files == 0:
        return ()
    states = split(block, options)
    if isinstance(states, Reason):
        return (states,)
    merged = merge(block, states, options)
    if isinstance(merged, Reason):
        return (merged,)
    cleared: dict[int, Cleared] = {}

    def veto(rewrite: Rewrite) -> Reason | None:
        found = eligibility.clear_with_appended(states.block, rewrite)
        if isinstance(found, Reason):
            return found
        cleared[id(rewrite)] = found
        return None

    chosen = registry.decide(states.block, options, veto)
    if chosen.rewrite is None:
        return chosen.reasons
    found = cleared[id(chosen.rewrite)]
    sides, appended = [found.sql], found.appended
    try:
        if appended is not None:
            tail = eligibility.tail(found.cache, chosen.rewrite.grouping_set, appended)
            held = None if tail is None else tail.states(states.block, options)
            if held is not None:
                appended = replace(appended, tail=tail)
                sides.append(held)
            if appended.files:
                sides.append(render_stored(states.stored, [quote(n) for n in base_names(block)]))
        sql = render_merged(merged, sides)
    except NotRenderable as error:
        return (not_taken(ReasonCode.UNSUPPORTED_EXPRESSION, str(error)),)
    steps = (*chosen.rewrite.steps, STEP)
    rewrite = replace(chosen.rewrite, steps=steps)
    return Hit(located.path, block, rewrite, found.cache, True, sql, located.split, appended)


def with_fresh(candidates: tuple[Candidate, ...], hit: Hit) -> tuple[Candidate, ...]:
    """The candidates of a block, of which the one that its hit reads was refused as stale at first.

    Args:
        candidates: What was said of them.
        hit: The hit.
    """
    chosen = set_names(hit.cache.plan, hit.rewrite.grouping_set)
    return tuple(
        Candidate(c.cache, c.grouping_set, "chosen", (), hit.rewrite.cost)
        if c.cache == hit.rewrite.cache and c.grouping_set == chosen
        else c
        for c in candidates
    )
