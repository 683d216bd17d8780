"""Dimensions that were appended to since the refresh: harmless under new keys, not otherwise."""

from __future__ import annotations

import time

import pytest

import cachemgr
from cachemgr.spark import api
from tests.worlds.lab_star import JOIN

pytestmark = pytest.mark.spark

JOINED = (
    "joined AS SELECT city, nation, region, SUM(amt) AS amt, COUNT(*) AS n "
    "FROM sales JOIN cust ON cust = cid GROUP BY city, nation, region"
)
BY_CITY = (
    "SELECT city, SUM(amt) AS a, COUNT(*) AS n FROM sales JOIN cust ON cust = cid GROUP BY city"
)
BY_REGION = "SELECT region, SUM(amt) AS a, COUNT(*) AS n FROM sales GROUP BY region"
SALE = "INSERT INTO sales VALUES ({id}, DATE'2024-03-01', 'north', {cust}, 5, 1, 4.00, 0.5)"


def sell(lab, id: int, cust: int) -> None:
    lab.plain.sql(SALE.format(id=id, cust=cust))


def looked_at(lab, query: str) -> None:
    """Ask once, and wait until the new keys were looked at."""
    application = api._of(lab.spark).session.application
    lab.spark.sql(query).collect()
    for _ in range(200):
        if not application.new_keys.is_looking and not application.tails.is_making:
            return
        time.sleep(0.1)
    raise AssertionError("the new keys are still being looked at")


def counted(lab) -> tuple[int, int]:
    found = cachemgr.counters(lab.spark)
    return found.get("fresh_hits", 0), found.get("fresh_rows", 0)


@pytest.fixture
def star(lab):
    lab.sql("DELETE FROM sales WHERE cust > 3 OR cust IS NULL")
    lab.sql(JOIN)
    lab.cache(JOINED)
    return lab


def test_new_keys_change_nothing(star) -> None:
    star.plain.sql("INSERT INTO cust VALUES (9, 'Bergen', NULL), (10, NULL, NULL)")
    looked_at(star, BY_CITY)
    before = counted(star)
    star.hit(BY_CITY)
    star.hit(BY_CITY + " HAVING COUNT(*) > 1")
    star.hit(BY_CITY.replace("GROUP BY", "WHERE nation = 'Italy' GROUP BY"))
    assert counted(star) == before, "nothing is read beside the cache"


def test_the_fact_grows_as_well(star) -> None:
    star.plain.sql("INSERT INTO cust VALUES (9, 'Bergen', NULL)")
    sell(star, 100, 9)
    sell(star, 101, 1)
    looked_at(star, BY_CITY)
    before = counted(star)
    for query in (BY_CITY, BY_REGION):
        star.hit(query)
    assert counted(star)[0] == before[0] + 2
    for number in range(3):  # and once more, with a tail
        star.plain.sql(f"INSERT INTO cust VALUES ({20 + number}, 'Molde', NULL)")
        sell(star, 110 + number, 20 + number)
        for query in (BY_CITY, BY_REGION):
            looked_at(star, query)
            star.hit(query)


def test_a_sale_that_comes_before_its_customer(star) -> None:
    """What was without a partner once may have one later."""
    sell(star, 100, 9)
    looked_at(star, BY_CITY)
    star.hit(BY_CITY)
    star.hit(BY_REGION)
    star.plain.sql("INSERT INTO cust VALUES (9, 'Bergen', NULL)")
    for _ in range(3):
        for query in (BY_CITY, BY_REGION):
            looked_at(star, query)
            star.hit(query)


@pytest.mark.parametrize(
    "row",
    ["(1, 'Again', NULL)", "(9, 'Bergen', NULL), (9, 'Tromso', NULL)"],
    ids=["a known key", "a new key twice"],
)
def test_a_key_that_is_there_twice(star, row) -> None:
    star.plain.sql(f"INSERT INTO cust VALUES {row}")
    sell(star, 100, 9)
    looked_at(star, BY_CITY)
    star.miss(BY_CITY, "DIMENSION_CHANGED")
    star.hit(BY_REGION)  # does not read the dimension


def test_another_join_than_the_declared_one(star) -> None:
    star.plain.sql("INSERT INTO cust VALUES (9, 'Bergen', NULL)")
    sell(star, 100, 9)
    query = BY_CITY.replace("JOIN", "LEFT JOIN")
    looked_at(star, query)
    star.miss(query)


def test_a_dimension_that_changed_otherwise(star) -> None:
    sell(star, 100, 1)
    star.plain.sql("INSERT INTO cust VALUES (9, 'Bergen', NULL)")
    looked_at(star, BY_CITY)
    star.hit(BY_CITY)
    star.plain.sql("UPDATE cust SET city = 'Turin' WHERE cid = 3")
    looked_at(star, BY_CITY)
    star.miss(BY_CITY, "STALE")
    star.hit(BY_REGION)


def test_it_is_switched_off_with_the_appended_rows(star) -> None:
    star.plain.sql("INSERT INTO cust VALUES (9, 'Bergen', NULL)")
    looked_at(star, BY_CITY)
    star.hit(BY_CITY)
    with star.caches_alone():
        star.miss(BY_CITY, "STALE")
