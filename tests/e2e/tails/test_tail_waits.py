"""Queries that come while a tail is being made wait for it; the tables that are joined to its rows
are held with it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import DataFrame

import cachemgr
from cachemgr.spark.held.pins import PinKey, PinStore
from cachemgr.spark.held.tail_maker import TailMaker
from cachemgr.spark.held.tail_pace import Tempo
from cachemgr.spark.held.tails import TailStore
from tests.e2e.tails.tail_queries import (
    CUBE,
    GROUPED,
    JOINED,
    QUERIES,
    append,
    by_tail,
    count,
    without_tail,
)
from tests.processes import until
from tests.worlds.lab_star import CUST, CUST_ROWS, JOIN

pytestmark = pytest.mark.spark


class Held:
    """Tails that are not done before they may be, for which queries wait."""

    def __init__(self, tails: TailStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_end = threading.Event()
        self.begun = threading.Event()
        rows = TailMaker.rows

        def late(maker: TailMaker) -> DataFrame:
            self.begun.set()
            assert self.may_end.wait(60)
            return rows(maker)

        monkeypatch.setattr(TailMaker, "rows", late)
        tails.tempo = Tempo(rest=0.0, first=30.0, margin=30.0, most=30.0, pause=0.0, keep=30.0)


@pytest.fixture
def held(lab, without_pauses, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    made = Held(without_pauses, monkeypatch)
    yield made
    made.may_end.set()


def at_once(lab, held: Held, queries: Sequence[str]) -> int:
    """Ask these while a tail is being made; how many had begun to wait for it and read it."""
    before = count(lab, "tail_hits")
    with ThreadPoolExecutor(len(queries)) as pool:
        asked = [pool.submit(lab.sql, query) for query in queries]
        time.sleep(1.0)
        assert not any(each.done() for each in asked)
        held.may_end.set()
        for query, each in zip(queries, asked, strict=True):
            assert Counter(each.result(60)) == Counter(lab.plain.sql(query).collect())
    return count(lab, "tail_hits") - before


def test_who_comes_while_it_is_made_waits_for_it(lab, held: Held) -> None:
    lab.cache(GROUPED)
    append(lab, 100)
    without_tail(lab, QUERIES[0])
    assert held.begun.wait(30)
    assert at_once(lab, held, QUERIES[:3]) == 3


def test_who_waits_reads_it_after_a_refresh_as_well(lab, held: Held) -> None:
    lab.cache(GROUPED)
    append(lab, 100)
    without_tail(lab, QUERIES[0])
    assert held.begun.wait(30)
    before = count(lab, "tail_hits")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lab.sql, QUERIES[0])
        time.sleep(1.0)
        lab.sql("REFRESH RELATIONAL CACHE by_region")
        held.may_end.set()
        assert Counter(asked.result(60)) == Counter(lab.plain.sql(QUERIES[0]).collect())
    assert count(lab, "tail_hits") == before + 1


def test_and_one_whose_cache_is_dropped_meanwhile_goes_by_itself(
    lab, held: Held, without_pauses: TailStore
) -> None:
    without_pauses.tempo = Tempo(most=0.0, pause=0.0, keep=1.0)
    lab.cache(GROUPED)
    append(lab, 100)
    without_tail(lab, QUERIES[0])
    assert held.begun.wait(30)
    lab.sql("DROP RELATIONAL CACHE by_region")
    time.sleep(2.0)  # swept while it is made
    held.may_end.set()
    until(lambda: not without_pauses._states, 30, "it goes")
    assert without_pauses._pins.stats().pins == 0


def test_it_is_begun_when_the_query_that_asked_for_it_is_done(
    lab, held: Held, without_pauses: TailStore
) -> None:
    without_pauses.tempo = Tempo(pause=30.0)
    lab.cache(GROUPED)
    append(lab, 100)
    without_tail(lab, QUERIES[0])
    assert not held.begun.wait(0.5)
    assert at_once(lab, held, QUERIES[:1]) == 1  # or when another one waits for it


def test_nobody_waits_for_ever(lab, held: Held, without_pauses: TailStore) -> None:
    lab.cache(GROUPED)
    append(lab, 100)
    without_tail(lab, QUERIES[0])
    assert held.begun.wait(30)
    without_pauses.tempo = Tempo(first=0.1)
    without_tail(lab, QUERIES[0])


def test_explain_waits_for_nothing(lab, held: Held) -> None:
    lab.cache(GROUPED)
    append(lab, 100)
    told = cachemgr.explain(lab.spark, QUERIES[0]).text()
    assert "1 row in 1 file" in told
    assert not held.begun.is_set()


def test_where_queries_come_at_the_same_time_the_first_one_waits_as_well(lab, held: Held) -> None:
    lab.cache(GROUPED)
    append(lab, 100)
    without_tail(lab, QUERIES[0])
    assert held.begun.wait(30)
    assert at_once(lab, held, QUERIES[:2]) == 2
    append(lab, 101)
    held.may_end.clear()
    assert at_once(lab, held, QUERIES[:1]) == 1
    for number in range(4):  # alone again
        append(lab, 110 + number)
        by_tail(lab, QUERIES[0])
    append(lab, 120)
    before = count(lab, "fresh_rows")
    lab.hit(QUERIES[0])
    assert count(lab, "fresh_rows") > before


def test_one_query_after_the_other_is_alone(lab, held: Held) -> None:
    lab.cache(GROUPED)
    for number in range(3):
        append(lab, 100 + number)
        held.may_end.clear()
        before = count(lab, "fresh_rows")
        lab.hit(QUERIES[0])
        assert count(lab, "fresh_rows") > before
        assert held.begun.wait(30)
        assert at_once(lab, held, QUERIES[:1]) == 1


@pytest.fixture
def cust_held(lab, without_pauses: TailStore) -> PinStore:
    """The store of tails, which holds the table of customers for them as well."""
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache(CUBE)
    pins = without_pauses._pins
    for number in range(4):
        append(lab, 100 + number)
        by_tail(lab, JOINED)
    (held,) = tables_held(pins)
    assert held.appended.split("]")[0] == "(['cid', 'city'"
    return pins


def tables_held(pins: PinStore) -> list[PinKey]:
    return [key for key in pins._pins if not key.cache_id]


def test_tables_that_are_joined_again_are_held_as_well(
    lab, without_pauses: TailStore, cust_held: PinStore
) -> None:
    held, pins, joined = tables_held(cust_held), cust_held, JOINED
    lab.plain.sql("INSERT INTO cust VALUES (77, 'Graz', NULL)")
    append(lab, 200, cust="77")
    for _ in range(60):
        lab.sql(joined)  # at first no hit: the new keys are looked at
        without_pauses.sweep()
        if held[0] not in pins._pins:
            return
        time.sleep(0.25)
    raise AssertionError("a version that nobody joins any more is held")


def plan_of(lab, query: str) -> str:
    return lab.spark.sql(query)._jdf.queryExecution().optimizedPlan().toString()


def test_a_query_that_reads_the_files_joins_what_is_held(lab, cust_held: PinStore) -> None:
    append(lab, 200)
    assert "cust[" not in plan_of(lab, JOINED)
    append(lab, 201, cust="2")
    lab.hit(JOINED + " HAVING city <> 'Rome'")
    append(lab, 202)
    lab.spark.conf.set("spark.cachemgr.freshHits.tailMaxBytes", "0")
    assert "cust[" in plan_of(lab, JOINED)
    lab.spark.conf.unset("spark.cachemgr.freshHits.tailMaxBytes")


def test_a_table_created_again_is_not_the_one_that_is_held(lab, cust_held: PinStore) -> None:
    """It comes to the same version."""
    (held,) = tables_held(cust_held)
    lab.plain.sql("DROP TABLE cust")
    lab.plain.sql(CUST)
    lab.plain.sql(CUST_ROWS.replace("Rome", "Roma"))
    (newest,) = lab.plain.sql("DESCRIBE HISTORY cust LIMIT 1").collect()
    assert newest["version"] == held.version
    lab.sql("DROP RECORD PRESERVING JOIN sc")
    lab.sql(JOIN)
    lab.sql("REFRESH RELATIONAL CACHE cube")
    for number in range(3):
        append(lab, 300 + number)
        lab.hit(JOINED)
        by_tail(lab, JOINED)
