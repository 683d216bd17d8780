"""Decides which parts of one query are answered from which caches: for sessions, for SQL texts and
for declarations alone.

Visits the query's blocks from the outermost inwards and asks the registry for each. Then looks at
the query as a whole: all its parts read each base table at one version. A stale cache next to a
table read live, or next to a cache with another snapshot, would join two moments; then the query is
decided again by the next policy, at last with exact caches only, and what was dropped says
`MIXED_SNAPSHOTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from cachemgr.ddl.names import meant_cache
from cachemgr.metastore.records import JoinRecord
from cachemgr.serving.decision import BlockOutcome, Decision, Exhausted, Hit, chosen_by
from cachemgr.serving.eligibility import Cleared, Eligibility, Moved, QueryState
from cachemgr.serving.fresh_hits import (
    fresh_hit,
    may_read_appended,
    not_needed,
    why_shown_above,
)
from cachemgr.serving.policy import BY_KEYS_SEEN, BY_PROMISED_KEYS, KeysMoved, Policy
from cachemgr.serving.seen_tables import Seen, SeenTables
from cachemgr.serving.unique_keys import KnownKeys, known_keys, promised_keys
from matcher.catalyst.once import Once
from matcher.catalyst.reader import LocatedBlock
from matcher.index.miss_reasons import out_of_steps
from matcher.index.registry import Registry
from matcher.model.budget import DECISION_SECONDS, OutOfSteps, OutOfTime, decision, spent
from matcher.model.ir import Block, MatchOptions, Rewrite
from matcher.model.message import CacheName, Number, TableName
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.row_order import refused_below
from matcher.rules.choose import unheeded, without_not_named
from matcher.rules.cost import LEAST_BESIDE

_PLAIN: Final = Policy()
# So many times the steps of a decision for one who asks why.
_EXPLAINED: Final = 20
_OUT_OF_TIME: Final = Reason(
    ReasonCode.OUT_OF_TIME,
    "deciding took more than {seconds} s of processor time, and the query did not wait for more",
    "split or simplify the query; it is tried again the next time",
    seconds=Number(DECISION_SECONDS),
)
_TOO_DEEP: Final = Reason(
    ReasonCode.QUERY_TOO_LARGE,
    "its expressions or subqueries are nested too deeply to be compared with caches",
    "write them less deeply: IN and lists for chains of OR, a join for nested CASE",
)


class QueryBlocks(Protocol):
    """A query as the blocks that caches may answer."""

    def visit(self, visit: Callable[[LocatedBlock], bool], *, tails: bool) -> None:
        """Call `visit` for each block, outermost first; it returns True if a cache answers the
        block, so that nothing inside of it is visited.

        Args:
            visit: Called with each block.
            tails: Also visit ORDER BY … LIMIT over a block, where such a block is told apart.
        """
        ...

    def tables_outside(self, hits: Sequence[Hit]) -> frozenset[str]:
        """Names of the tables that the query reads outside of the blocks that are answered.

        Args:
            hits: The blocks that are answered.
        """
        ...


def decide(
    query: QueryBlocks,
    registry: Registry,
    eligibility: Eligibility,
    options: MatchOptions,
    *,
    explain: bool = False,
    most: int | None = None,
) -> Decision:
    """Decide a whole query.

    Args:
        query: The query.
        registry: The caches' plans.
        eligibility: Says of each rewrite whether its cache may serve.
        options: The matcher's switches.
        explain: Also name the candidates and why each was refused.
        most: So many candidates of each block at most; None for all.

    Returns:
        What was found for each block; the hits among them are consistent with each other.
    """
    asked = _Asked(registry, eligibility, options, explain, most)
    last: _Try | None = None
    for policy in _policies(eligibility.query):
        if last is None or last.calls_for(policy):
            last = _tried(query, asked, policy, None if last is None else last.mixed)
            if last.is_sound:
                break
    assert last is not None and last.decision is not None, "no key moves that was looked at"
    return last.decision


@dataclass(frozen=True, slots=True)
class _Try:
    """What was found by one policy.

    Args:
        policy: The policy.
        decision: What was found; None where a promised key turned out not to hold.
        mixed: Why its hits must not stand in one query.
    """

    policy: Policy
    decision: Decision | None
    mixed: Reason | None = None

    @property
    def is_sound(self) -> bool:
        """Whether what was found may run."""
        return self.decision is not None and self.mixed is None

    def calls_for(self, policy: Policy) -> bool:
        """Whether a later policy may find what this one did not, which is not sound."""
        if self.decision is None:
            return not policy.promised
        if policy.promised is not self.policy.promised:
            return False
        # where no appended rows are read, the hits are those of caches that are taken alone
        has_appended = any(hit.appended is not None for hit in self.decision.hits)
        return policy.exact_only or has_appended


def _policies(query: QueryState) -> tuple[Policy, ...]:
    """The policies for a query, in order: to look at its tables takes time, so what can be decided
    by promised keys is."""
    seen = query.seen
    if query.joins is None or not isinstance(seen, SeenTables) or seen.are_looked_up:
        return BY_KEYS_SEEN
    return BY_PROMISED_KEYS


def _tried(query: QueryBlocks, asked: _Asked, policy: Policy, mixed: Reason | None) -> _Try:
    state, options, promised = asked.eligibility.query, asked.options, asked.eligibility.promised
    if state.joins is not None:
        known = _known(state.joins, state.seen, policy)
        promised = known.promised
        if known.keys or known.lapsed:
            options = replace(options, keys=known.keys, lapsed=known.lapsed)
    eligibility = asked.eligibility.in_a_try(promised, mixed if policy.exact_only else None)
    try:
        found = _within_budget(
            query,
            _Asked(asked.registry, eligibility, options, asked.explain, asked.most, policy),
        )
    except KeysMoved:
        return _Try(policy, None)
    if policy.exact_only:
        return _Try(policy, found)
    live = query.tables_outside(found.hits) | _read_beside(found.hits)
    return _Try(policy, found, mixed_snapshots(found.hits, state.seen, live))


def _known(joins: tuple[JoinRecord, ...], seen: Seen, policy: Policy) -> KnownKeys:
    if policy.promised and isinstance(seen, SeenTables):
        return promised_keys(joins, seen.places)
    return known_keys(joins, seen)


def _read_beside(hits: Iterable[Hit]) -> frozenset[str]:
    """Names of the tables that hits read as they are now: those joined to a cache, and those to
    which rows were appended since."""
    joined = {extra.relation.name for hit in hits for extra in hit.rewrite.extra}
    return frozenset(joined | {h.appended.table.name for h in hits if h.appended is not None})


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the blocks of a query are decided by; see `decide`."""

    registry: Registry
    eligibility: Eligibility
    options: MatchOptions
    explain: bool
    most: int | None
    policy: Policy = _PLAIN
    first_sight: bool = False


