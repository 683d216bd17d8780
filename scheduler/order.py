"""The order of nested caches: one that is defined over others is refreshed after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Final

from scheduler.due import CacheStatus
from scheduler.triggers import seconds

# A refresh that takes longer than an hour and three times what it used to take may never end.
_PATIENCE: Final = 3600.0


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


def sources_of(reads: Mapping[str, tuple[str, ...]], cache_id: str) -> tuple[str, ...]:
    """The caches that one is defined over, directly or through others, nearest first.

    Args:
        reads: For each live cache the ids of those that its definition names.
        cache_id: The cache.
    """
    found: dict[str, None] = {}
    level = list(reads.get(cache_id, ()))
    while level:
        new = [i for i in dict.fromkeys(level) if i in reads and i not in found and i != cache_id]
        found.update(dict.fromkeys(new))
        level = [i for source in new for i in reads[source]]
    return tuple(found)


def waits_for(source: CacheStatus, due_at: datetime, is_due: bool, now: datetime) -> bool:
    """True if a cache that is due waits for one that it is defined over, to be built from it.

    It waits for one refresh of the source that begins after it became due itself, however that
    ends. So a source that fails, is paused, is always due again or never comes to its end holds it
    up for that long at most; then it is built from whatever there is.

    Args:
        source: The cache that it is defined over.
        due_at: When it became due itself.
        is_due: True if the source is due.
        now: This moment.
    """
    if source.busy:
        since = source.running_since
        return since is None or now - since < seconds(max(_PATIENCE, 3 * source.usual_seconds))
    return is_due and (source.started_at is None or source.started_at < due_at)
