"""Freshness and snapshots: what a cache may show once its tables have moved on."""

from __future__ import annotations

import pytest

from cachemgr.errors import CacheManagerError
from tests.e2e.never_wrong.sales_totals import TOTALS, stale_hit
from tests.worlds.lab_star import SALES

pytestmark = pytest.mark.spark


def test_a_dataframe_made_before_an_append(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region")
    made, plain = lab.spark.sql(TOTALS), lab.plain.sql(TOTALS)
    filtered = lab.spark.sql(TOTALS).filter("region = 'new'")
    made_view = lab.spark.sql(TOTALS)
    made_view.createOrReplaceTempView("v")
    lab.plain.sql("INSERT INTO sales SELECT 50, NULL, 'new', 1, 5, 5, 5, 5")
    assert sorted(map(str, made.collect())) == sorted(map(str, plain.collect()))
    assert [tuple(r) for r in filtered.collect()] == [("new", 5)]
    assert ("new", 5) in [tuple(r) for r in lab.sql("SELECT * FROM v")]


def test_strict_shows_what_was_appended_or_misses(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.hit(TOTALS)
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    lab.hit(TOTALS)
    with lab.caches_alone():
        lab.miss(TOTALS, "STALE")
    lab.plain.sql("DELETE FROM sales WHERE id = 2")
    lab.miss(TOTALS, "STALE")
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(TOTALS)


def test_max_staleness_hits_within_its_bound_only(lab):
    lab.cache(
        "r MAX STALENESS INTERVAL 1 HOUR AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    )
    before = sorted(map(str, lab.sql(TOTALS)))
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    hit, rows = stale_hit(lab, TOTALS)
    assert hit and sorted(map(str, rows)) == before
    lab.sql("ALTER RELATIONAL CACHE r SET MAX STALENESS INTERVAL 20 SECONDS")
    with lab.caches_alone():
        lab.miss(TOTALS, "STALE")
    lab.hit(TOTALS)  # with what was appended
    lab.sql("ALTER RELATIONAL CACHE r SET MAX STALENESS UNLIMITED")
    assert stale_hit(lab, TOTALS)[0]


def test_a_recreated_table_with_as_many_versions(lab):
    lab.cache(
        "r MAX STALENESS UNLIMITED AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region"
    )
    place = lab.plain.sql("DESCRIBE DETAIL sales").first().location
    lab.plain.sql("DROP TABLE sales")
    lab.plain.sql(SALES)
    lab.plain.sql("INSERT INTO sales SELECT 1, NULL, 'other', 1, 1, 1, 1, 1")
    assert lab.plain.sql("DESCRIBE DETAIL sales").first().location == place
    lab.miss(TOTALS, "TABLE_RECREATED")


def test_a_view_redefined_after_the_refresh(lab):
    lab.plain.sql("CREATE VIEW v AS SELECT region, amt FROM sales WHERE cust = 1")
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM v GROUP BY region")
    query = "SELECT region, SUM(amt) FROM v GROUP BY region"
    lab.hit(query)
    lab.plain.sql("CREATE OR REPLACE VIEW v AS SELECT region, amt FROM sales WHERE cust = 2")
    lab.miss(query)
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(query)


def test_a_parquet_table_cannot_be_cached(lab):
    lab.plain.sql("CREATE TABLE pq USING parquet AS SELECT 1 AS k, 2 AS v")
    with pytest.raises(CacheManagerError, match="not a Delta table"):
        lab.sql("CREATE RELATIONAL CACHE p AS SELECT k, SUM(v) AS s FROM pq GROUP BY k")


def test_a_commit_that_was_not_published_is_never_read(lab, metastore):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    location = metastore.caches.all()[0].location
    lab.plain.sql(f"UPDATE delta.`{location}` SET s = -1")
    lab.hit(TOTALS)
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.hit(TOTALS)