def _within_budget(query: QueryBlocks, asked: _Asked) -> Decision:
    """What is found in the steps that a decision may take. Who asks why is told of more caches than
    a decision looks at, with more steps; and what a decision itself takes."""
    most = asked.options.most_steps
    if not asked.explain:
        with decision(most):
            return _walk(query, asked)
    with decision(most):
        decided = _walk(query, replace(asked, explain=False, first_sight=True))
    if decided.exhausted:
        return decided
    with decision(_EXPLAINED * most):
        explained = _walk(query, asked)
    return replace(decided if explained.exhausted else explained, spent=decided.spent)


def _walk(query: QueryBlocks, asked: _Asked) -> Decision:
    registry, eligibility = asked.registry, asked.eligibility
    outcomes: list[BlockOutcome] = []
    served_once = False
    exhausted = None

    def visit(located: LocatedBlock) -> bool:
        nonlocal served_once
        outcome = _outcome(located, asked)
        if located.once is Once.PERHAPS:
            served_once |= outcome.hit is not None
            return False
        if located.is_tail and outcome.hit is None and not outcome.candidates:
            return False  # no cache of first rows was looked at: nothing to report
        again = located.split is not None or located.once
        if outcomes and outcomes[-1].path == located.path and again:
            outcomes.pop()  # looked for whole and missed: what is reported is of the parts
        outcomes.append(outcome)
        return outcome.hit is not None

    try:
        query.visit(visit, tails=registry.keeps_first_rows)
    except OutOfSteps:
        exhausted = Exhausted.STEPS
        reason = out_of_steps(asked.options.most_steps)
    except OutOfTime:
        exhausted = Exhausted.TIME
        reason = _OUT_OF_TIME
    except RecursionError:
        exhausted = Exhausted.DEPTH
        reason = _TOO_DEEP
    if exhausted is not None:  # what was found till then stands
        outcomes.append(BlockOutcome((), None, None, (), (reason,), is_compared=False))
    elif any(outcome.exhausted for outcome in outcomes):
        exhausted = Exhausted.STEPS
    hinted = eligibility.query.only
    known = {name: found for name in hinted if (found := registry.spelled(name))}
    not_heeded = _unheeded(outcomes, hinted, known)
    if hinted and not known:
        outcomes = [_without_not_named(outcome, not_heeded) for outcome in outcomes]
    return Decision(
        tuple(outcomes),
        not_heeded,
        lambda block, reasons: registry.why(block, asked.options, reasons),
        served_once,
        spent=spent(),
        exhausted=exhausted,
    )


