"""Queries that roll up a cache of partial rows, put together by the keys that are read."""

from __future__ import annotations

import pytest
from test_text_door import Door

import cachemgr
from cachemgr.refresh.by_change import incremental

pytestmark = pytest.mark.spark

DEEP = (
    "deep AS SELECT s.region, s.day, s.cust, c.city, SUM(s.price) AS p, SUM(s.amt) AS a, "
    "COUNT(s.price) AS kp, COUNT(s.amt) AS ka, COUNT(*) AS n FROM sales s "
    "LEFT JOIN cust c ON s.cust = c.cid GROUP BY s.region, s.day, s.cust, c.city"
)
FROM = "FROM sales s LEFT JOIN cust c ON s.cust = c.cid"
ROLL_UPS = (
    f"SELECT region, SUM(price) AS p, COUNT(*) AS n {FROM} GROUP BY region",
    f"SELECT city, SUM(amt) AS a, COUNT(amt) AS k {FROM} GROUP BY city",
    f"SELECT SUM(price) AS p, SUM(amt) AS a, COUNT(*) AS n {FROM}",
    f"SELECT SUM(price) AS p {FROM} WHERE region = 'nowhere'",
    f"SELECT region, AVG(price) AS p {FROM} WHERE city = 'Rome' GROUP BY region",
    f"SELECT year(day) AS y, region, SUM(price) AS p {FROM} GROUP BY CUBE (year(day), region)",
    f"SELECT COUNT(DISTINCT region) AS r, COUNT(DISTINCT city) AS c, COUNT(*) AS n {FROM}",
    f"SELECT region, MAX(day) AS d {FROM} GROUP BY region HAVING SUM(price) > 2",
    f"SELECT region, SUM(price) FILTER (WHERE cust > 1) AS p {FROM} GROUP BY region",
    f"SELECT cust, region, SUM(price) AS p {FROM} GROUP BY cust, region ORDER BY p DESC LIMIT 2",
    f"SELECT SUM(price) AS p {FROM} GROUP BY region, day, cust, city",
    f"SELECT region, day, cust, city, SUM(amt) AS a {FROM} GROUP BY region, day, cust, city",
)
CHANGES = (
    "INSERT INTO sales VALUES (9, DATE'2024-01-01', 'north', 1, 5, 5, 1.00, 0), "
    "(10, NULL, 'new', 77, NULL, NULL, NULL, NULL)",
    "DELETE FROM sales WHERE region = 'south' OR id = 10",  # no row of these groups is left
    "UPDATE sales SET price = NULL, amt = -amt WHERE region = 'north'",
    "INSERT INTO sales VALUES (11, DATE'2024-01-03', 'south', 3, NULL, NULL, NULL, NULL)",
)


def test_rows_after_each_change(lab, monkeypatch) -> None:
    monkeypatch.setattr(incremental, "FEW_ROWS", -1)
    monkeypatch.setattr(incremental, "MOST_PARTIALS", 1e9)
    lab.spark.conf.set("spark.cachemgr.pin.maxRowsPerSet", "0")
    lab.plain.sql("ALTER TABLE sales SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    lab.cache(DEEP)
    for change in CHANGES:
        lab.plain.sql(change)
        (done,) = lab.sql("REFRESH RELATIONAL CACHE deep INCREMENTAL")
        assert done["mode"] == "PARTIALS"
        for query in ROLL_UPS:
            lab.hit(query)
    counted = cachemgr.counters(lab.spark)
    assert counted.get("errors", 0) == 0 and counted.get("pin_hits", 0) == 0
    door = Door(lab)
    for query in ROLL_UPS:
        door.hit(query)
    door.feed.close()


def test_a_roll_up_groups_no_row_by_keys_that_it_does_not_read(lab, monkeypatch) -> None:
    monkeypatch.setattr(incremental, "FEW_ROWS", -1)
    monkeypatch.setattr(incremental, "MOST_PARTIALS", 1e9)
    lab.spark.conf.set("spark.cachemgr.pin.maxRowsPerSet", "0")
    lab.cache(DEEP)
    lab.plain.sql(CHANGES[0])
    lab.sql("REFRESH RELATIONAL CACHE deep INCREMENTAL")
    plan = lab.spark.sql(ROLL_UPS[0])._jdf.queryExecution().optimizedPlan().toString()
    grouped = [line for line in plan.splitlines() if "Aggregate [" in line]
    assert len(grouped) == 2 and not any("city" in line or "day" in line for line in grouped)
