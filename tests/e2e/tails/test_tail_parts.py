"""A tail is made of parts: what a commit appended becomes one, many become one, and parts outlive
only what they still hold for."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from cachemgr.jvm.loader import java_class
from cachemgr.spark.held.tail_pace import Tempo
from cachemgr.spark.held.tails import TailStore
from tests.e2e.tails.tail_queries import (
    GROUPED,
    JOINED,
    QUERIES,
    ROW,
    alike,
    alike_until_by_tail,
    all_by_tail,
    append,
    by_tail,
    links,
    without_tail,
)
from tests.processes import until
from tests.worlds.lab_star import JOIN

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("most_parts", "most_links", "wanted"),
    [
        (3, 8, [[1], [1, 1], [1, 1, 1], [2], [2, 1], [2, 1, 1], [3]]),
        (1, 2, [[1], [2], [1], [2], [1], [2], [1]]),
    ],
    ids=["parts", "links"],
)
def test_what_a_commit_appended_becomes_a_part_and_many_become_one(
    lab,
    without_pauses: TailStore,
    monkeypatch: pytest.MonkeyPatch,
    most_parts: int,
    most_links: int,
    wanted: list[list[int]],
) -> None:
    monkeypatch.setattr("cachemgr.spark.held.tail_maker._MOST_PARTS", most_parts)
    monkeypatch.setattr("cachemgr.spark.held.tail_maker._MOST_LINKS", most_links)
    lab.cache(GROUPED)
    groups = "SELECT region, day, SUM(amt) AS a, COUNT(*) AS n, MIN(id) AS f FROM sales"
    found = []
    for number in range(len(wanted)):
        region, amt = ("'north'", "NULL", "'new'")[number % 3], ("7", "NULL")[number % 2]
        append(lab, 100 + number, region=region, amt=amt)
        all_by_tail(lab, f"{groups} GROUP BY region, day")  # a group has a row in several parts
        lab.hit(f"{groups} GROUP BY region, day HAVING COUNT(*) = 2")
        lab.hit("SELECT day, COUNT(DISTINCT region) AS d FROM sales GROUP BY day")
        lab.hit("SELECT DISTINCT region FROM sales WHERE day > DATE'2024-01-01'")
        lab.hit("SELECT COUNT(*) AS n, SUM(amt) AS a FROM sales WHERE region = 'new'")
        found.append(links(without_pauses))
    assert found == wanted


def grow(lab, tails: TailStore, *, keep: float, commits: int) -> None:
    """Append so often, each time read by a tail; replaced parts are kept for so many seconds."""
    tails.tempo = Tempo(rest=0.0, most=0.0, pause=0.0, keep=keep)
    lab.cache(GROUPED)
    for number in range(commits):
        append(lab, 100 + number)
        all_by_tail(lab, QUERIES[0])


def test_queries_leave_nothing_on_the_plan_of_several_parts(lab, without_pauses: TailStore) -> None:
    """All sessions share it: a query's note would keep the session that left it."""
    grow(lab, without_pauses, keep=0.0, commits=2)
    (made,) = [s.made for s in without_pauses._states.values() if s.made is not None]
    leaves = made.tail.relation.plan.collectLeaves()
    loader = java_class(lab.spark, "Hook").getClass().getClassLoader()
    tag = loader.loadClass("relationalcache.Tags").getField("SUBSTITUTED").get(None)
    assert leaves.size() == 2
    assert [leaves.apply(n).getTagValue(tag).isDefined() for n in (0, 1)] == [False, False]


