"""What became of decisions: told once, in the background, and never held for long."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from cachemgr.metastore.records import DecisionRecord
from cachemgr.serving.decision import BlockOutcome, Decision, refused
from cachemgr.spark import outcomes
from cachemgr.spark.outcomes import NotedDecision, Outcomes
from cachemgr.telemetry import Telemetry
from matcher.model.reasons import Reason, ReasonCode

MISS = Reason(ReasonCode.STALE, "made up")


@dataclass
class Java:
    """What Java notes, and how often it was asked."""

    notes: list[list[Any]] = field(default_factory=list)
    asked: int = 0
    now: float = 0.0

    def fetch(self) -> str:
        self.asked += 1
        found, self.notes = self.notes, []
        return json.dumps(found)


class Hits(Decision):
    """A decision that counts as a hit as long as nothing is dropped of it."""

    @property
    def hits(self) -> tuple[Any, ...]:
        return tuple(o.hit for o in self.outcomes if o.hit is not None)


class Hit:
    appended = None
    path = ()


def hit() -> Hits:
    return Hits((BlockOutcome((), None, Hit(), (), ()),))  # type: ignore[arg-type]


def noted(found: Decision, telemetry: Telemetry, **options: Any) -> NotedDecision:
    return NotedDecision(found, "s", 1.0, telemetry, None, **options)


@pytest.fixture
def java() -> Java:
    return Java()


@pytest.fixture
def waiting(java: Java) -> Outcomes:
    return Outcomes(java.fetch, lambda: java.now)


def test_a_decision_is_counted_once_it_is_known_what_became_of_it(java, waiting) -> None:
    telemetry = Telemetry()
    for number, found in enumerate((hit(), refused(MISS), hit(), hit(), hit(), hit()), 1):
        waiting.note(number, noted(found, telemetry))
    waiting.settle()
    assert telemetry.counters() == {}
    java.notes = [
        [1, True, False, None],
        [2, False, False, None],
        [3, True, False, "no such function"],
        [9, True, False, None],
        [6, True, True, None],
    ]
    waiting.settle()
    assert telemetry.counters() == {"hits": 2, "local_hits": 1, "misses": 2, "errors": 1}
    # given up for its time-out; told twice
    java.notes = [[4, False, False, None], [1, True, False, None]]
    waiting.settle()
    assert telemetry.counters() == {"hits": 2, "local_hits": 1, "misses": 3, "errors": 1}


def test_plan_only_counts_as_decided(java, waiting) -> None:
    telemetry = Telemetry()
    waiting.note(1, noted(hit(), telemetry, plan_only=True))
    java.notes = [[1, False, False, None]]
    waiting.settle()
    assert telemetry.counters() == {"hits": 1, "plan_only": 1}


def test_a_dropped_part_is_a_miss_with_its_reason(java, waiting) -> None:
    telemetry, taken = Telemetry(), []

    class Feed:
        def log(self, make: Any) -> None:
            taken.append(make())

    decision = NotedDecision(hit(), "s", 1.0, telemetry, Feed())  # type: ignore[arg-type]
    waiting.note(1, decision)
    waiting.drop(1, MISS, ())
    waiting.drop(2, MISS)
    java.notes = [[1, False, False, None]]
    waiting.settle()
    record: DecisionRecord = taken[0]
    assert (record.outcome, [r["code"] for r in record.reasons]) == ("MISS", ["STALE"])
    assert telemetry.counters() == {"misses": 1}


def test_java_is_asked_only_while_something_waits(java, waiting) -> None:
    waiting.settle()
    assert java.asked == 0
    waiting.note(1, noted(hit(), Telemetry()))
    assert java.asked == 0, "no query waits for it"
    java.notes = [[1, True, False, None]]
    waiting.settle()
    waiting.settle()
    assert java.asked == 1


def test_what_never_runs_is_let_go(java, waiting, monkeypatch) -> None:
    monkeypatch.setattr(outcomes, "_MOST", 10)
    for number in range(25):
        waiting.note(number, noted(hit(), Telemetry()))
    assert 5 <= len(waiting._waiting) <= 10 and 24 in waiting._waiting
    java.now = 1_000.0
    waiting.settle()
    assert not waiting._waiting


def test_a_jvm_that_is_gone_ends_nothing() -> None:
    def gone() -> str:
        raise ConnectionError("no JVM")

    waiting, telemetry = Outcomes(gone), Telemetry()
    waiting.note(1, noted(hit(), telemetry))
    waiting.settle()
    assert telemetry.counters() == {}


def test_who_reads_counters_waits_for_what_another_thread_is_about_to_count(java, waiting) -> None:
    telemetry, reached, go = Telemetry(), threading.Event(), threading.Event()
    decision = noted(hit(), telemetry)
    tell = decision.tell

    def late(**told: Any) -> None:
        reached.set()
        go.wait(30)
        tell(**told)

    decision.tell = late  # type: ignore[method-assign]
    waiting.note(1, decision)
    java.notes.append([1, True, False, None])
    background = threading.Thread(target=waiting.settle)
    background.start()
    assert reached.wait(30)
    read: list[int] = []

    def look() -> None:
        waiting.settle()
        read.append(telemetry.counters().get("hits", 0))

    reader = threading.Thread(target=look)
    reader.start()
    reader.join(0.2)
    go.set()
    background.join()
    reader.join()
    assert read == [1]


def test_decisions_that_were_made_elsewhere_are_told_alike() -> None:
    """What ran while they were fetched is told the next time, and nothing is lost between."""
    java, telemetry = Java(), Telemetry()

    @dataclass
    class Elsewhere:
        is_used: bool = False
        made: list[tuple[int, NotedDecision]] = field(default_factory=list)

        def taken(self) -> list[tuple[int, NotedDecision]]:
            found, self.made = self.made, []
            return found

    elsewhere = Elsewhere()
    waiting = Outcomes(java.fetch, lambda: java.now, elsewhere)
    waiting.settle()
    assert java.asked == 0  # nobody waits, and nothing was made elsewhere
    elsewhere.is_used = True
    java.notes = [[1, True, True, None]]
    elsewhere.made = [(number, noted(hit(), telemetry)) for number in (1, 2)]
    waiting.settle()
    assert telemetry.counters() == {"hits": 1, "local_hits": 1}
    assert waiting.found(1) is None and waiting.found(2) is not None
    java.notes = [[2, True, False, None]]
    waiting.settle()
    assert telemetry.counters()["hits"] == 2
