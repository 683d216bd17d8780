"""STRICT, MAX STALENESS and UNLIMITED, on plain data."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cachemgr.metastore.records import Freshness
from cachemgr.spark.freshness import CLOCK_SKEW_MS, CommitTimes, by_location, check_freshness
from cachemgr.spark.served import ServedCache
from matcher.ir import CachePlan
from matcher.reasons import ReasonCode

NOW = 1_000_000_000


@dataclass(frozen=True)
class Seen:
    location: str
    version: int | None = 5
    table_id: str | None = "id"
    kind: str = "delta"

    @property
    def name(self):
        return self.location.upper()


def cache(freshness=Freshness.STRICT, seconds=None, **snapshot):
    return ServedCache(
        id="c",
        name="c",
        plan=CachePlan("c", (), (), None),
        location="",
        version=1,
        snapshot=snapshot or {"a": ("id", 5), "b": ("id", 7)},
        freshness=freshness,
        max_staleness_seconds=seconds,
        rewrite_enabled=True,
        settings=frozenset(),
        principals=None,
        unvalidated=frozenset(),
        reads=frozenset(),
    )


def check(found, *tables, read=("a",), first=lambda place, version: None):
    return check_freshness(found, read, by_location(tables), NOW, CommitTimes(first))


def test_strict_passes_the_very_versions():
    verdict = check(cache(), Seen("a", 5))
    assert verdict.reason is None and verdict.exact


@pytest.mark.parametrize("version", [4, 6])
def test_strict_refuses_older_and_newer_versions(version):
    assert check(cache(), Seen("a", version)).reason.code is ReasonCode.STALE


def test_a_table_that_the_block_does_not_read_may_have_moved():
    assert check(cache(), Seen("a", 5), Seen("b", 99), read=("a",)).exact


@pytest.mark.parametrize("freshness", [Freshness.STRICT, Freshness.UNLIMITED])
def test_a_recreated_table_with_the_same_version_is_refused(freshness):
    verdict = check(cache(freshness), Seen("a", 5, table_id="other"))
    assert verdict.reason.code is ReasonCode.TABLE_RECREATED


@pytest.mark.parametrize(
    "table", [Seen("a", None), Seen("a", kind="files"), Seen("a", 5, table_id=None)]
)
def test_a_table_without_a_version_is_refused(table):
    verdict = check(cache(Freshness.UNLIMITED), table)
    assert verdict.reason.code is ReasonCode.FRESHNESS_UNKNOWN


def test_a_table_outside_of_the_snapshot_is_refused():
    assert check(cache(), Seen("z"), read=("z",)).reason.code is ReasonCode.FRESHNESS_UNKNOWN


def test_a_table_that_was_not_seen_is_refused():
    assert check(cache()).reason.code is ReasonCode.FRESHNESS_UNKNOWN


def test_unlimited_serves_whatever_came_after_and_says_that_it_is_not_exact():
    verdict = check(cache(Freshness.UNLIMITED), Seen("a", 99))
    assert verdict.reason is None and not verdict.exact


@pytest.mark.parametrize(("age_ms", "hit"), [(0, True), (30_000, True), (30_001, False)])
def test_max_staleness_counts_from_the_first_commit_with_skew_against_the_hit(age_ms, hit):
    found = cache(Freshness.MAX_STALENESS, 60)
    verdict = check(found, Seen("a", 9), first=lambda place, version: NOW - age_ms)
    assert (verdict.reason is None) is hit
    assert CLOCK_SKEW_MS == 30_000


def test_max_staleness_below_the_skew_serves_only_what_is_exact():
    found = cache(Freshness.MAX_STALENESS, 10)
    assert check(found, Seen("a", 5)).reason is None
    moved = check(found, Seen("a", 6), first=lambda place, version: NOW)
    assert moved.reason.code is ReasonCode.STALE


def test_max_staleness_never_serves_rows_from_the_querys_future():
    found = cache(Freshness.MAX_STALENESS, 1_000)
    verdict = check(found, Seen("a", 4))
    assert verdict.reason.code is ReasonCode.STALE and "later version 5" in verdict.reason.detail


def test_max_staleness_takes_the_table_that_lags_most():
    found = cache(Freshness.MAX_STALENESS, 100)
    ages = {"a": NOW - 1_000, "b": NOW - 500_000}
    verdict = check(found, Seen("a", 6), Seen("b", 8), read=("a", "b"), first=lambda p, v: ages[p])
    assert (
        verdict.reason.code is ReasonCode.STALE and "B changed 500 s ago" in verdict.reason.detail
    )


def test_one_table_at_two_versions_is_not_exact():
    verdict = check(cache(Freshness.UNLIMITED), Seen("a", 5), Seen("a", 6))
    assert verdict.reason is None and not verdict.exact


def test_a_commit_time_is_asked_for_once_but_its_absence_again():
    asked = []
    answers = iter([None, 7, 8])

    def lookup(place, version):
        asked.append((place, version))
        return next(answers)

    times = CommitTimes(lookup)
    assert times.first_after("a", "id", 5) is None
    assert times.first_after("a", "id", 5) == 7
    assert times.first_after("a", "id", 5) == 7
    assert times.first_after("a", "other", 5) == 8
    assert len(asked) == 3
