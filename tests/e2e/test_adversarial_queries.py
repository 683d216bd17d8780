"""Queries that would hurt, at the door of a session: each is decided within its time and memory,
answered as without us, and the explanation says why."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import pytest

import cachemgr
from cachemgr.spark import hook
from matcher.model.budget import DECISION_SECONDS

pytestmark = pytest.mark.spark

CUBE = (
    "by_item AS SELECT region, cust, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region, cust"
)
FILTERED = (
    "filtered AS SELECT region, cust, SUM(amt) AS s FROM sales "
    "WHERE cust + 1 > 0 OR cust IS NULL GROUP BY region, cust"
)
# Twice the processor time: it is looked at between steps, by a thread that others hold up.
SECONDS = 2 * DECISION_SECONDS
BYTES = 50 << 20


@dataclass
class Door:
    """What was spent in Python on each decision."""

    seconds: list[float]
    bytes: list[int]


@pytest.fixture
def door(monkeypatch):
    """The door of all sessions, measured: processor time of the deciding thread, memory at most."""
    measured = Door([], [])
    answer = hook._answer

    def timed(*args) -> None:
        tracemalloc.start()
        started = time.thread_time()
        try:
            answer(*args)
        finally:
            measured.seconds.append(time.thread_time() - started)
            measured.bytes.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    def untraced(*args) -> None:
        started = time.thread_time()
        try:
            answer(*args)
        finally:
            measured.seconds.append(time.thread_time() - started)

    measured.untraced = untraced
    measured.traced = timed
    monkeypatch.setattr(hook, "_answer", untraced)
    measured.monkeypatch = monkeypatch
    return measured


def _copies(n: int) -> str:
    tables = ", ".join(f"sales s{i}" for i in range(n))
    joined = " AND ".join(f"s{i}.id = s{i + 1}.id" for i in range(n - 1))
    return f"SELECT SUM(s0.amt) AS a FROM {tables} WHERE {joined}"


def _roles(n: int) -> str:
    joins = " ".join(f"JOIN cust c{i} ON s.cust = c{i}.cid" for i in range(n))
    return f"SELECT c0.nation, SUM(amt) AS a FROM sales s {joins} GROUP BY c0.nation"


def _and_of_ors(n: int) -> str:
    parts = (f"(amt + {i} > cost * {i} OR cust = {i} OR cost + {i} > amt)" for i in range(n))
    return f"SELECT SUM(amt) AS a FROM sales WHERE {' AND '.join(parts)}"


def _case(n: int) -> str:
    case = "cust"
    for i in range(n):
        case = f"CASE WHEN region = 'r{i}' THEN {i} ELSE {case} END"
    return f"SELECT SUM(amt) AS a FROM sales WHERE {case} = 1"


def _unions(n: int) -> str:
    parts = (
        f"SELECT cust + {i} AS k, SUM(amt) AS a FROM sales WHERE cust <> {i} GROUP BY cust"
        for i in range(n)
    )
    return " UNION ALL ".join(parts)


QUERIES: dict[str, Callable[[], str]] = {
    "12 copies of a table": lambda: _copies(12),
    "16 copies of a table": lambda: _copies(16),
    "a dimension in 12 roles": lambda: _roles(12),
    "an AND of 40 ORs": lambda: _and_of_ors(40),
    "a CASE in a CASE, 60 deep": lambda: _case(60),
    "a UNION of 60": lambda: _unions(60),
    "an OR of 400": lambda: (
        "SELECT SUM(amt) AS a FROM sales WHERE "
        + " OR ".join(f"(cust = {i} AND amt > {i})" for i in range(400))
    ),
    "IN of 20,000": lambda: (
        f"SELECT SUM(amt) AS a FROM sales WHERE cust IN ({', '.join(map(str, range(20_000)))})"
    ),
    "3,000 columns": lambda: (
        f"SELECT {', '.join(f'amt + {i} AS c{i}' for i in range(3_000))} FROM sales"
    ),
    "EXISTS 8 times": lambda: (
        "SELECT SUM(amt) AS a FROM sales WHERE "
        + " AND ".join(
            f"EXISTS (SELECT 1 FROM cust WHERE cid = cust AND city <> 'x{i}')" for i in range(8)
        )
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_that_would_hurt_is_decided_in_time(lab, door, name: str) -> None:
    lab.cache(CUBE)
    lab.cache(FILTERED)
    query = QUERIES[name]()
    lab.spark.sql(query)._jdf.queryExecution().optimizedPlan()  # the processor's caches are warm
    door.seconds.clear()
    before = cachemgr.counters(lab.spark)
    _plan(lab.spark, query)
    assert door.seconds, "the door was not asked"
    assert max(door.seconds) <= SECONDS, name
    door.monkeypatch.setattr(hook, "_answer", door.traced)
    _plan(lab.spark, query)
    assert max(door.bytes) <= BYTES, name
    after = cachemgr.counters(lab.spark)
    assert after.get("errors", 0) == before.get("errors", 0)


def _plan(spark, query: str) -> None:
    spark.sql(query)._jdf.queryExecution().optimizedPlan()


@pytest.mark.parametrize(
    ("name", "hit"),
    [("12 copies of a table", False), ("an AND of 40 ORs", False), ("a UNION of 60", True)],
)
def test_and_answers_as_without_us(lab, name: str, hit: bool) -> None:
    lab.cache(CUBE)
    lab.cache(FILTERED)
    lab.check(QUERIES[name](), hit)


def test_a_query_too_large_to_be_written_says_so(lab) -> None:
    lab.cache(CUBE)
    listed = ", ".join(map(str, range(60_000)))
    query = f"SELECT SUM(amt) AS a FROM sales WHERE cust IN ({listed})"
    lab.miss(query, "QUERY_TOO_LARGE")


def test_steps_are_explained_and_a_hint_or_a_setting_raises_them(lab) -> None:
    lab.cache(CUBE)
    query = "SELECT region, SUM(amt) AS a FROM sales GROUP BY region"
    rows = lab.sql(f"EXPLAIN REWRITE {query}")
    (steps,) = (row for row in rows if row[0] == "steps")
    assert "of 20,000" in steps[1]
    spent = cachemgr.explain(lab.spark, query).spent
    assert 0 < spent.steps < 1_000
    with lab.conf(spark__cachemgr__decisionSteps="3"):
        lab.miss(query, "TOO_MANY_STEPS")
        lab.miss(query, "TOO_MANY_STEPS")  # remembered
        lab.hit(query.replace("SELECT", "SELECT /*+ RELATIONAL_CACHE_STEPS(5000) */", 1))
        with lab.conf(spark__cachemgr__decisionSteps="5000"):
            lab.hit(query)


def test_time_is_the_last_resort_and_never_remembered(lab, monkeypatch) -> None:
    """The clock of the deciding thread goes a second further with each look at it."""
    lab.cache(CUBE)
    query = "SELECT region, SUM(amt) AS a FROM sales WHERE cust > 1 GROUP BY region"
    with monkeypatch.context() as fault:
        now = iter(range(10**9))
        fault.setattr("matcher.model.budget._TICKS", 1)
        fault.setattr("matcher.model.budget.time.thread_time", lambda: float(next(now)))
        before = cachemgr.counters(lab.spark).get("out_of_time", 0)
        lab.miss(query, "OUT_OF_TIME")
        assert cachemgr.counters(lab.spark)["out_of_time"] > before
    lab.hit(query)
