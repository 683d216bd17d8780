"""Appended rows held in memory, grouped as their cache groups them: they answer for their files,
never for others, and only as far as is known of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import DataFrame

import cachemgr
from cachemgr.jvm.loader import java_class
from cachemgr.spark import api
from cachemgr.spark.held.pins import PinKey, PinStore
from cachemgr.spark.held.tail_maker import TailMaker
from cachemgr.spark.held.tail_pace import Tempo
from cachemgr.spark.held.tails import TailStore
from tests.processes import until
from tests.worlds.lab_star import CUST, CUST_ROWS, JOIN

pytestmark = pytest.mark.spark

CUBE = (
    "cube AS SELECT city, region, day, SUM(amt) AS amt, SUM(price) AS price, COUNT(*) AS n, "
    "COUNT(amt) AS known, MAX(price) AS dearest FROM sales JOIN cust ON cust = cid "
    "GROUP BY GROUPING SETS ((city, region), (region, day), (region), ())"
)
GROUPED = (
    "by_region AS SELECT region, day, SUM(amt) AS amt, COUNT(*) AS n, MIN(id) AS first FROM sales "
    "GROUP BY region, day"
)
ROW = "INSERT INTO sales VALUES ({id}, DATE'2024-03-01', {region}, {cust}, {amt}, 1, 4.00, 0.5)"
QUERIES = (
    "SELECT region, SUM(amt) AS a, COUNT(*) AS n, COUNT(amt) AS k FROM sales GROUP BY region",
    "SELECT SUM(amt) AS a, COUNT(*) AS n FROM sales",
    "SELECT SUM(amt) AS a FROM sales WHERE region = 'nowhere'",
    "SELECT region, SUM(amt) AS a FROM sales GROUP BY region HAVING SUM(amt) > 20",
    "SELECT region, SUM(amt) AS a FROM sales GROUP BY region ORDER BY a DESC NULLS LAST LIMIT 2",
)


def append(lab, id: int, region: str = "'north'", cust: str = "1", amt: str = "5") -> None:
    lab.plain.sql(ROW.format(id=id, region=region, cust=cust, amt=amt))


def count(lab, name: str) -> int:
    return cachemgr.counters(lab.spark).get(name, 0)


def by_tail(lab, query: str) -> None:
    """The query is answered with a tail; it is asked until there is one."""
    _until_by_tail(lab, query, lab.hit)


def alike(lab, query: str) -> None:
    assert Counter(lab.sql(query)) == Counter(lab.plain.sql(query).collect())


def alike_until_by_tail(lab, query: str) -> None:
    """The same where it may miss at first: whether a dimension's new keys are new is looked at."""
    _until_by_tail(lab, query, lambda query: alike(lab, query))


def _until_by_tail(lab, query: str, ask: Callable[[str], object]) -> None:
    for _ in range(60):
        before = count(lab, "tail_hits")
        ask(query)
        if count(lab, "tail_hits") > before:
            return
        time.sleep(0.25)
    raise AssertionError(f"no tail serves: {query}")


def without_tail(lab, query: str) -> None:
    before = count(lab, "tail_hits"), count(lab, "fresh_hits")
    lab.hit(query)
    assert count(lab, "fresh_hits") > before[1]
    assert count(lab, "tail_hits") == before[0]


@pytest.fixture(autouse=True)
def without_pauses(lab):
    """The next tail is made at once, and no query waits for it."""
    tails = api._of(lab.spark).session.application.tails
    tempo, tails.tempo = tails.tempo, Tempo(rest=0.0, most=0.0, pause=0.0, keep=0.0)
    yield tails
    tails.tempo = tempo


