"""Which caches are due, decided from what the metastore knows alone: nothing is remembered between
two looks, so a process that was away for a day comes to the same answer as one that never slept.

Missed runs coalesce: a cache is due or it is not, however many of its moments have passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, assert_never

from scheduler.triggers import (
    Cron,
    Every,
    OnCommit,
    OnDemand,
    TargetLag,
    Trigger,
    next_fire,
    seconds,
)

# Of its lag a cache may spend the rest; its refreshes may take this much longer than they did.
_SLOWER: Final = 1.5


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """What is known of one cache at one moment.

    Args:
        id: The cache's id.
        name: Its name, for messages.
        trigger: Its REFRESH clause.
        created_at: When it was created.
        paused: True if its schedule is off.
        busy: True if a refresh of it waits or runs.
        damaged: True if its files are gone, so that it answers nothing.
        running_since: When the refresh that runs began; None if none runs.
        started_at: When its last refresh began, whatever started it and however it ended.
        behind_since: When the first commit was made that its snapshot lacks; None if there is none.
        usual_seconds: How long its refreshes take.
        failures: Scheduled refreshes that failed since the last one that did not.
        retry_at: When to try again after these.
        reads: Ids of the caches that it is defined over, also through others.
    """

    id: str
    name: str
    trigger: Trigger
    created_at: datetime
    paused: bool = False
    busy: bool = False
    started_at: datetime | None = None
    behind_since: datetime | None = None
    usual_seconds: float = 0.0
    failures: int = 0
    retry_at: datetime | None = None
    reads: frozenset[str] = frozenset()
    running_since: datetime | None = None
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """A moment from which a cache is due, and why, in words for the run's record."""

    at: datetime
    why: str


def next_due(status: CacheStatus) -> Due | None:
    """When a cache is due next as far as is known now, in the past if it is due already.

    Args:
        status: What is known of it.

    Returns:
        The moment; None if nothing but a commit, a request or RESUME will make it due.
    """
    if status.paused or status.busy or isinstance(status.trigger, OnDemand):
        return None
    if status.failures and status.retry_at is not None:
        return Due(status.retry_at, f"retry after {_times(status.failures)}")
    if status.started_at is None:
        return Due(status.created_at, "never refreshed")
    if status.damaged:
        return Due(status.started_at, "its files are damaged")
    return _by_trigger(status, status.started_at)


def believed(status: CacheStatus, now: datetime) -> CacheStatus:
    """A status that no clock in the future holds up: a commit that is there was made by now, and
    after the refresh that lacks it began.

    Args:
        status: What is known of a cache.
        now: This moment.
    """
    if status.behind_since is None or status.behind_since <= now:
        return status
    return replace(status, behind_since=min(status.started_at or now, now))


def _by_trigger(status: CacheStatus, started_at: datetime) -> Due | None:
    trigger = status.trigger
    match trigger:
        case OnDemand():
            return None
        case Every(period):
            return Due(started_at + seconds(period), f"every {period} s")
        case Cron():
            at = next_fire(trigger, started_at)
            return None if at is None else Due(at, f"cron {trigger.expression}")
        case OnCommit(at_most_every):
            if status.behind_since is None:
                return None
            earliest = started_at + seconds(at_most_every or 0)
            return Due(max(status.behind_since, earliest), "a base table has a new version")
        case TargetLag(lag):
            if status.behind_since is None:
                return None
            left = max(0.0, lag - _SLOWER * status.usual_seconds)
            return Due(status.behind_since + seconds(left), f"target lag {lag} s")
        case _:
            assert_never(trigger)


def _times(failures: int) -> str:
    return "a failure" if failures == 1 else f"{failures} failures in a row"
