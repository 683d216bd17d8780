"""When a cache asks to be refreshed: the triggers of the REFRESH clause, and the moments they name.

Cron expressions are read by cronsim, which follows Debian's cron: a job at a fixed time that the
clock skips in spring runs right after the gap, one that the clock repeats in autumn runs once.
"""

from __future__ import annotations

import functools
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, TypeAlias

from cronsim import CronSim, CronSimError

CRON_FIELD_COUNT: Final = 5
_ANY: Final = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class OnDemand:
    """Refreshed by REFRESH RELATIONAL CACHE alone."""


@dataclass(frozen=True, slots=True)
class OnCommit:
    """Refreshed after commits to base tables, at most once in so many seconds if given."""

    at_most_every_seconds: int | None = None

    def __post_init__(self) -> None:
        check_seconds(self.at_most_every_seconds)


@dataclass(frozen=True, slots=True)
class TargetLag:
    """Refreshed so that the cache lags its base tables by no more than so many seconds."""

    seconds: int

    def __post_init__(self) -> None:
        check_seconds(self.seconds)


@dataclass(frozen=True, slots=True)
class Every:
    """Refreshed in a fixed rhythm."""

    seconds: int

    def __post_init__(self) -> None:
        check_seconds(self.seconds)


@dataclass(frozen=True, slots=True)
class Cron:
    """Refreshed by a five-field cron expression; weekdays as in cron, 0 and 7 are Sunday."""

    expression: str
    time_zone: str | None = None


Trigger: TypeAlias = OnDemand | OnCommit | TargetLag | Every | Cron


def check_seconds(seconds: int | None) -> None:
    """Refuse an interval that is none.

    Args:
        seconds: The interval; None is no interval at all.

    Raises:
        ValueError: It is zero or less.
    """
    if seconds is not None and seconds <= 0:
        raise ValueError(f"an interval is positive, not {seconds} seconds")


@functools.lru_cache(maxsize=4096)  # a scheduler asks the same of each cache every second
def next_fire(cron: Cron, after: datetime) -> datetime | None:
    """The first moment after `after` that a cron expression names.

    Args:
        cron: The expression and its time zone, UTC if it names none.
        after: An aware datetime.

    Returns:
        The moment in UTC; None if there is none within 50 years (30 February).

    Raises:
        ValueError: The expression or the zone is not one.
    """
    zone = _zone(cron)
    try:
        fires = (fire.astimezone(UTC) for fire in CronSim(cron.expression, after.astimezone(zone)))
        # In the hour that an autumn night repeats, cronsim goes on from the first of the two.
        return next((fire for fire in fires if fire > after), None)
    except (CronSimError, ValueError) as error:  # ValueError: thousands of digits
        shown = repr(cron.expression[:100])
        raise ValueError(f"{shown} is not a cron expression: {str(error)[:100]}") from None


def check_cron(cron: Cron) -> None:
    """Refuse what names no moments: an expression that is none, or a zone that is not known here.

    Raises:
        ValueError: Says which.
    """
    next_fire(cron, _ANY)


def _zone(cron: Cron) -> tzinfo:
    if not cron.time_zone:
        return UTC
    try:
        return zoneinfo.ZoneInfo(cron.time_zone)
    except (KeyError, ValueError, OSError):
        said = f"there is no time zone {cron.time_zone!r} on this machine (is tzdata up to date?)"
        raise ValueError(said) from None


def is_cron_field(index: int, text: str) -> bool:
    """True if a text can stand in one field of a cron expression.

    Args:
        index: The field's place, from 0 for the minute to 4 for the day of week.
        text: The field.
    """
    probe = ["*"] * CRON_FIELD_COUNT
    probe[index] = text
    try:
        CronSim(" ".join(probe), _ANY)
    except (CronSimError, ValueError):  # ValueError: thousands of digits
        return False
    return True


def seconds(amount: float) -> timedelta:
    """A span of so many seconds."""
    return timedelta(seconds=amount)
