"""Cron moments in time zones with daylight saving, and what is no cron expression."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scheduler.triggers import Cron, Every, OnCommit, TargetLag, is_cron_field, next_fire


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


def test_fields() -> None:
    assert is_cron_field(0, "*/15") and is_cron_field(4, "mon-fri") and is_cron_field(4, "7")
    assert not is_cron_field(1, "24") and not is_cron_field(2, "0") and not is_cron_field(0, "*/0")


@pytest.mark.parametrize("make", [Every, TargetLag, OnCommit])
def test_an_interval_is_positive(make) -> None:
    assert make(1)
    with pytest.raises(ValueError, match="positive"):
        make(0)
