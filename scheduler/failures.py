"""What follows from a scheduled refresh that failed: another try later, or a pause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scheduler.triggers import seconds

MAX_FAILURES: Final = 5
# What passes is looked for each 20 seconds at least, and leaves room for failures of other kinds.
_MAX_PASSING: Final = 3
# What never pauses is looked for ever more rarely, by how long it has lasted: after ten minutes
# each 75 seconds, after an hour each five minutes.
_SHARE_OF_LASTED: Final = 1 / 8
_LONGEST_LASTING_SECONDS: Final = 300.0
_FIRST_SECONDS: Final = 5.0
_LONGEST_SECONDS: Final = 1800.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do about a cache whose refresh failed.

    Args:
        failures: How many are in a row now.
        retry_at: When to try again; None if it is paused.
        paused_because: Why it is paused; None if it is not.
    """

    failures: int
    retry_at: datetime | None
    paused_because: str | None


def after_failure(
    failures_before: int,
    *,
    permanent: bool,
    error: str,
    now: datetime,
    chance: Callable[[], float],
    passing_until: datetime | None = None,
    lasting_since: datetime | None = None,
) -> Verdict:
    """Back-off doubles from five seconds to half an hour, each time shortened by up to a half at
    random, so that caches that failed together do not come back together ("full jitter" would let
    some come back at once).

    Args:
        failures_before: Failures in a row before this one.
        permanent: True if trying again cannot help until somebody mends the cause.
        error: What went wrong.
        now: This moment.
        chance: A number from 0 to 1.
        passing_until: Before that moment the cause may pass by itself: it is neither permanent nor
            counted towards a pause, and tried again once more at that moment.
        lasting_since: Since when a cause has lasted that says nothing of the cache, as of a storage
            that cannot be asked: it never leads to a pause, however long it lasts.

    Returns:
        The verdict: a pause at once for permanent causes, and after five failures in a row.
    """
    failures = failures_before + 1
    if passing_until is not None and now < passing_until:
        failures = min(failures, _MAX_PASSING)
        return Verdict(failures, min(passing_until, _retry(failures, now, chance)), None)
    if lasting_since is not None:
        lasted = (now - lasting_since).total_seconds() * _SHARE_OF_LASTED
        wait = max(_seconds(_MAX_PASSING), min(_LONGEST_LASTING_SECONDS, lasted))
        failures = min(failures, _MAX_PASSING)
        return Verdict(failures, now + seconds(wait * (1 - chance() / 2)), None)
    if permanent:
        return Verdict(failures, None, f"it cannot succeed until this is mended: {error}")
    if failures >= MAX_FAILURES:
        return Verdict(failures, None, f"{failures} scheduled refreshes failed in a row: {error}")
    return Verdict(failures, _retry(failures, now, chance), None)


def _retry(failures: int, now: datetime, chance: Callable[[], float]) -> datetime:
    return now + seconds(_seconds(failures) * (1 - chance() / 2))


def _seconds(failures: int) -> float:
    return min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** (failures - 1))