def test_parts_that_were_put_together_are_kept_for_those_who_read_them(
    lab, without_pauses: TailStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachemgr.spark.held.tail_maker._MOST_PARTS", 2)
    grow(lab, without_pauses, keep=2.0, commits=3)
    assert links(without_pauses) == [2]
    assert without_pauses._pins.stats().pins == 3
    time.sleep(2.1)
    without_pauses.sweep()
    assert without_pauses._pins.stats().pins == 1
    by_tail(lab, QUERIES[0])


def test_a_tail_of_a_dropped_cache_goes_by_itself(lab, without_pauses: TailStore) -> None:
    grow(lab, without_pauses, keep=15.0, commits=1)
    lab.sql("DROP RELATIONAL CACHE by_region")
    assert without_pauses._pins.stats().pins == 1, "a query may still read it"
    until(lambda: without_pauses._pins.stats().pins == 0, 60, "nothing else happens, and it goes")


def test_and_so_are_those_of_the_tail_before(
    lab, without_pauses: TailStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachemgr.spark.held.tail_maker._MOST_PARTS", 2)
    grow(lab, without_pauses, keep=120.0, commits=5)
    assert links(without_pauses) == [3]
    assert without_pauses._pins.stats().pins == 5


def test_parts_of_files_that_are_still_there_outlive_a_restore(lab, without_pauses) -> None:
    lab.cache(GROUPED)
    for number in range(3):
        append(lab, 100 + number)
        all_by_tail(lab, QUERIES[0])
    (now,) = lab.plain.sql("DESCRIBE HISTORY sales LIMIT 1").collect()
    for back, wanted in ((1, [1, 1]), (2, [1])):
        lab.plain.sql(f"RESTORE TABLE sales TO VERSION AS OF {now['version'] - back}")
        all_by_tail(lab, QUERIES[0])
        assert links(without_pauses) == wanted


@pytest.mark.parametrize(
    "moves",
    [
        ("UPDATE cust SET city = 'Wien' WHERE cid = 77",),
        ("DELETE FROM cust WHERE cid = 77", "INSERT INTO cust VALUES (77, 'Wien', NULL)"),
        ("RESTORE TABLE cust TO VERSION AS OF {before}",),
        ("UPDATE cust SET city = 'Wien' WHERE cid = 77", ROW.format(
            id=101, region="'east'", cust="77", amt="7")),
    ],
    ids=["update", "delete and insert", "restore", "update and append"],
)  # fmt: skip
def test_a_row_that_a_dimension_got_and_lost_again_is_not_joined_to_it(
    lab, monkeypatch: pytest.MonkeyPatch, moves: Sequence[str]
) -> None:
    """Since the snapshot the dimension only got a new key, or nothing; not since the tail."""
    if len(moves) > 1:  # what is put together is made of parts that may not hold any more
        monkeypatch.setattr("cachemgr.spark.held.tail_maker._MOST_PARTS", 1)
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache(
        "c AS SELECT city, region, SUM(amt) AS amt, COUNT(*) AS n FROM sales "
        "JOIN cust ON cust = cid GROUP BY city, region"
    )
    (before,) = lab.plain.sql("DESCRIBE HISTORY cust LIMIT 1").collect()
    lab.plain.sql("INSERT INTO cust VALUES (77, 'Graz', NULL)")
    append(lab, 100, cust="77", amt="1000")
    alike_until_by_tail(lab, JOINED)
    for move in moves:
        lab.plain.sql(move.format(before=before["version"]))
        for number in range(4):  # the tail that is made meanwhile as well
            alike(lab, JOINED)
            alike(lab, "SELECT region, COUNT(*) AS n FROM sales GROUP BY region")
            append(lab, 200 + number)
            time.sleep(0.3)
    if "RESTORE" not in moves[0]:
        alike_until_by_tail(lab, JOINED)


def test_a_part_that_lost_its_memory_takes_the_tail_along(lab, without_pauses: TailStore) -> None:
    lab.cache(GROUPED)
    for number in range(3):
        append(lab, 100 + number)
        all_by_tail(lab, QUERIES[0])
    assert links(without_pauses) == [1, 1, 1]
    key = next(iter(without_pauses._pins._pins))
    without_pauses._pins._remove(key, without_pauses._pins._pins[key])
    without_tail(lab, QUERIES[0])
    all_by_tail(lab, QUERIES[0])
    assert links(without_pauses) == [1]