def test_a_tail_answers_for_the_files_that_it_holds(lab) -> None:
    lab.cache(GROUPED)
    append(lab, 100, amt="NULL")
    append(lab, 101, region="NULL")
    for query in QUERIES:
        by_tail(lab, query)
    told = cachemgr.explain(lab.spark, QUERIES[0]).text()
    assert "all of them held in memory" in told
    before = count(lab, "fresh_rows")
    lab.hit(QUERIES[0])
    assert count(lab, "fresh_rows") == before, "no file is read"


def test_a_cache_with_an_average_of_whole_numbers_has_them(lab) -> None:
    """It is stored as DOUBLE, which a NaN would keep out of memory, and is none."""
    mean = "SELECT region, day, AVG(cust) AS mean, SUM(amt) AS amt FROM sales GROUP BY region, day"
    lab.cache(f"means AS {mean}")
    append(lab, 100, amt="NULL")
    append(lab, 101, region="NULL", cust="NULL")
    for query in (mean, "SELECT SUM(amt) AS a FROM sales", f"{mean} HAVING AVG(cust) > 1.5"):
        by_tail(lab, query)


def test_later_files_are_read_beside_it_until_it_is_extended(lab) -> None:
    lab.cache(GROUPED)
    append(lab, 100)
    by_tail(lab, QUERIES[0])
    for number in range(10):
        append(lab, 200 + number, region="'east'" if number % 2 else "'south'")
        told = cachemgr.explain(lab.spark, QUERIES[0]).text()
        assert f"{number + 2} rows in {number + 2} files" in told
        assert "held in memory" in told
        by_tail(lab, QUERIES[number % len(QUERIES)])
    lab.sql("REFRESH RELATIONAL CACHE by_region")
    before = count(lab, "fresh_hits")
    lab.hit(QUERIES[0])
    assert count(lab, "fresh_hits") == before
    append(lab, 300, amt="77")
    without_tail(lab, QUERIES[0])
    by_tail(lab, QUERIES[0])


def all_by_tail(lab, query: str) -> None:
    """The query is asked until no file is left to be read beside its tail."""
    for _ in range(60):
        lab.hit(query)
        told = cachemgr.explain(lab.spark, query).text()
        if "all of them held in memory" in told:
            return by_tail(lab, query)
        time.sleep(0.1)
    raise AssertionError(f"files are still read: {query}")


def links(tails: TailStore) -> list[int]:
    """Of the one tail there is: for each part how many it was made of."""
    (state,) = [state for state in tails._states.values() if state.made is not None]
    assert state.made is not None
    return [part.links for part in state.made.parts]


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


def test_it_is_not_used_where_its_files_went(lab) -> None:
    lab.cache(GROUPED)
    append(lab, 100, amt="1000")
    version = lab.plain.sql("DESCRIBE HISTORY sales LIMIT 1").collect()[0]["version"]
    append(lab, 101, amt="10")
    by_tail(lab, QUERIES[0])
    with lab.caches_alone():
        lab.miss(QUERIES[0])
    lab.plain.sql(f"RESTORE TABLE sales TO VERSION AS OF {version}")
    without_tail(lab, QUERIES[0])  # the first file alone was appended
    by_tail(lab, QUERIES[0])
    lab.plain.sql("DELETE FROM sales WHERE id = 100")
    lab.hit(QUERIES[0])  # nothing was appended any more
    lab.plain.sql("DELETE FROM sales WHERE id = 1")
    lab.miss(QUERIES[0])


@pytest.mark.parametrize(("few_rows", "wanted"), [(50_000, 1), (0, 4)])
def test_the_sets_of_a_cube_share_one_for_few_rows(
    lab, without_pauses, monkeypatch: pytest.MonkeyPatch, few_rows: int, wanted: int
) -> None:
    monkeypatch.setattr("cachemgr.spark.held.tails._FEW_ROWS", few_rows)
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache(CUBE)
    append(lab, 100)
    append(lab, 101, region="NULL", cust="2")
    for query in (
        *QUERIES,
        "SELECT region, day, SUM(price) AS p, MAX(price) AS m FROM sales GROUP BY region, day",
        "SELECT city, SUM(amt) AS a FROM sales JOIN cust ON cust = cid GROUP BY city",
    ):
        by_tail(lab, query)
    assert sum(1 for key in without_pauses._pins._pins if key.cache_id) == wanted


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


