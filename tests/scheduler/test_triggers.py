"""Cron moments in time zones with daylight saving, and what is no cron expression."""

from __future__ import annotations

import functools
import itertools
import zoneinfo
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.triggers import (
    Cron,
    Every,
    OnCommit,
    TargetLag,
    check_cron,
    is_cron_field,
    next_fire,
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def fires(expression: str, zone: str | None, after: str, count: int = 1) -> list[str]:
    found, moment = [], at(after)
    for _ in range(count):
        moment = next_fire(Cron(expression, zone), moment)
        found.append(moment.strftime("%Y-%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("expression", "after", "next_one"),
    [
        ("0 6 * * mon-fri", "2026-11-20 06:00", "2026-11-23 06:00"),
        ("0 6 * * 0", "2026-11-21", "2026-11-22 06:00"),
        ("0 6 * * 7", "2026-11-21", "2026-11-22 06:00"),
        ("*/15 * * * *", "2026-11-21 10:07", "2026-11-21 10:15"),
        ("0 0 29 2 *", "2026-01-01", "2028-02-29 00:00"),
        ("0 0 13 * fri", "2026-11-21", "2026-11-27 00:00"),  # either day, as in cron
        ("30 5,17 1 jan *", "2026-11-21", "2027-01-01 05:30"),
    ],
)
def test_as_in_cron(expression: str, after: str, next_one: str) -> None:
    assert fires(expression, None, after) == [next_one]


def test_a_local_time_moves_with_daylight_saving() -> None:
    assert fires("0 6 * * *", "Europe/Berlin", "2026-03-27 12:00", 3) == [
        "2026-03-28 05:00",
        "2026-03-29 04:00",
        "2026-03-30 04:00",
    ]


def test_a_time_that_the_clock_skips_comes_after_the_gap() -> None:
    # 02:30 does not exist in Berlin on 29 March 2026: 03:00 summer time is 01:00 UTC
    found = fires("30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", 2)
    assert found == ["2026-03-29 01:00", "2026-03-30 00:30"]


def test_a_time_that_the_clock_repeats_comes_once() -> None:
    # 02:30 comes twice in Berlin on 25 October 2026
    found = fires("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", 2)
    assert found == ["2026-10-25 00:30", "2026-10-26 01:30"]


def test_the_second_of_two_equal_hours_does_not_go_back_to_the_first() -> None:
    # 02:31 for the second time, of a job that ran at 02:30 of the first
    assert fires("30 2 * * *", "Europe/Berlin", "2026-10-25 01:31") == ["2026-10-26 01:30"]
    assert fires("30 2 * * *", "Europe/Berlin", "2026-10-25 01:10") == ["2026-10-26 01:30"]


@functools.cache
def changes(zone: str) -> tuple[datetime, ...]:
    """The moments from 2010 to 2014 at which a zone's clocks change, to the minute."""
    there, found = zoneinfo.ZoneInfo(zone), []

    def offset(moment: datetime) -> timedelta | None:
        return moment.astimezone(there).utcoffset()

    weeks = [at("2010-01-01") + timedelta(weeks=n) for n in range(5 * 52)]
    for low, high in itertools.pairwise(weeks):
        if offset(low) == offset(high):
            continue
        while high - low > timedelta(minutes=1):
            middle = low + (high - low) / 2
            low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
        found.append(high.replace(second=0, microsecond=0))
    return tuple(found)


ZONES = sorted(zoneinfo.available_timezones())
EXPRESSIONS = (
    "30 2 * * *",
    "0 * * * *",
    "*/10 * * * *",
    "15,45 1-3 * * *",
    "0 0 * * *",
    "59 23 * * *",
    "5 */2 * * *",
    "*/7 0,1,2,3 * * *",
    "30 1 * * 0",
)


@settings(max_examples=40)
@given(
    st.sampled_from(ZONES),
    st.sampled_from(EXPRESSIONS),
    st.integers(0, 20),
    st.integers(-3 * 3600, 3 * 3600),
    st.floats(0, 0.99),
)
def test_around_each_change_of_clocks_a_fire_comes_after_and_once(
    zone: str, expression: str, which: int, off: int, between: float
) -> None:
    moments = changes(zone) or (at("2020-06-01"),)
    cron = Cron(expression, zone)
    seen = [moments[which % len(moments)] + timedelta(seconds=off)]
    for _ in range(4):
        found = next_fire(cron, seen[-1])
        assert found is not None and found > seen[-1]
        seen.append(found)
    for fire, following in itertools.pairwise(seen):
        assert next_fire(cron, fire + (following - fire) * between) == following
    if "*" not in "".join(expression.split()[:2]):
        walls = [m.astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=None) for m in seen[1:]]
        assert len(set(walls)) == len(walls), "a job of a fixed time ran twice in a night"


def test_every_hour_goes_on_through_the_change() -> None:
    assert fires("0 * * * *", "Europe/Berlin", "2026-10-24 23:30", 3) == [
        "2026-10-25 00:00",
        "2026-10-25 01:00",
        "2026-10-25 02:00",
    ]


def test_never() -> None:
    with pytest.raises(ValueError, match="not a cron expression"):
        next_fire(Cron("0 0 30 2 *"), at("2026-01-01"))
    with pytest.raises(ValueError, match="not a cron expression"):
        next_fire(Cron("61 * * * *"), at("2026-01-01"))


def test_a_field_of_thousands_of_digits() -> None:
    assert not is_cron_field(0, "9" * 5_000)
    with pytest.raises(ValueError, match="is not a cron expression") as refused:
        check_cron(Cron("9" * 5_000 + " * * * *"))
    assert len(str(refused.value)) < 300


def test_fields() -> None:
    assert is_cron_field(0, "*/15") and is_cron_field(4, "mon-fri") and is_cron_field(4, "7")
    assert not is_cron_field(1, "24") and not is_cron_field(2, "0") and not is_cron_field(0, "*/0")


@pytest.mark.parametrize("make", [Every, TargetLag, OnCommit])
def test_an_interval_is_positive(make) -> None:
    assert make(1)
    with pytest.raises(ValueError, match="positive"):
        make(0)
