"""What is said of a block that no cache answers: the reasons, the nearest first."""

from __future__ import annotations

from collections.abc import Iterable

from matcher.model.ir import Block, Miss
from matcher.model.reasons import Reason, ReasonCode


def no_cache(block: Block) -> Reason:
    """The index proposes nothing."""
    return _none(
        f"no cache covers {_names(block)} with the columns that the query needs",
        "EXPLAIN REWRITE names what the nearest caches lack",
    )


def none_near(block: Block) -> Reason:
    """All were looked at, and none can be compared with the block."""
    return _none(f"no cache reads {_names(block)}", "CREATE RELATIONAL CACHE makes one")


def _none(detail: str, suggestion: str) -> Reason:
    return Reason(ReasonCode.NO_CACHE_FOR_TABLES, detail, suggestion)


def _names(block: Block) -> str:
    return ", ".join(dict.fromkeys(r.name for r in block.relations)) or "no table"


def best_reasons(misses: Iterable[Miss], otherwise: Reason) -> tuple[Reason, ...]:
    """The refusals that came furthest first: of caches that match and may not serve now, then of
    views before whole caches, the least lacking ahead; that a cache lacks a table last, as it may
    be joined.

    Args:
        misses: The refusals.
        otherwise: What is said where there is none.
    """

    def nearness(miss: Miss) -> tuple[bool, bool, bool, int]:
        lacks_table = any(r.code is ReasonCode.TABLE_NOT_IN_CACHE for r in miss.reasons)
        whole = miss.grouping_set is None and miss.lacking == 0
        return not miss.matched, lacks_table, whole, miss.lacking

    ordered = sorted(misses, key=nearness)
    found = dict.fromkeys(r for m in ordered for r in m.reasons)
    return tuple(found) or (otherwise,)
