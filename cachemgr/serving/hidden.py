"""EXPLAIN REWRITE for a user of a server: of caches that he may not be answered from he is told
that alone. Why such a cache does not match would tell its columns and predicates one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from cachemgr.serving.decision import BlockOutcome, Decision
from matcher.model.ir import Candidate
from matcher.model.reasons import Reason
from matcher.rules.choose import cannot_answer, refused_hint

WhyNot = Callable[[str], Reason | None]


def without_hidden(decision: Decision, why_not: WhyNot) -> Decision:
    """A decision without what it tells of caches that its asker may not be answered from.

    Args:
        decision: One with all its candidates.
        why_not: Why he may not be answered from the cache of a name; None if he may.
    """
    asked: dict[str, Reason | None] = {}

    def refusal(name: str) -> Reason | None:
        if name not in asked:
            asked[name] = why_not(name)
        return asked[name]

    outcomes = tuple(_outcome(outcome, refusal) for outcome in decision.outcomes)
    refused = [
        (candidate.cache, reason)
        for outcome in decision.outcomes
        for candidate in outcome.candidates
        if (reason := refusal(candidate.cache)) is not None
    ]
    return replace(
        decision,
        outcomes=outcomes,
        unheeded=tuple(_hint(reason, refused) for reason in decision.unheeded),
        apart=tuple(without_hidden(each, why_not) for each in decision.apart),
    )


def _outcome(outcome: BlockOutcome, refusal: WhyNot) -> BlockOutcome:
    shown: list[Candidate] = []
    told: set[Reason] = set()
    hidden: dict[Reason, Reason] = {}
    for candidate in outcome.candidates:
        reason = refusal(candidate.cache)
        if reason is None:
            shown.append(candidate)
            told.update(candidate.reasons)
        else:
            shown.append(Candidate(candidate.cache, None, "refused", (reason,)))
            hidden |= dict.fromkeys(candidate.reasons, reason)
    reasons = (r if r in told else hidden.get(r, r) for r in outcome.reasons)
    return replace(
        outcome,
        candidates=tuple(dict.fromkeys(shown)),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _hint(reason: Reason, refused: Iterable[tuple[str, Reason]]) -> Reason:
    """What is said of a cache that the hint asks for, which quotes why it does not match."""
    asked = refused_hint(reason)
    for name, why in refused:
        if name == asked:
            return cannot_answer(name, why)
    return reason
