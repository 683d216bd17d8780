# ruff: noqa: E501 - tables of SQL read better unbroken
"""Record-preserving joins serve only while they hold."""

from __future__ import annotations

import pytest

import cachemgr
from cachemgr.errors import CacheManagerError
from tests.e2e.never_wrong.sales_totals import TOTALS
from tests.worlds.lab_star import JOIN

pytestmark = pytest.mark.spark

JOINED = "SELECT region, city, SUM(amt) AS s, COUNT(*) AS n FROM sales, cust WHERE cust = cid GROUP BY region, city"


def test_a_join_broken_after_it_was_declared(lab):
    lab.sql(JOIN)
    lab.cache(f"rc AS {JOINED}")
    lab.hit(TOTALS)
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Twin', 'Italy')")
    lab.hit(TOTALS)  # the snapshot read cust as it was, and sales did not move
    lab.sql("REFRESH RELATIONAL CACHE rc")
    assert lab.sql("SHOW RECORD PRESERVING JOINS")[0].state == "BROKEN"
    lab.miss(TOTALS, "EXTRA_TABLE_NOT_PRESERVING")
    lab.hit(JOINED)


def test_a_join_with_null_keys_is_refused(lab):
    lab.plain.sql("INSERT INTO sales SELECT 60, NULL, 'north', NULL, 1, 1, 1, 1")
    with pytest.raises(CacheManagerError, match="1 of them with a NULL key"):
        lab.sql(JOIN)
    lab.cache(f"rc AS {JOINED}")
    lab.miss(TOTALS, "EXTRA_TABLE_NOT_PRESERVING")


def test_an_extra_table_with_a_predicate(lab):
    lab.sql(JOIN)
    lab.cache(
        f"rc AS {JOINED.replace('GROUP BY', 'AND city <> 0x GROUP BY').replace('0x', repr('Rome'))}"
    )
    lab.miss(TOTALS, "EXTRA_TABLE_FILTERED")


def test_fan_out_by_a_join_that_is_not_record_preserving(lab):
    lab.plain.sql("INSERT INTO cust VALUES (1, 'Twin', 'Italy')")
    lab.cache(f"rc AS {JOINED}")
    lab.miss(TOTALS, "EXTRA_TABLE_NOT_PRESERVING")
    lab.hit(JOINED)
    with pytest.raises(CacheManagerError, match="multiplied"):
        lab.sql(JOIN)


def test_unvalidated_joins_serve_only_when_trusted(lab):
    lab.sql(JOIN + " NOT VALIDATED")
    lab.cache(f"rc AS {JOINED}")
    lab.miss(TOTALS)
    with lab.conf(spark__cachemgr__trustUnvalidated="true"):
        lab.hit(TOTALS)
        assert cachemgr.explain(lab.spark, TOTALS).unvalidated_joins == ("sc",)


def test_a_dropped_join_stops_serving_at_once(lab):
    lab.sql(JOIN)
    lab.cache(f"rc AS {JOINED}")
    lab.hit(TOTALS)
    lab.sql("DROP RECORD PRESERVING JOIN sc")
    lab.miss(TOTALS, "EXTRA_TABLE_NOT_PRESERVING")


def test_a_join_declared_after_the_refresh_serves(lab):
    lab.cache(f"rc AS {JOINED}")
    lab.miss(TOTALS)
    lab.sql(JOIN)
    lab.hit(TOTALS)
