"""Which parts of one query are answered from which caches.

Visits the query's blocks from the outermost inwards and asks the registry for each. Then looks at
the query as a whole: all its parts read each base table at one version. A stale cache next to a
table read live, or next to a cache with another snapshot, would join two moments; then the query is
decided again with exact caches only, and what was dropped says `MIXED_SNAPSHOTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cachemgr.config.session_settings import Settings
from cachemgr.serving.eligibility import BlockVeto, Checks, QueryState
from cachemgr.serving.freshness import TableSeen
from cachemgr.serving.served_cache import ServedCache
from matcher.catalyst.once import Once
from matcher.catalyst.reader import LocatedBlock
from matcher.catalyst.split import Split
from matcher.catalyst.subqueries import written_queries
from matcher.catalyst.templates import PlanDocument
from matcher.index.registry import Registry
from matcher.model.ir import Block, Candidate, MatchOptions, RecordPreservingJoin, Rewrite
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.row_order import refused_below
from matcher.rules.choose import unheeded

_ANSI = "spark.sql.ansi.enabled"
_TIME_ZONE = "spark.sql.session.timeZone"
_PRECISION = "spark.sql.decimalOperations.allowPrecisionLoss"


@dataclass(frozen=True)
class Hit:
    """A block that is answered from a cache.

    Args:
        path: Where the block stands in the plan.
        block: The block.
        rewrite: What runs instead.
        cache: The state of the cache that was checked.
        exact: All tables that the block reads stand at the snapshot's versions.
        sql: What runs over the cache, outputs named c0, c1, …
        split: Which parts of the subtree's outputs the block's are; None for the outputs.
    """

    path: tuple[int, ...]
    block: Block
    rewrite: Rewrite
    cache: ServedCache
    exact: bool
    sql: str
    split: Split | None = None


@dataclass(frozen=True)
class BlockOutcome:
    """What was found for one block, or why a part of the plan is none."""

    path: tuple[int, ...]
    block: Block | None
    hit: Hit | None
    candidates: tuple[Candidate, ...]
    reasons: tuple[Reason, ...]


@dataclass
class Examination:
    """What was found for one query.

    Args:
        outcomes: What was found for each block.
        unheeded: Why a cache that the hint asks for is not used.
        why: All that can be said of a block's miss.
        served_once: Some rewrite of a subquery gives each of its rows once, which is right if it is
            that of EXISTS or IN.
        apart: What was found for the queries of EXISTS and IN, which Spark asks about apart; filled
            where a query is explained.
        keys_moved: Some rewrite relies on a promised key that does not hold: this is not what may
            run, and the query has to be decided by the keys that do.
    """

    outcomes: list[BlockOutcome] = field(default_factory=list)
    unheeded: tuple[Reason, ...] = ()
    why: Callable[[Block, tuple[Reason, ...]], tuple[Reason, ...]] = lambda block, reasons: reasons
    served_once: bool = False
    keys_moved: bool = False
    apart: list[Examination] = field(default_factory=list)

    def told(self) -> Examination:
        """The same with all that can be said of its misses, which takes a while."""
        outcomes = [
            o
            if o.hit is not None or o.block is None
            else replace(o, reasons=self.why(o.block, o.reasons))
            for o in self.outcomes
        ]
        return replace(self, outcomes=outcomes)

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The blocks that are answered from caches."""
        found = [o.hit for o in self.outcomes if o.hit is not None]
        return (*found, *(hit for each in self.apart for hit in each.hits))

    @property
    def telling(self) -> tuple[BlockOutcome, ...]:
        """The outcomes worth telling: hits, and blocks that are not the mere input of another.
        A missed ORDER BY … LIMIT says why no cache of first rows serves, the block in it the rest.

        The rows that an aggregate reads are a block as well, and no cube ever answers it: why not
        says nothing to a person who asked about the aggregate.
        """
        missed = [o for o in self.outcomes if o.block is not None and o.hit is None]
        blocks = [o.path for o in missed if o.block is not None and o.block.limit is None]
        found = tuple(
            o
            for o in self.outcomes
            if o.hit is not None or not any(_inside(o.path, path) for path in blocks)
        )
        return (*found, *(outcome for each in self.apart for outcome in each.telling))

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the blocks that are not answered are not, each once; first of all why a cache that
        the hint asks for is not used."""
        found = [*self.unheeded]
        found += [r for o in self.telling if o.hit is None for r in o.reasons]
        return tuple(dict.fromkeys(found))


def _inside(path: tuple[int, ...], outer: tuple[int, ...]) -> bool:
    return len(path) > len(outer) and path[: len(outer)] == outer


def match_options(
    settings: Settings,
    session: Mapping[str, str],
    forced: frozenset[str] = frozenset(),
    keys: tuple[RecordPreservingJoin, ...] = (),
) -> MatchOptions:
    """The matcher's switches for a session.

    Args:
        settings: Our settings in that session.
        session: All settings explicitly set in it.
        forced: Lower-case names of the caches that the query's hint asks for.
        keys: What is known to be unique in the tables as the query reads them.
    """
    return MatchOptions(
        forced=forced,
        keys=keys,
        approximate_floats=settings.approximate_floats,
        trust_unvalidated=settings.trust_unvalidated,
        # that switch is for offline explain alone: here a refresh has looked
        assume_exact_averages=False,
        ansi=session.get(_ANSI, "true").lower() == "true",
        decimal_precision_loss=session.get(_PRECISION, "true").lower() == "true",
        time_zone=session.get(_TIME_ZONE, ""),
        approximate_distinct=settings.approximate_distinct,
    )


def examine(
    document: PlanDocument,
    registry: Registry,
    checks: Checks,
    query: QueryState,
    options: MatchOptions,
    *,
    explain: bool = False,
) -> Examination:
    """Decide a whole query.

    Args:
        document: The query's plan.
        registry: The caches' plans.
        checks: What eligibility asks.
        query: The query's state.
        options: The matcher's switches.
        explain: Also name every candidate and why it was refused.

    Returns:
        What was found for each block; the hits among them are consistent with each other, unless
        `keys_moved`.
    """
    first = _walk(document, registry, checks, query, options, explain)
    if first.keys_moved:
        return first
    live = _live_tables(document.structure, first.hits) | {
        extra.relation.name for hit in first.hits for extra in hit.rewrite.extra
    }
    reason = mixed_snapshots(first.hits, query.seen, live)
    if reason is None:
        return first
    strict = replace(query, exact_only=reason)
    return _walk(document, registry, checks, strict, options, explain)


def _walk(
    document: PlanDocument,
    registry: Registry,
    checks: Checks,
    query: QueryState,
    options: MatchOptions,
    explain: bool,
) -> Examination:
    examination = Examination(why=lambda block, reasons: registry.why(block, options, reasons))

    def visit(located: LocatedBlock) -> bool:
        outcome, keys_moved = _decide(located, registry, checks, query, options, explain)
        examination.keys_moved |= keys_moved
        if located.once is Once.PERHAPS:
            examination.served_once |= outcome.hit is not None
            return False
        if located.is_tail and outcome.hit is None and not outcome.candidates:
            return False  # no cache of first rows was looked at: nothing to tell
        before = examination.outcomes
        again = located.split is not None or located.once
        if before and before[-1].path == located.path and again:
            before.pop()  # looked for whole and missed: what is told is of the parts
        before.append(outcome)
        return outcome.hit is not None

    document.walk(visit, tails=registry.keeps_first_rows)
    if query.only:
        known = {name: found for name in query.only if (found := registry.spelled(name))}
        candidates = [c for outcome in examination.outcomes for c in outcome.candidates]
        used = [hit.cache.name for hit in examination.hits]
        examination.unheeded = unheeded(query.only, used, known, candidates)
    return examination


def _decide(
    located: LocatedBlock,
    registry: Registry,
    checks: Checks,
    query: QueryState,
    options: MatchOptions,
    explain: bool,
) -> tuple[BlockOutcome, bool]:
    """What was found for a block, and whether a promised key turned out not to hold."""
    block = located.block
    if block is None:
        return BlockOutcome(located.path, None, None, (), tuple(located.reasons)), False
    refused = refused_below(located.above, block, options)
    if refused is not None:
        return BlockOutcome(located.path, block, None, (), (refused,)), False
    veto = BlockVeto(query, block, checks)
    decision = registry.decide(block, options, veto, explain=explain, first_rows=located.is_tail)
    hit = None
    if decision.rewrite is not None:
        cache, exact, sql = veto.passed[id(decision.rewrite)]
        hit = Hit(located.path, block, decision.rewrite, cache, exact, sql, located.split)
    outcome = BlockOutcome(located.path, block, hit, decision.candidates, decision.reasons)
    return outcome, veto.keys_moved


def tests_left(document: PlanDocument, hits: Iterable[Hit]) -> list[PlanDocument]:
    """The queries of EXISTS and IN, each as Spark optimises it on its own, where they stand outside
    of the parts that are answered.

    Args:
        document: The query's plan, in which a filter holds them.
        hits: The parts that are answered.
    """
    found = _tests(document.structure["plan"], (), {hit.path for hit in hits})
    return [
        PlanDocument({**document.structure, "plan": {"n": "Subquery", "c": [{**query, "u": 1}]}})
        for query in found
    ]


def _tests(
    node: Mapping[str, Any], path: tuple[int, ...], replaced: set[tuple[int, ...]]
) -> Iterable[dict[str, Any]]:
    if path in replaced:
        return
    yield from written_queries(node["p"]) if node["n"] == "Filter" else ()
    for index, child in enumerate(node.get("c", ())):
        yield from _tests(child, (*path, index), replaced)


def _live_tables(document: Mapping[str, Any], hits: Iterable[Hit]) -> frozenset[str]:
    """Names of the tables that the query reads outside of the replaced blocks."""
    tables = document["tables"]
    replaced = {hit.path for hit in hits}
    found = {table["name"] for table in tables if table.get("elsewhere")}
    found.update(tables[number]["name"] for number in _leaves(document["plan"], (), replaced))
    return frozenset(found)


def sorted_above(document: PlanDocument, path: tuple[int, ...]) -> bool:
    """True if what is at `path` is the input of an ORDER BY without LIMIT, with nothing but
    projections between.

    Args:
        document: The query's plan.
        path: Child numbers from the root.
    """
    node = document.structure["plan"]
    above = []
    for index in path:
        above.append(node)
        node = node["c"][index]
    rest = [n for n in reversed(above) if n["n"] != "Project"]
    limited = len(rest) > 1 and rest[1]["n"] in ("LocalLimit", "GlobalLimit")
    return bool(rest) and rest[0]["n"] == "Sort" and bool(rest[0].get("s")) and not limited


def _leaves(
    node: Mapping[str, Any], path: tuple[int, ...], replaced: set[tuple[int, ...]]
) -> Iterable[int]:
    if path in replaced:
        return
    if "t" in node:
        yield node["t"]
    for query in written_queries(node["p"]) if node["n"] == "Filter" else ():
        yield from _leaves(query, (), set())
    for index, child in enumerate(node.get("c", ())):
        yield from _leaves(child, (*path, index), replaced)


def mixed_snapshots(
    hits: Iterable[Hit], seen: Mapping[str, list[TableSeen]], live: frozenset[str]
) -> Reason | None:
    """Why these hits must not stand in one query; None if they read one moment.

    Args:
        hits: The blocks answered from caches.
        seen: The query's tables by location.
        live: Names of the tables that are also read as they are now.
    """
    stale = [hit for hit in hits if not hit.exact]
    if not stale:
        return None
    if live:
        name = stale[0].cache.name
        return Reason(
            ReasonCode.MIXED_SNAPSHOTS,
            f"cache {name} is behind its base tables, and the query also reads "
            f"{sorted(live)[0]} as it is now",
            f"REFRESH RELATIONAL CACHE {name}",
        )
    for hit in stale:
        for other in hits:
            shared = _tables(hit) & _tables(other) & hit.cache.snapshot.keys()
            shared &= other.cache.snapshot.keys()
            mine, theirs = hit.cache.snapshot, other.cache.snapshot
            differing = [p for p in shared if mine is not theirs and not mine[p].agrees(theirs[p])]
            if differing:
                name = seen[differing[0]][0].name
                return Reason(
                    ReasonCode.MIXED_SNAPSHOTS,
                    f"caches {hit.cache.name} and {other.cache.name} read {name} at different "
                    "versions",
                    "refresh both",
                )
    return None


def _tables(hit: Hit) -> frozenset[str]:
    return frozenset(relation.key for relation in hit.block.relations)
