"""Appended rows held in memory, grouped as their cache groups them: they answer for their files,
never for others, and only as far as is known of them."""

from __future__ import annotations

import time

import pytest

import cachemgr
from cachemgr.spark import api
from cachemgr.spark.held.tail_maker import TailMaker
from tests.e2e.tails.tail_queries import (
    CUBE,
    GROUPED,
    QUERIES,
    append,
    by_tail,
    count,
    without_tail,
)
from tests.worlds.lab_star import JOIN

pytestmark = pytest.mark.spark


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
