"""What was decided of one query: which parts are answered from which caches, and why others are
not. The same data at every door; `cachemgr.serving.explain` puts it into words and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from cachemgr.serving.appended import Appended
from cachemgr.serving.served_cache import ServedCache
from matcher.catalyst.split import Split
from matcher.index.explain import set_names
from matcher.model.budget import Spent
from matcher.model.ir import Block, Candidate, Rewrite
from matcher.model.reasons import Reason

Path = tuple[int, ...]


class Exhausted(StrEnum):
    """What a decision may run out of."""

    STEPS = "steps"
    TIME = "time"
    DEPTH = "depth"


Why = Callable[[Block, tuple[Reason, ...]], tuple[Reason, ...]]


@dataclass(frozen=True)
class Hit:
    """A block that is answered from a cache.

    Args:
        path: Where the block stands in the query.
        block: The block.
        rewrite: What runs instead.
        cache: The state of the cache that was checked.
        exact: All tables that the block reads stand at the snapshot's versions.
        sql: What runs over the cache, outputs named c0, c1, …
        split: Which parts of the subtree's outputs the block's are; None for the outputs.
        appended: Rows that are read beside the cache; the block's tables then stand in `sql` as
            `bases` says.
        by_shape: The rewrite is right for any constants of the block's shape, filled in.
    """

    path: Path
    block: Block
    rewrite: Rewrite
    cache: ServedCache
    exact: bool
    sql: str
    split: Split | None = None
    appended: Appended | None = None
    by_shape: bool = False


@dataclass(frozen=True)
class BlockOutcome:
    """What was found for one block, or why a part of the query is none.

    Args:
        path: Where it stands in the query.
        block: The block; None where the part is none.
        hit: What answers it.
        candidates: The caches considered, if that was asked for.
        reasons: Why none answers it.
        is_compared: Whether it was compared with caches at all.
        exhausted: The decision's steps ended before it was compared with all of them.
    """

    path: Path
    block: Block | None
    hit: Hit | None
    candidates: tuple[Candidate, ...]
    reasons: tuple[Reason, ...]
    is_compared: bool = True
    exhausted: bool = False


def _no_more(block: Block, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    return reasons


@dataclass(frozen=True)
class Decision:
    """What was decided of one query.

    Args:
        outcomes: What was found for each block.
        unheeded: Why caches that the query's hint asks for are not used.
        why: Gives all that can be said of a block's miss.
        served_once: Some rewrite of a subquery gives each of its rows once, which is right if it is
            that of EXISTS or IN.
        apart: What was decided of the queries of EXISTS and IN, which Spark asks about apart;
            filled where a query is explained.
        spent: What it took; None where nothing was compared.
        exhausted: What there was too little of to look at all of the query.
    """

    outcomes: tuple[BlockOutcome, ...] = ()
    unheeded: tuple[Reason, ...] = ()
    why: Why = _no_more
    served_once: bool = False
    apart: tuple[Decision, ...] = ()
    spent: Spent | None = None
    exhausted: Exhausted | None = None

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The blocks that are answered from caches."""
        found = [o.hit for o in self.outcomes if o.hit is not None]
        return (*found, *(hit for each in self.apart for hit in each.hits))

    @property
    def is_exact(self) -> bool:
        """Whether the answer is that of the tables as they are now."""
        return all(hit.exact for hit in self.hits)

    @property
    def reportable(self) -> tuple[BlockOutcome, ...]:
        """The outcomes worth reporting: hits, and blocks that are not the mere input of another.
        A missed ORDER BY … LIMIT or HAVING says why no cache of some rows or groups serves, the
        block in it the rest.

        The rows that an aggregate reads are a block as well, and no cube ever answers it: why not
        says nothing to a person who asked about the aggregate.
        """
        missed = [o for o in self.outcomes if o.block is not None and o.hit is None]
        blocks = [o.path for o in missed if o.block is not None and not o.block.has_tail]
        found = tuple(
            o
            for o in self.outcomes
            if o.hit is not None or not any(_inside(o.path, path) for path in blocks)
        )
        return (*found, *(outcome for each in self.apart for outcome in each.reportable))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The caches considered for what is reportable."""
        return tuple(c for o in self.reportable for c in o.candidates)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the blocks that are not answered are not, each once; first of all why a cache that
        the hint asks for is not used."""
        found = [*self.unheeded]
        found += [r for o in self.reportable if o.hit is None for r in o.reasons]
        return tuple(dict.fromkeys(found))

    def with_full_reasons(self) -> Decision:
        """The same with all that can be said of its misses, which takes a while."""
        outcomes = tuple(
            o
            if o.hit is not None or o.block is None
            else replace(o, reasons=self.why(o.block, o.reasons))
            for o in self.outcomes
        )
        return replace(self, outcomes=outcomes)

    def without_hits(self, reason: Reason, path: Path | None = None) -> Decision:
        """The same where nothing is answered after all.

        Args:
            reason: Why not.
            path: Where the block stands that is not; None for all.
        """
        outcomes = tuple(
            o
            if o.hit is None or path not in (None, o.path)
            else replace(o, hit=None, reasons=(*o.reasons, reason))
            for o in self.outcomes
        )
        return replace(self, outcomes=outcomes)

    def with_candidates(self, told: Decision) -> Decision:
        """The same with what is known of the caches that were considered.

        Args:
            told: What was found when each candidate was looked at, which may choose another.
        """
        mine = {outcome.path: outcome for outcome in self.outcomes}
        answered = [hit.path for hit in self.hits]
        outcomes = []
        for each in told.outcomes:
            own = mine.pop(each.path, None)
            if own is not None:
                outcomes.append(_considered(own, each))
            elif each.hit is None and not any(_inside(each.path, path) for path in answered):
                outcomes.append(each)
        outcomes += mine.values()
        return replace(self, outcomes=tuple(outcomes), unheeded=told.unheeded, spent=told.spent)

    def reasons_by_table(self, everywhere: Iterable[str] = ()) -> dict[Reason, set[str]]:
        """All that can be said of the misses, each reason with the places of the tables that it
        concerns: by them it is known later which caches a miss concerns. Takes a while.

        Args:
            everywhere: The places for reasons that are not of one block.
        """
        full = self.with_full_reasons()
        found: dict[Reason, set[str]] = {reason: set() for reason in full.reasons}
        for outcome in full.reportable:
            if outcome.hit is None and outcome.block is not None:
                for reason in outcome.reasons:
                    found[reason] |= {relation.key for relation in outcome.block.tables}
        everywhere = set(everywhere)
        return {reason: places or set(everywhere) for reason, places in found.items()}


