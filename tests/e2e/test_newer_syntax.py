# ruff: noqa: E501 - SQL reads better unbroken
"""What Spark 4 has added to SQL ends in the plans that caches answer: metric views, pipe syntax,
SQL scripting, QUALIFY."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark

CUBE = "r AS SELECT region, cust, COUNT(*) AS n, SUM(amt) AS s FROM sales GROUP BY region, cust"
METRICS = """
version: "0.1"
source: {schema}.sales
filter: cust > 1
dimensions:
  - name: area
    expr: region
  - name: customer
    expr: cust
measures:
  - name: total
    expr: SUM(amt)
  - name: orders
    expr: COUNT(*)
"""


def test_a_metric_view_is_answered(lab) -> None:
    lab.cache(CUBE)
    text = METRICS.format(schema=lab.schema)
    lab.plain.sql(f"CREATE VIEW metrics WITH METRICS LANGUAGE YAML AS $${text}$$")
    rows = lab.hit(
        "SELECT area, MEASURE(total) AS t, MEASURE(orders) AS n FROM metrics GROUP BY area"
    )
    assert len(rows) > 1
    lab.hit("SELECT MEASURE(total) AS t FROM metrics WHERE customer = 2")
    lab.hit(
        "SELECT area, customer, MEASURE(orders) AS n FROM metrics GROUP BY ALL ORDER BY n DESC, area, customer LIMIT 3"
    )
    with lab.conf(spark__cachemgr__mode="off"):
        lab.miss("SELECT area, MEASURE(total) AS t FROM metrics GROUP BY area")


@pytest.mark.parametrize(
    "query",
    [
        "FROM sales |> AGGREGATE SUM(amt) AS s GROUP BY region",
        "FROM sales |> WHERE cust > 1 |> AGGREGATE SUM(amt) AS s, COUNT(*) AS n GROUP BY region |> WHERE n > 1 |> ORDER BY s",
        "FROM sales |> EXTEND cust + 1 AS c |> AGGREGATE SUM(amt) AS s GROUP BY c |> SELECT s, c |> LIMIT 10",
        "SELECT region, cust, amt FROM sales |> SET region = UPPER(region) |> AGGREGATE SUM(amt) AS s GROUP BY region",
    ],
)  # fmt: skip
def test_pipe_syntax_is_answered(lab, query: str) -> None:
    lab.cache(CUBE)
    lab.hit(query)


def test_a_script_is_answered(lab) -> None:
    lab.cache(CUBE)
    lab.hit("BEGIN SELECT region, SUM(amt) AS s FROM sales GROUP BY region; END")
    lab.hit(
        "BEGIN DECLARE least INT DEFAULT 2; SELECT region, SUM(amt) AS s FROM sales WHERE cust >= least GROUP BY region; END"
    )
    loop = "BEGIN DECLARE i INT DEFAULT 1; WHILE i < 3 DO SET i = i + 1; END WHILE; SELECT i, COUNT(*) AS n FROM sales WHERE cust = i; END"
    lab.hit(loop)
    branch = "BEGIN IF (SELECT COUNT(*) FROM sales) > 2 THEN SELECT SUM(amt) AS s FROM sales; ELSE SELECT -1L AS s; END IF; END"
    before = lab.hits()
    lab.hit(branch)
    assert lab.hits() == before + 2, "the condition is a query of its own"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, SUM(amt) AS s FROM sales GROUP BY region QUALIFY RANK() OVER (ORDER BY s DESC) = 1",
        "SELECT region, cust, COUNT(*) AS n FROM sales GROUP BY ALL QUALIFY MAX(n) OVER (PARTITION BY region) = n",
        "SELECT cust, SUM(amt) AS s FROM sales WHERE region = 'north' GROUP BY cust HAVING SUM(amt) > 0 QUALIFY DENSE_RANK() OVER (ORDER BY s) < 3",
    ],
)  # fmt: skip
def test_qualify_is_answered(lab, query: str) -> None:
    lab.cache(CUBE)
    lab.hit(query)


def test_an_output_named_in_grouping_sets(lab) -> None:
    lab.cache(
        "sets AS SELECT region, year(day) AS y, SUM(amt) AS s FROM sales "
        "GROUP BY region, year(day) GROUPING SETS ((region, y), (region), ())"
    )
    lab.hit("SELECT year(day), region, SUM(amt) FROM sales GROUP BY year(day), region")
    lab.hit("SELECT SUM(amt) FROM sales")
