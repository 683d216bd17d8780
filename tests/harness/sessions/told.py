"""Whether what was told of a query is what its executed plan reads: the cache's files or the
base's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import cachemgr

# Without it the folders that a plan reads are cut off in its text.
WHOLE_TEXTS: Final = {
    "spark.sql.maxMetadataStringLength": "100000",
    "spark.sql.debug.maxToStringFields": "10000",
}
_HELD: Final = "In-memory table relational_cache."  # whatever folder its rows came from
_CONSTANT: Final = ("LocalTableScan", "OneRowRelation", "EmptyRelation")


@dataclass(frozen=True)
class Counted:
    """What the counters of a session grew by."""

    hits: int = 0
    misses: int = 0
    errors: int = 0

    @property
    def decisions(self) -> int:
        """How many queries were decided, subqueries that Spark plans apart among them."""
        return self.hits + self.misses


def counted(session: Any, act: Callable[[], object]) -> Counted:
    """What the counters grow by.

    Args:
        session: An enabled session.
        act: What is done in it.
    """
    before = cachemgr.counters(session)
    act()
    return grown(before, cachemgr.counters(session))


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> Counted:
    """The difference of two looks at the counters."""
    return Counted(*(after.get(n, 0) - before.get(n, 0) for n in ("hits", "misses", "errors")))


def wrong_of_the_plan(frame: Any, found: Counted, caches: str, bases: str) -> str:
    """What does not agree between counters and the plan that ran; empty if nothing.

    Args:
        frame: A DataFrame whose own rows were collected.
        found: What the counters grew by then.
        caches: The folder of the caches.
        bases: The folder of the base tables.
    """
    text = frame._jdf.queryExecution().executedPlan().toString()
    reads_cache = f"{caches}/" in text or _HELD in text
    if found.errors:
        return f"errors: {found}"
    if reads_cache and not found.hits:
        return f"a cache was read, and told was {found}\n{text}"
    # a count that Delta answers from statistics, and what no row can come of, are constants
    local = any(word in text for word in _CONSTANT)
    if found.hits and not reads_cache and f"{bases}/" in text and not local:
        return f"no cache was read, and told was {found}\n{text}"
    return ""


def wrong_of_explain(explained: Any, found: Counted) -> str:
    """What does not agree between EXPLAIN REWRITE and the counters; empty if nothing.

    Args:
        explained: What was said before the query ran.
        found: What the counters grew by as it ran.
    """
    own = explained if explained.own is None else explained.own
    hits = sum(part.hit for part in (own, *explained.subqueries))
    if hits == found.hits:
        return ""
    return f"EXPLAIN REWRITE tells of {hits} hits, and counted were {found}\n{explained.text()}"
