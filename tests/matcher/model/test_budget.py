"""A decision's budget: searches give up at their own bound, and the decision at its own."""

from __future__ import annotations

import gc
import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from matcher.model import budget
from matcher.model.budget import (
    BOUNDS,
    OutOfSteps,
    OutOfTime,
    Search,
    decision,
    spend,
    spent,
    tick,
    unhurried,
    within,
)

PAGE = Path(__file__).parents[3] / "docs" / "matching.md"
BOUND = re.compile(r"^\| [^|]+ \| ([\d,]+) \| `([a-z_.]+)\.([A-Z_]+)(?:\[([A-Z_]+)\])?` \|", re.M)


def _endless() -> bool:
    while True:
        spend()


def test_a_search_gives_up_at_its_own_bound_and_the_decision_goes_on() -> None:
    with decision(10_000):
        assert within(Search.IMPLICATION, _endless, False) is False
        found = spent()
        assert found.steps == BOUNDS[Search.IMPLICATION] + 1
        assert found.cut_short == (Search.IMPLICATION,)
        spend(5_000)


def test_a_decision_ends_within_a_search() -> None:
    with decision(100), pytest.raises(OutOfSteps):
        within(Search.IMPLICATION, _endless, False)


def test_without_a_decision_the_searches_have_their_bounds_all_the_same() -> None:
    assert within(Search.DEAD_BRANCHES, _endless, True) is True
    spend(10**9)


def test_a_decision_ends_when_its_time_is_up() -> None:
    with decision(100, 0.0), pytest.raises(OutOfTime):
        for _ in range(1_000):
            tick(1_000)


def test_time_is_looked_at_where_no_steps_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("matcher.model.budget.time.thread_time", lambda: now)
    with decision(100):
        tick(1_000)
        now = 1.0
        with pytest.raises(OutOfTime):
            tick(1_000)


def test_time_goes_on_in_a_decision_within_another(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("matcher.model.budget.time.thread_time", lambda: now)
    with decision(100, 1.0):
        now = 0.9
        with decision(100, 1.0):
            now = 1.1
            with pytest.raises(OutOfTime):
                tick(1_000)
        assert spent().steps == 0


def test_more_steps_have_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("matcher.model.budget.time.thread_time", lambda: now)
    with decision(200_000):
        now = 2.9
        tick(1_000)
        now = 3.1
        with pytest.raises(OutOfTime):
            tick(1_000)


def test_a_pause_of_the_collector_is_none_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("matcher.model.budget.time.thread_time", lambda: now)
    (pause,) = (call for call in gc.callbacks if call.__module__ == "matcher.model.budget")
    with decision(100, 1.0):
        now = 0.5
        pause("start", {})
        now = 5.5
        pause("stop", {})
        now = 5.9
        tick(1_000)
        now = 6.1
        with pytest.raises(OutOfTime):
            tick(1_000)


def test_where_nobody_waits_only_steps_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("matcher.model.budget.time.thread_time", lambda: now)
    with unhurried(), decision(100, 1.0):
        now = 1_000.0
        tick(1_000)
        spend(100)
        with pytest.raises(OutOfSteps):
            spend()
    with decision(100, 1.0):
        now += 2.0
        with pytest.raises(OutOfTime):
            tick(1_000)


def test_the_page_has_every_bound_as_it_is() -> None:
    rows = BOUND.findall(PAGE.read_text())
    assert len(rows) >= 18
    for number, module, name, key in rows:
        value = getattr(importlib.import_module(module), name)
        if key:
            value = value[Search[key]]
        if isinstance(value, tuple):
            value = max(value)
        assert int(number.replace(",", "")) == value, name
    assert {key for *_, key in rows if key} == {search.name for search in Search}


def test_a_collection_in_the_midst_of_a_threads_first_look_is_let_be(monkeypatch) -> None:
    """It said "Exception ignored in …" on the user's terminal."""
    monkeypatch.setattr(budget, "_local", SimpleNamespace())
    for phase in ("start", "stop"):
        budget._leave_out_collection(phase, {})
