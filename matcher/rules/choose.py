"""The winner among valid rewrites: least cost, ties by cache name and grouping id, so that the
choice never depends on order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from matcher.model.ir import Candidate, Rewrite
from matcher.model.message import CacheName, Word, names_in
from matcher.model.reasons import Reason, ReasonCode


def preference(rewrite: Rewrite) -> tuple[int, float, str, int]:
    """The sort key by which rewrites are preferred, smallest first; a cache that has all tables
    comes before one that must be joined with some."""
    number = rewrite.grouping_set.grouping_id if rewrite.grouping_set is not None else -1
    return len(rewrite.extra), rewrite.cost, rewrite.cache, number


def rank(rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """All valid rewrites, the best first."""
    return sorted(rewrites, key=preference)


_NOT_NAMED: Final = "the query's hint RELATIONAL_CACHE does not name {cache}"


def not_named(cache: str) -> Reason:
    """Why a cache is passed over that the query's hint RELATIONAL_CACHE does not name."""
    return Reason(
        ReasonCode.HINT,
        _NOT_NAMED,
        "remove the hint, or name {cache} in it",
        cache=CacheName(cache),
    )


def without_not_named(reasons: Iterable[Reason], instead: Iterable[Reason]) -> tuple[Reason, ...]:
    """Reasons without those that the hint does not name a cache, where it names none that exists:
    what is at fault is the name in it, which is told once, and not the other caches.

    Args:
        reasons: Of a block or a candidate.
        instead: Why the hint cannot be heeded.
    """
    found: list[Reason] = []
    for reason in reasons:
        found += instead if reason.template == _NOT_NAMED else (reason,)
    return tuple(dict.fromkeys(found))


def unheeded(
    forced: Iterable[str],
    used: Iterable[str],
    known: Mapping[str, str],
    candidates: Sequence[Candidate],
    meant: Callable[[str, Iterable[str]], str | None],
) -> tuple[Reason, ...]:
    """Why caches that the query's hint asks for do not answer, one reason for each.

    Args:
        forced: lower-case names in the hint.
        used: the caches that answer.
        known: lower-case names of all caches, to their names.
        candidates: what was considered, for the reasons, and for the names that may be meant.
        meant: the one of some names that another one was most likely meant to be.
    """
    answering = {name.lower() for name in used}
    found = []
    for name in sorted(set(forced) - answering):
        if name not in known:
            found.append(_no_such(name, meant(name, dict.fromkeys(c.cache for c in candidates))))
            continue
        why = [r for c in candidates if c.cache.lower() == name for r in c.reasons]
        found.append(cannot_answer(known[name], why[0] if why else None))
    return tuple(found)


def _no_such(name: str, meant: str | None) -> Reason:
    fault = "the hint RELATIONAL_CACHE asks for {cache}, and there is no such cache"
    lists = "SHOW RELATIONAL CACHES lists those that exist"
    cache = CacheName(name)
    if meant is None:
        return Reason(ReasonCode.HINT, fault, lists, cache=cache)
    cure = "did you mean {meant}? " + lists
    return Reason(ReasonCode.HINT, fault, cure, cache=cache, meant=CacheName(meant))


_CANNOT: Final = "the hint RELATIONAL_CACHE asks for {cache}, which cannot answer"


def cannot_answer(cache: str, why: Reason | None) -> Reason:
    """Why the query's hint for a cache is not heeded.

    Args:
        cache: The cache's name.
        why: Why the cache cannot answer; None where only EXPLAIN REWRITE knows.
    """
    name = CacheName(cache)
    if why is None:
        return Reason(ReasonCode.HINT, _CANNOT, "EXPLAIN REWRITE says why", cache=name)
    return Reason(
        ReasonCode.HINT,
        _CANNOT + ": {code}, {why}",
        "{cure}",
        cache=name,
        code=Word(why.code.value),
        why=why.fault,
        cure=why.cure,
    )


def refused_hint(reason: Reason) -> str | None:
    """The cache of which `cannot_answer` speaks; None for any other reason.

    Args:
        reason: A reason.
    """
    if reason.code is not ReasonCode.HINT or not reason.template.startswith(_CANNOT):
        return None
    return names_in(reason.fault, CacheName)[0]
