"""Record-preserving LEFT JOINs: a fact with rows that find nothing, and a unique key."""

from __future__ import annotations

import re

import pytest
from test_grown_dimensions import counted, looked_at

from cachemgr.errors import JoinValidationError
from tests.worlds.lab_star import JOIN

pytestmark = pytest.mark.spark

LEFT = JOIN.replace("INNER", "LEFT")
ORPHANS = (
    "INSERT INTO sales VALUES (60, NULL, 'n', 42, 1, 1, 1, 1), (61, NULL, 'n', NULL, 2, 2, 2, 2)"
)
OUTER = (
    "c AS SELECT region, city, SUM(amt) AS s, COUNT(amt) AS k, COUNT(*) AS n FROM sales "
    "LEFT JOIN cust ON cust = cid GROUP BY region, city"
)
INNER = (
    "i AS SELECT region, cust, city, SUM(amt) AS s, COUNT(amt) AS k, COUNT(*) AS n FROM sales "
    "JOIN cust ON cust = cid GROUP BY region, cust, city"
)
WITHOUT = "SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region"
BY_CITY = "SELECT city, SUM(amt) AS s FROM sales JOIN cust ON cust = cid GROUP BY city"


def test_a_fact_with_rows_that_find_nothing(lab):
    lab.plain.sql(ORPHANS)
    with pytest.raises(JoinValidationError) as caught:
        lab.sql(JOIN)
    told = re.search(r"; or declare (\S+ LEFT JOIN .*), which holds:", str(caught.value))
    assert told is not None
    lab.sql(f"CREATE RECORD PRESERVING JOIN sc AS {told[1]}")
    (shown,) = lab.sql("SHOW RECORD PRESERVING JOINS")
    assert (shown.kind, shown.keys, shown.state) == ("LEFT", "cust = cid", "VALID")
    lab.cache(OUTER)
    lab.hit(WITHOUT)
    lab.plain.sql("INSERT INTO sales VALUES (62, NULL, 'new', 99, 5, 5, 5, 5)")
    lab.hit(WITHOUT)  # the row beside the cache
    lab.sql("REFRESH RELATIONAL CACHE c INCREMENTAL")
    with lab.caches_alone():
        lab.hit(WITHOUT)


def test_a_key_that_is_there_twice_breaks_it(lab):
    lab.sql(LEFT)
    lab.cache(OUTER)
    lab.hit(WITHOUT)
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Twin', 'Italy')")
    lab.sql("REFRESH RELATIONAL CACHE c")
    (shown,) = lab.sql("SHOW RECORD PRESERVING JOINS")
    assert "would be multiplied" in shown.message and "lost" not in shown.message
    lab.miss(WITHOUT, "OUTER_JOIN_DIFFERS")
    lab.plain.sql("DELETE FROM cust WHERE city = 'Twin'")
    lab.sql("VALIDATE RECORD PRESERVING JOIN sc")
    lab.sql("REFRESH RELATIONAL CACHE c")
    lab.hit(WITHOUT)


def test_rows_that_an_inner_cache_lost_are_not_found_by_a_left_join(lab):
    lab.plain.sql(ORPHANS)
    lab.sql(LEFT)
    lab.cache(INNER)
    lab.hit(BY_CITY)
    lab.miss(WITHOUT, "EXTRA_TABLE_NOT_PRESERVING")
    lab.sql("DROP RECORD PRESERVING JOIN sc")
    lab.plain.sql("DELETE FROM sales WHERE id >= 60")
    lab.sql(JOIN)
    lab.sql("REFRESH RELATIONAL CACHE i")
    lab.hit(WITHOUT)


@pytest.mark.parametrize("declared", [JOIN, LEFT])
def test_a_dimension_that_gets_the_keys_of_rows_that_found_nothing(lab, declared):
    """After an INNER join a new key finds no row that is in the cache; after a LEFT one it may."""
    if declared is LEFT:
        lab.plain.sql(ORPHANS)
    lab.sql(declared)
    lab.cache(INNER)
    lab.hit(BY_CITY)
    lab.plain.sql("INSERT INTO cust VALUES (42, 'Kyiv', NULL)")
    looked_at(lab, BY_CITY)
    before = counted(lab)
    rows = lab.hit(BY_CITY)
    assert (counted(lab) == before) is (declared is JOIN), "the new row is read beside the cache"
    assert (("Kyiv", 1) in map(tuple, rows)) is (declared is LEFT)
    lab.plain.sql("INSERT INTO sales VALUES (70, NULL, 'n', 42, 7, 7, 7, 7)")
    looked_at(lab, BY_CITY)
    lab.check(BY_CITY, hit=declared is JOIN)
