"""One look of the scheduler: which refreshes to ask for now. Pure; the loop around it lives where
the metastore is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from scheduler.due import CacheStatus, Due, believed, next_due
from scheduler.order import waits_for


@dataclass(frozen=True, slots=True)
class Wanted:
    """A refresh to ask for."""

    cache_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found.

    Args:
        wanted: The refreshes to ask for, longest due first.
        next_at: When the next cache is due that is not due yet; None if nothing is known.
    """

    wanted: tuple[Wanted, ...]
    next_at: datetime | None


def look(statuses: Iterable[CacheStatus], now: datetime) -> Look:
    """What is due now. A cache that is defined over others goes after them (`waits_for`).

    Args:
        statuses: All caches.
        now: This moment.
    """
    known = [believed(status, now) for status in statuses]
    due: list[tuple[Due, CacheStatus]] = []
    later: list[datetime] = []
    for status in known:
        found = next_due(status)
        if found is not None and found.at <= now:
            due.append((found, status))
        elif found is not None:
            later.append(found.at)
    by_id = {s.id: s for s in known}
    now_due = {s.id for _, s in due}

    def waits(found: Due, status: CacheStatus) -> bool:
        sources = (by_id[i] for i in status.reads if i in by_id)
        return any(waits_for(s, found.at, s.id in now_due, now) for s in sources)

    due.sort(key=lambda pair: (pair[0].at, pair[1].name))
    wanted = tuple(Wanted(s.id, d.why) for d, s in due if not waits(d, s))
    return Look(wanted, min(later, default=None))
