"""What past refreshes tell of the next one, on plain data."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemgr.metastore.accounts import RunAccount
from cachemgr.metastore.records import RefreshRunRecord
from cachemgr.refresh.by_change.past_runs import (
    REMEMBERED,
    Expected,
    PastRun,
    Weighed,
    expected,
    past_runs,
    weigh,
)
from cachemgr.vocabulary import RunState

WAYS = ("APPEND", "PARTIALS", "REPLACE")
START = datetime(2026, 1, 1, tzinfo=UTC)
COSTS = st.floats(1, 1e12)
SECONDS = st.floats(0.01, 1e4)
RUNS = st.lists(
    st.builds(PastRun, st.sampled_from(["REPLACE", "FULL"]), COSTS, SECONDS), max_size=8
)


def took(seconds: float, account: RunAccount, **facts: object) -> RefreshRunRecord:
    return RefreshRunRecord(
        id="r",
        cache_id="c",
        state=RunState.PUBLISHED,
        mode="AUTO",
        reason="",
        holder="h",
        fencing_token=1,
        started_at=START,
        finished_at=START + timedelta(seconds=seconds),
        facts={**account.to_facts(), **facts},
    )


def change(seconds: float, cost: int = 100, full: int = 1000) -> RefreshRunRecord:
    return took(seconds, RunAccount("REPLACE", change_estimate=cost, full_estimate=full))


def everything(seconds: float, cost: int = 1000) -> RefreshRunRecord:
    account = RunAccount("FULL", "FULL_IS_CHEAPER", change_estimate=1, full_estimate=cost)
    return took(seconds, account)


def decided(
    records: list[RefreshRunRecord],
    cost: float = 100,
    full: float = 1000,
    worth: bool | None = None,
) -> Weighed:
    """What AUTO does after these runs, newest first."""
    past = past_runs(records, WAYS)
    by_bytes = cost <= 0.8 * full if worth is None else worth
    return weigh(by_bytes, expected("REPLACE", cost, past), expected("FULL", full, past))


# -- which runs tell something -----------------------------------------------------------------


def test_runs_have_the_cost_that_was_expected_of_them() -> None:
    found = past_runs([change(5), everything(20)], WAYS)
    assert found == (PastRun("REPLACE", 100, 5.0), PastRun("FULL", 1000, 20.0))


def test_the_first_refresh_has_the_cost_that_it_would_have_had() -> None:
    account = RunAccount("FULL", "NEVER_REFRESHED", bytes_written=10)
    first = took(20, account, base_bytes={"file:/t": 900, "file:/u": 60})
    assert past_runs([first], WAYS) == (PastRun("FULL", 1000, 20.0),)
    nested = took(20, account, base_bytes={"file:/t": 960}, source={"cache": "d"})
    assert past_runs([nested], WAYS) == (PastRun("FULL", 1000, 20.0, is_from_cache=True),)


@pytest.mark.parametrize(
    "record",
    [
        took(5, RunAccount("UNCHANGED", change_estimate=1, full_estimate=1)),
        took(5, RunAccount("ADOPT", change_estimate=1, full_estimate=1)),
        took(5, RunAccount()),
        took(5, RunAccount("REPLACE")),
        took(5, RunAccount("REPLACE", change_estimate=0, full_estimate=9)),
        took(5, RunAccount("FULL", "NEVER_REFRESHED", bytes_written=10)),
        took(5, RunAccount("FULL", "NEVER_REFRESHED"), base_bytes={"file:/t": 9}),
        took(0, RunAccount("REPLACE", change_estimate=1, full_estimate=9)),
        # it may have added the change first, and found out in the same run that it could not
        took(5, RunAccount("FULL", "LAST_ATTEMPT_FAILED", change_estimate=1, full_estimate=9)),
        replace(change(5), finished_at=None),
    ],
)
def test_runs_that_tell_nothing(record: RefreshRunRecord) -> None:
    assert past_runs([record], WAYS) == ()


def test_old_runs_are_forgotten() -> None:
    later = [change(1)] * (REMEMBERED - 1)
    assert PastRun("FULL", 1000, 20.0) in past_runs([*later, everything(20)], WAYS)
    assert PastRun("FULL", 1000, 20.0) not in past_runs([*later, change(1), everything(20)], WAYS)
    idle = took(5, RunAccount("UNCHANGED"))
    many = [idle] * REMEMBERED
    assert past_runs([*many, everything(20)], WAYS), "nothing was computed since"


# -- how long a way is expected to take --------------------------------------------------------


def test_a_run_like_the_next_one_tells_its_time() -> None:
    past = [
        PastRun("REPLACE", 100, 6.0),
        PastRun("REPLACE", 100, 4.0),
        PastRun("REPLACE", 100, 5.0),
    ]
    assert expected("REPLACE", 100, past) == Expected(5.0, 5.0, 3)


def test_one_that_is_not_like_it_tells_bounds() -> None:
    past = [PastRun("REPLACE", 100, 6.0)]
    assert expected("REPLACE", 200, past) == Expected(6.0, 12.0, 1), "all fixed, or none of it"
    assert expected("REPLACE", 50, past) == Expected(3.0, 6.0, 1)
    assert expected("REPLACE", 200, past).seconds == 9.0
    assert str(expected("REPLACE", 200, past).told()) == "9.0 s"


def test_bounds_that_are_far_apart_are_no_figure() -> None:
    found = expected("REPLACE", 101, [PastRun("REPLACE", 7, 17.0)])
    assert found.seconds is None and str(found.told()) == "17.0 to 245.3 s"
    weighed = decided([change(17, cost=7), everything(10)])
    assert "to take 17.0 to 242.9 s and everything 10.0 s" in str(weighed.told())


def test_ways_and_sources_are_told_apart() -> None:
    past = [PastRun("PARTIALS", 100, 6.0), PastRun("FULL", 100, 6.0, is_from_cache=True)]
    assert expected("REPLACE", 100, past) is None and expected("FULL", 100, past) is None
    assert expected("FULL", 100, past, is_from_cache=True) is not None


def test_the_last_runs_of_a_way_count() -> None:
    past = [PastRun("REPLACE", 100, 1.0)] * 5 + [PastRun("REPLACE", 100, 50.0)] * 9
    assert expected("REPLACE", 100, past) == Expected(1.0, 1.0, 5)


@given(RUNS, COSTS, COSTS)
def test_what_costs_more_is_not_expected_to_take_less(
    past: list[PastRun], one: float, other: float
) -> None:
    less, more = sorted((one, other))
    low, high = expected("REPLACE", less, past), expected("REPLACE", more, past)
    assert (low is None) == (high is None)
    if low is not None and high is not None:
        assert low.least <= low.most and high.least <= high.most
        assert low.least <= high.least and low.most <= high.most


@given(st.lists(st.tuples(COSTS, SECONDS), min_size=2, max_size=5), COSTS, SECONDS, st.data())
def test_one_outlier_does_not_move_what_is_expected_past_the_others(
    runs: list[tuple[float, float]], cost: float, seconds: float, data: st.DataObject
) -> None:
    past = [PastRun("REPLACE", *run) for run in runs]
    odd = data.draw(st.integers(0, len(past) - 1))
    others = [expected("REPLACE", cost, [run]) for i, run in enumerate(past) if i != odd]
    past[odd] = replace(past[odd], seconds=seconds)
    found = expected("REPLACE", cost, past)
    assert found is not None
    assert found.least <= max(other.least for other in others if other is not None)
    if len(past) > 2:
        assert found.most <= max(other.most for other in others if other is not None)
        assert found.most >= min(other.most for other in others if other is not None)


# -- which way is taken ------------------------------------------------------------------------


@given(RUNS, COSTS, COSTS)
def test_where_a_way_is_unknown_the_bytes_decide(
    past: list[PastRun], cost: float, full: float
) -> None:
    for known in ("REPLACE", "FULL"):
        runs = [run for run in past if run.way == known]
        ways = expected("REPLACE", cost, runs), expected("FULL", full, runs)
        assert weigh(cost <= 0.8 * full, *ways).takes_change is (cost <= 0.8 * full)


@given(RUNS, COSTS, COSTS, COSTS)
def test_a_larger_change_is_not_added_where_a_smaller_one_is_not(
    past: list[PastRun], one: float, other: float, full: float
) -> None:
    less, more = sorted((one, other))
    taken = [
        weigh(
            cost <= 0.8 * full, expected("REPLACE", cost, past), expected("FULL", full, past)
        ).takes_change
        for cost in (less, more)
    ]
    assert taken[0] or not taken[1]


def test_a_change_that_took_longer_than_everything_is_left_to_full() -> None:
    found = decided([change(30), change(31), everything(10)])
    assert not found.takes_change and found.by_time
    assert "is expected to take 30.5 s and everything 10.0 s" in str(found.told())


def test_everything_that_took_longer_than_its_bytes_is_left_to_the_change() -> None:
    records = [everything(60), everything(62), change(10, cost=900)]
    assert decided(records, cost=900).takes_change
    assert not decided(records[1:], cost=900).takes_change, "one run of everything may be slow"


@pytest.mark.parametrize(
    "records",
    [
        [],
        [change(30), change(30)],
        [everything(10), everything(10)],
        [change(30), everything(10)],  # one slow run is no rule
        [change(30), change(9), everything(10)],  # nor one of two
        [change(30), change(9), change(9), change(9), everything(10)],
        [change(11), change(11), everything(10)],  # little would be won
        [change(2.5), change(2.5), everything(1)],
        # what ten times as much takes is anybody's guess
        [change(30, cost=1000), change(30, cost=1000), everything(10)],
    ],
    ids=str,
)
def test_the_bytes_decide_where_time_does_not(records: list[RefreshRunRecord]) -> None:
    found = decided(records)
    assert found.takes_change and not found.by_time
    assert not decided(records, worth=False).takes_change


def test_a_way_is_tried_again_once_its_slow_runs_are_forgotten() -> None:
    """The first two runs of the change were slow, for a reason that has passed."""
    records = [change(30), change(30), everything(10)]
    tried = 0
    for _ in range(2 * REMEMBERED):
        if decided(records).takes_change:
            tried += 1
            records.insert(0, change(2))
        else:
            records.insert(0, everything(10))
    assert tried > REMEMBERED // 2 and decided(records).takes_change


def test_a_way_that_stays_slow_is_tried_seldom() -> None:
    records = [change(30), change(30), everything(10)]
    ways = []
    for _ in range(200):
        slow = decided(records).takes_change
        ways.append(slow)
        records.insert(0, change(30) if slow else everything(10))
    assert 0 < sum(ways) <= 200 * 2 / 15
