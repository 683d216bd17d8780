"""What the fuzzers draw of settings, and that they see what is told wrong."""

from __future__ import annotations

import itertools
from random import Random
from types import SimpleNamespace

import pytest

from cachemgr.config.judged.judge import judge
from cachemgr.config.judged.kinds import Kind
from tests.harness.sessions.settings import Drawn, having
from tests.harness.sessions.told import Counted, wrong_of_explain, wrong_of_the_plan


@pytest.mark.spark
def test_settings_are_drawn_by_what_they_change(spark) -> None:
    drawn, session = Drawn(spark), spark.newSession()
    harmless, respelled, telling = [
        list(itertools.chain(*(draw(Random(n)).items() for n in range(40))))
        for draw in (drawn.harmless, drawn.respelled, drawn.telling)
    ]
    assert all(judge(key).kind is not Kind.RESULTS for key, _ in harmless)
    assert all(judge(key).kind is Kind.RESULTS for key, _ in (*respelled, *telling))
    assert len({key for key, _ in harmless}) > 50 and len(telling) > 20
    assert any(value != value.strip() for _, value in (*harmless, *respelled))
    assert drawn.harmless(Random(7)) == drawn.harmless(Random(7))
    before = session.conf.get("spark.sql.shuffle.partitions")
    odd = {"spark.sql.shuffle.partitions": "7", "spark.sql.ansi.enabled": "no boolean"}
    with having(odd, session) as taken:
        assert taken == {"spark.sql.shuffle.partitions": "7"}
        assert session.conf.get("spark.sql.shuffle.partitions") == "7"
    assert session.conf.get("spark.sql.shuffle.partitions") == before
    assert session.conf.get("spark.sql.ansi.enabled") == "true"


def _frame(text: str) -> SimpleNamespace:
    plan = SimpleNamespace(toString=lambda: text)
    execution = SimpleNamespace(executedPlan=lambda: plan)
    return SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: execution))


@pytest.mark.parametrize(
    ("text", "found", "said"),
    [
        ("Scan [file:/w/caches/1]", Counted(hits=1), ""),
        ("Scan [file:/w/tables/f]", Counted(misses=1), ""),
        ("Scan [file:/w/caches/1]", Counted(misses=1), "a cache was read"),
        ("Scan [file:/w/tables/f]", Counted(hits=1), "no cache was read"),
        ("In-memory table relational_cache.c@v1, [file:/w/tables/f]", Counted(hits=1), ""),
        ("In-memory table relational_cache.c@v1", Counted(misses=1), "a cache was read"),
        ("LocalTableScan [3]", Counted(hits=1), ""),
        ("Scan [file:/w/caches/1]", Counted(hits=1, errors=1), "errors"),
    ],
)
def test_what_is_told_and_what_ran(text: str, found: Counted, said: str) -> None:
    wrong = wrong_of_the_plan(_frame(text), found, "/w/caches", "/w/tables")
    assert bool(wrong) == bool(said) and said in wrong


def test_what_explain_says_and_what_is_counted() -> None:
    part = SimpleNamespace(hit=True, own=None, subqueries=(), text=lambda: "x")
    both = SimpleNamespace(own=part, subqueries=(part,), text=lambda: "x")
    assert wrong_of_explain(part, Counted(hits=1)) == wrong_of_explain(both, Counted(hits=2)) == ""
    assert "1 hits" in wrong_of_explain(part, Counted(misses=1))