def _unheeded(
    outcomes: Iterable[BlockOutcome], hinted: frozenset[str], known: Mapping[str, str]
) -> tuple[Reason, ...]:
    if not hinted:
        return ()
    candidates = [c for outcome in outcomes for c in outcome.candidates]
    used = [o.hit.cache.name for o in outcomes if o.hit is not None]
    return unheeded(hinted, used, known, candidates, meant_cache)


def _without_not_named(outcome: BlockOutcome, instead: tuple[Reason, ...]) -> BlockOutcome:
    return replace(
        outcome,
        reasons=without_not_named(outcome.reasons, instead),
        candidates=tuple(
            replace(one, reasons=without_not_named(one.reasons, instead))
            for one in outcome.candidates
        ),
    )


def _outcome(located: LocatedBlock, asked: _Asked) -> BlockOutcome:
    block = located.block
    if block is None:
        return BlockOutcome(located.path, None, None, (), tuple(located.reasons), False)
    refused = refused_below(located.above, block, asked.options)
    if refused is not None:
        return BlockOutcome(located.path, block, None, (), (refused,), False)
    return _compared(located, block, asked)


def _compared(located: LocatedBlock, block: Block, asked: _Asked) -> BlockOutcome:
    registry, eligibility, options = asked.registry, asked.eligibility, asked.options
    behind: dict[Reason, float] = {}
    moved = False

    def clear(rewrite: Rewrite) -> Cleared | Reason:
        nonlocal moved
        found = eligibility.clear(located, block, rewrite)
        if isinstance(found, Cleared):
            return why_shown_above(located, block, rewrite, found, eligibility, options) or found
        if isinstance(found, Moved):
            moved = True
            return found.reason
        if isinstance(found, Reason):
            return found
        if may_read_appended(located, eligibility):
            behind[found.reason] = min(rewrite.cost, behind.get(found.reason, rewrite.cost))
        return found.reason

    chosen = registry.decide(
        block,
        options,
        clear,
        explain=asked.explain,
        most=asked.most,
        first_rows=located.is_tail,
        remember=not asked.first_sight,
    )
    if moved:  # not before: what the caches are to this shape is remembered
        raise KeysMoved
    hit, reasons, candidates = None, chosen.reasons, chosen.candidates
    if chosen.served is not None:
        rewrite, found = chosen.served
        hit = Hit(
            *(located.path, block, rewrite, found.cache, found.exact, found.sql, located.split),
            by_shape=chosen.by_shape,
        )
    if behind and (hit is None or _may_cost_less(min(behind.values()), hit, asked.policy)):
        with_appended = fresh_hit(located, block, registry, eligibility, options, hit)
        if isinstance(with_appended, Hit):
            hit, candidates = with_appended, chosen_by(candidates, with_appended)
        elif hit is None:
            reasons = tuple(dict.fromkeys((*reasons, *with_appended)))
    if hit is None:
        return BlockOutcome(
            located.path, block, None, candidates, reasons, exhausted=chosen.exhausted
        )
    return BlockOutcome(located.path, block, hit, not_needed(candidates, behind, hit), ())


def _may_cost_less(cost: float, alone: Hit, policy: Policy) -> bool:
    """Whether a rewrite with appended rows beside it may cost less than one that needs none."""
    return not policy.alone_first and cost + LEAST_BESIDE < alone.rewrite.cost


def mixed_snapshots(hits: Iterable[Hit], seen: Seen, live: frozenset[str]) -> Reason | None:
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
        return Reason(
            ReasonCode.MIXED_SNAPSHOTS,
            "cache {cache} is behind its base tables, and the query also reads {table} as it is "
            "now",
            "REFRESH RELATIONAL CACHE {cache}",
            cache=CacheName(stale[0].cache.name),
            table=TableName(sorted(live)[0]),
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
                    "caches {cache} and {other} read {table} at different versions",
                    "refresh both",
                    cache=CacheName(hit.cache.name),
                    other=CacheName(other.cache.name),
                    table=TableName(name),
                )
    return None


def _tables(hit: Hit) -> frozenset[str]:
    return frozenset(relation.key for relation in hit.block.tables)
