"""The winner among valid rewrites: least cost, ties by cache name and grouping id, so that the
choice never depends on order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matcher.model.ir import Candidate, Rewrite
from matcher.model.reasons import Reason, ReasonCode


def preference(rewrite: Rewrite) -> tuple[int, float, str, int]:
    """The sort key by which rewrites are preferred, smallest first; a cache that has all tables
    comes before one that must be joined with some."""
    number = rewrite.grouping_set.grouping_id if rewrite.grouping_set is not None else -1
    return len(rewrite.extra), rewrite.cost, rewrite.cache, number


def rank(rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """All valid rewrites, the best first."""
    return sorted(rewrites, key=preference)


def not_named(cache: str) -> Reason:
    """Why a cache is passed over that the query's hint RELATIONAL_CACHE does not name."""
    return Reason(
        ReasonCode.HINT,
        f"the query's hint RELATIONAL_CACHE does not name {cache}",
        f"remove the hint, or name {cache} in it",
    )


def unheeded(
    forced: Iterable[str],
    used: Iterable[str],
    known: Mapping[str, str],
    candidates: Sequence[Candidate],
) -> tuple[Reason, ...]:
    """Why caches that the query's hint asks for do not answer, one reason for each.

    Args:
        forced: lower-case names in the hint.
        used: the caches that answer.
        known: lower-case names of all caches, to their names.
        candidates: what was considered, for the reasons.
    """
    answering = {name.lower() for name in used}
    found = []
    for name in sorted(set(forced) - answering):
        if name not in known:
            found.append(
                Reason(
                    ReasonCode.HINT,
                    f"the hint RELATIONAL_CACHE asks for {name}, and there is no such cache",
                    "SHOW RELATIONAL CACHES lists them",
                )
            )
            continue
        why = [r for c in candidates if c.cache.lower() == name for r in c.reasons]
        detail = f": {why[0].code.value}, {why[0].detail}" if why else ""
        found.append(
            Reason(
                ReasonCode.HINT,
                f"the hint RELATIONAL_CACHE asks for {known[name]}, which cannot answer{detail}",
                why[0].suggestion if why else "EXPLAIN REWRITE says why",
            )
        )
    return tuple(found)
