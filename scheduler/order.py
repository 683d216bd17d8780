"""The order of nested caches: one that is built from others is refreshed after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from scheduler.due import CacheStatus


def cycle_in(reads: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """A circle of caches that read each other, its first repeated at the end; empty if there is
    none.

    Args:
        reads: For each cache the caches that it reads.
    """
    try:
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        # graphlib lists each node after the one that it is read by
        return tuple(reversed(error.args[1]))
    return ()


def may_start(status: CacheStatus, unsettled: frozenset[str]) -> bool:
    """True if none of the caches that it is built from is due or being refreshed.

    Args:
        status: The cache.
        unsettled: Ids of the caches that are due, wait or run.
    """
    return status.reads.isdisjoint(unsettled)