def _considered(outcome: BlockOutcome, told: BlockOutcome) -> BlockOutcome:
    """An outcome with the candidates of another decision on its block."""
    if outcome.hit is not None:
        return replace(outcome, candidates=chosen_by(told.candidates, outcome.hit))
    if told.hit is not None:
        others = (
            replace(c, outcome="valid") if c.outcome == "chosen" else c for c in told.candidates
        )
        return replace(outcome, candidates=tuple(others))
    return replace(outcome, candidates=told.candidates, reasons=told.reasons or outcome.reasons)


def chosen_by(candidates: tuple[Candidate, ...], hit: Hit) -> tuple[Candidate, ...]:
    """The candidates of a block, of which the one that its hit reads is the chosen one.

    Args:
        candidates: What was said of them.
        hit: The hit.
    """
    chosen = set_names(hit.cache.plan, hit.rewrite.grouping_set)

    def told(one: Candidate) -> Candidate:
        if one.cache == hit.rewrite.cache and one.grouping_set == chosen:
            return Candidate(one.cache, one.grouping_set, "chosen", (), hit.rewrite.cost)
        return replace(one, outcome="valid") if one.outcome == "chosen" else one

    return tuple(sorted(map(told, candidates), key=lambda c: c.outcome != "chosen"))


def refused(*reasons: Reason) -> Decision:
    """The decision about a query that was compared with no cache.

    Args:
        reasons: Why.
    """
    return Decision((BlockOutcome((), None, None, (), reasons, is_compared=False),))


def _inside(path: Path, outer: Path) -> bool:
    return len(path) > len(outer) and path[: len(outer)] == outer
