"""What is due, what comes after a failure, and the order of nested caches."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.due import CacheStatus, next_due
from scheduler.failures import MAX_FAILURES, after_failure
from scheduler.order import cycle_in, sources_of
from scheduler.tick import look
from scheduler.triggers import Cron, Every, OnCommit, OnDemand, TargetLag, Trigger

T0 = datetime(2026, 11, 21, 10, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def status(trigger: Trigger, **more: object) -> CacheStatus:
    known: dict[str, object] = {"created_at": after(-86400), "started_at": T0}
    return CacheStatus("c", "c", trigger, **(known | more))  # type: ignore[arg-type]


def due_at(found: CacheStatus) -> datetime | None:
    due = next_due(found)
    return None if due is None else due.at


@pytest.mark.parametrize(
    "trigger", [Every(60), Cron("0 6 * * *"), OnCommit(), OnCommit(60), TargetLag(60)]
)
def test_a_cache_that_was_never_refreshed_is_due(trigger: Trigger) -> None:
    assert due_at(status(trigger, started_at=None)) == after(-86400)


def test_on_demand_never_is() -> None:
    assert due_at(status(OnDemand(), started_at=None, behind_since=T0)) is None


def test_paused_and_busy_caches_are_not_due() -> None:
    for more in ({"paused": True}, {"busy": True}):
        assert due_at(status(Every(1), started_at=None, **more)) is None


def test_every() -> None:
    assert due_at(status(Every(3600))) == after(3600)


def test_cron() -> None:
    assert due_at(status(Cron("30 * * * *"))) == after(1800)
    assert due_at(status(Cron("0 6 * * *", "Europe/Berlin"))) == after(19 * 3600)


def test_on_commit_waits_for_a_commit() -> None:
    assert due_at(status(OnCommit())) is None
    assert due_at(status(OnCommit(), behind_since=after(5))) == after(5)


def test_on_commit_of_a_commit_during_the_last_refresh() -> None:
    assert due_at(status(OnCommit(), behind_since=after(-5))) == T0


def test_at_most_every_holds_a_burst_back() -> None:
    assert due_at(status(OnCommit(60), behind_since=after(5))) == after(60)
    assert due_at(status(OnCommit(60), behind_since=after(500))) == after(500)


def test_a_target_lag_is_started_early_enough() -> None:
    lag = TargetLag(600)
    assert due_at(status(lag)) is None
    assert due_at(status(lag, behind_since=after(5))) == after(605)
    assert due_at(status(lag, behind_since=after(5), usual_seconds=100.0)) == after(5 + 600 - 150)
    slow = status(lag, behind_since=after(5), usual_seconds=4000.0)
    assert due_at(slow) == after(5), "it cannot be kept: as early as possible"


@pytest.mark.parametrize("trigger", [OnCommit(), OnCommit(60), TargetLag(60)])
def test_a_commit_from_the_future_holds_nothing_up(trigger: Trigger) -> None:
    ahead = status(trigger, behind_since=after(86400))
    assert [w.cache_id for w in look([ahead], after(60)).wanted] == ["c"]
    soon = look([status(TargetLag(600), behind_since=after(86400))], after(60))
    assert soon.wanted == () and soon.next_at == after(600)


@given(st.integers(0, 10**7), st.integers(1, 10**6))
def test_missed_runs_coalesce(away: int, period: int) -> None:
    """However long nobody looked, a cache is due once: its next run counts from its start."""
    now = after(away)
    cache = status(Every(period))
    wanted = look([cache], now).wanted
    assert len(wanted) == (1 if away >= period else 0)
    assert look([replace(cache, started_at=now)], now).wanted == ()


def test_retries_go_by_the_back_off() -> None:
    failed = status(Every(60), failures=2, retry_at=after(10))
    assert due_at(failed) == after(10)
    assert next_due(failed).why == "retry after 2 failures in a row"
    assert due_at(status(OnDemand(), failures=2, retry_at=after(10))) is None


def test_the_longest_due_goes_first() -> None:
    caches = [
        replace(status(Every(60)), id=f"{i}", name=f"{i}", started_at=after(-i)) for i in range(3)
    ]
    found = look(caches, after(59))
    assert [w.cache_id for w in found.wanted] == ["2", "1"]
    assert found.next_at == after(60)
    assert look([], T0).next_at is None


def nested(name: str, *reads: str, **more: object) -> CacheStatus:
    known = status(Every(60))
    return replace(known, **{"id": name, "name": name, "reads": frozenset(reads), **more})  # type: ignore[arg-type]


def test_nested_caches_wait_for_what_they_read() -> None:
    base, middle, top = nested("a"), nested("b", "a"), nested("c", "b")
    now = after(60)
    assert [w.cache_id for w in look([top, middle, base], now).wanted] == ["a"]
    base = replace(base, busy=True)
    assert look([top, middle, base], now).wanted == ()
    base = replace(base, busy=False, started_at=now)
    assert [w.cache_id for w in look([top, middle, base], now).wanted] == ["b"]


def test_a_source_holds_up_one_refresh_at_most() -> None:
    """It is due again and again, faster than its refreshes are done."""
    now = after(60)
    top = nested("b", "a")
    first = nested("a", busy=True, started_at=after(61), running_since=after(61))
    assert look([first, top], after(70)).wanted == ()
    over = nested("a", started_at=after(61), trigger=Every(1))
    assert {w.cache_id for w in look([over, top], after(70)).wanted} == {"a", "b"}
    before = nested("a", started_at=after(-5), trigger=OnCommit(), behind_since=after(59))
    assert [w.cache_id for w in look([before, top], now).wanted] == ["a"]


def test_a_source_that_fails_does_not_block() -> None:
    failed = nested("a", failures=1, started_at=after(61), retry_at=after(66))
    assert [w.cache_id for w in look([failed, nested("b", "a")], after(63)).wanted] == ["b"]
    assert {w.cache_id for w in look([failed, nested("b", "a")], after(70)).wanted} == {"a", "b"}


def test_a_source_that_never_ends_does_not_block() -> None:
    hung = nested("a", busy=True, started_at=T0, running_since=T0, usual_seconds=60)
    assert look([hung, nested("b", "a")], after(3599)).wanted == ()
    assert [w.cache_id for w in look([hung, nested("b", "a")], after(3600)).wanted] == ["b"]
    slow = replace(hung, usual_seconds=3000)
    assert look([slow, nested("b", "a")], after(8999)).wanted == ()
    waiting = nested("a", busy=True, started_at=T0)
    assert look([waiting, nested("b", "a")], after(10**6)).wanted == ()


def test_a_source_that_is_gone_or_not_due_is_not_waited_for() -> None:
    daily = nested("a", trigger=Every(86400))
    for others in ([], [daily], [nested("a", trigger=OnDemand(), started_at=None)]):
        found = look([*others, nested("b", "a")], after(60)).wanted
        assert [w.cache_id for w in found] == ["b"]


def test_sources_come_nearest_first() -> None:
    reads = {"a": (), "b": ("a",), "c": ("b", "x"), "d": ("c", "a"), "x": ("gone",)}
    assert sources_of(reads, "d") == ("c", "a", "b", "x")
    assert sources_of(reads, "a") == sources_of(reads, "unknown") == ()


def test_a_cache_whose_source_is_paused_goes_on() -> None:
    base = nested("a", paused=True)
    assert [w.cache_id for w in look([base, nested("b", "a")], after(60)).wanted] == ["b"]


def test_cycles_are_found() -> None:
    assert cycle_in({"a": ["b"], "b": ["c"], "c": []}) == ()
    found = cycle_in({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]})
    assert found[0] == found[-1] and set(found) == {"a", "b", "c"}
    reads = {"a": "b", "b": "c", "c": "a"}
    assert all(reads[x] == y for x, y in itertools.pairwise(found)), "each reads the next"
    assert cycle_in({"a": ["a"]}) == ("a", "a")


def test_back_off_doubles_and_is_bounded() -> None:
    waits = []
    for failures in range(MAX_FAILURES - 1):
        verdict = after_failure(failures, permanent=False, error="x", now=T0, chance=lambda: 0.0)
        waits.append((verdict.retry_at - T0).total_seconds())
    assert waits == [5, 10, 20, 40]
    half = after_failure(3, permanent=False, error="x", now=T0, chance=lambda: 1.0)
    assert half.retry_at == after(20), "jitter takes up to a half away"


def test_five_failures_in_a_row_pause() -> None:
    verdict = after_failure(4, permanent=False, error="no room", now=T0, chance=lambda: 0.5)
    assert (verdict.failures, verdict.retry_at) == (5, None)
    assert verdict.paused_because == "5 scheduled refreshes failed in a row: no room"


def test_what_may_pass_is_tried_again_until_it_must_have() -> None:
    for failures in (0, 2, 9):
        found = after_failure(
            failures, permanent=True, error="x", now=T0, chance=lambda: 0.0, passing_until=after(60)
        )
        assert found.paused_because is None and found.failures == min(3, failures + 1)
        assert T0 < found.retry_at <= after(20)
    last = after_failure(
        9, permanent=True, error="x", now=after(55), chance=lambda: 0.0, passing_until=after(60)
    )
    assert last.retry_at == after(60)
    over = after_failure(
        3, permanent=True, error="x", now=after(60), chance=lambda: 0.0, passing_until=after(60)
    )
    assert over.retry_at is None and "x" in over.paused_because


def test_what_says_nothing_of_a_cache_never_pauses_it() -> None:
    def waits(now: float, until: float = 60) -> float:
        found = after_failure(
            9,
            permanent=True,
            error="x",
            now=after(now),
            chance=lambda: 0.0,
            passing_until=after(until),
            lasting_since=T0,
        )
        assert found.paused_because is None and found.failures == 3
        return (found.retry_at - after(now)).total_seconds()

    assert [waits(s) for s in (0, 30, 59)] == [20, 20, 1]
    assert [waits(s) for s in (60, 160, 800, 2400, 10**6)] == [20, 20, 100, 300, 300]


def test_a_permanent_cause_pauses_at_once() -> None:
    verdict = after_failure(0, permanent=True, error="no table", now=T0, chance=lambda: 0.5)
    assert verdict.retry_at is None and "no table" in verdict.paused_because