JOINED = "SELECT city, SUM(amt) AS a FROM sales JOIN cust ON cust = cid GROUP BY city"


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


def test_a_join_that_lost_an_appended_row_is_not_relied_on(lab) -> None:
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache(CUBE)
    append(lab, 100)
    append(lab, 101, cust="99")  # no customer
    joined = "SELECT region, SUM(amt) AS a FROM sales JOIN cust ON cust = cid GROUP BY region"
    by_tail(lab, joined)
    for _ in range(3):
        without_tail(lab, QUERIES[0])
    by_tail(lab, joined)


def test_a_dimension_that_changed_since_keeps_it_from_being_made(lab) -> None:
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache(CUBE)
    lab.plain.sql("UPDATE cust SET city = 'Elsewhere' WHERE cid = 1")
    append(lab, 100)
    for _ in range(3):
        without_tail(lab, QUERIES[0])
        time.sleep(0.5)
    lab.miss("SELECT city, SUM(amt) AS a FROM sales JOIN cust ON cust = cid GROUP BY city")


def test_what_is_known_of_the_cache_is_not_known_of_it(lab) -> None:
    """`amt` is never NULL in the cache, so COUNT(amt) is answered by COUNT(*) there."""
    lab.sql("DELETE FROM sales WHERE amt IS NULL")
    lab.cache("counted AS SELECT region, COUNT(*) AS n, SUM(amt) AS a FROM sales GROUP BY region")
    query = "SELECT region, COUNT(amt) AS k, SUM(amt) AS a FROM sales GROUP BY region"
    lab.hit(query)
    append(lab, 100, amt="NULL")
    for _ in range(3):
        lab.hit(query)
        lab.hit("SELECT region, SUM(amt) AS a FROM sales GROUP BY region")
        time.sleep(0.3)
    by_tail(lab, "SELECT region, SUM(amt) AS a, COUNT(*) AS n FROM sales GROUP BY region")
    lab.hit(query)


def test_the_last_time_it_takes_no_memory(lab) -> None:
    lab.cache(GROUPED)
    append(lab, 100)
    with lab.conf(spark__cachemgr__freshHits__tailMaxBytes="0"):
        for _ in range(3):
            without_tail(lab, QUERIES[0])
            time.sleep(0.3)
    by_tail(lab, QUERIES[0])
    tails = api._of(lab.spark).session.application.tails
    assert tails._pins.stats().pins > 0
    lab.sql("DROP RELATIONAL CACHE by_region")
    tails.sweep()
    assert tails._pins.stats().pins == 0


def test_appended_rows_whose_sum_alone_overflows(lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tail can be made of them, which is tried once; Spark's own answer depends on the order of
    the files."""
    rows, tried = TailMaker.rows, []
    monkeypatch.setattr(TailMaker, "rows", lambda maker: tried.append(maker) or rows(maker))
    lab.sql("DELETE FROM sales")
    append(lab, 1, amt=str(-(2**62)))
    lab.cache("big AS SELECT region, SUM(amt) AS amt, COUNT(*) AS n FROM sales GROUP BY region")
    append(lab, 2, amt=str(2**62))
    append(lab, 3, amt=str(2**62))
    tails = api._of(lab.spark).session.application.tails
    for _ in range(3):
        assert lab.sql("SELECT region, SUM(amt) AS a FROM sales GROUP BY region") == [
            ("north", 2**62)
        ]
        for _ in range(100):
            if not tails.is_making:
                break
            time.sleep(0.1)
    assert count(lab, "fresh_hits") == 3
    assert count(lab, "tail_hits") == 0
    assert len(tried) == 1
