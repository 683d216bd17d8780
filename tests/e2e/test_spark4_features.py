# ruff: noqa: E501 - SQL reads better unbroken
"""What Spark 4 has beyond SELECT, on each minor that has it: the rows are those without us, and what
can be answered from a cache is."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from cachemgr.sparks import MINORS, minor_of
from tests.e2e.test_newer_syntax import CUBE, METRICS
from tests.worlds.lab_star import same

pytestmark = pytest.mark.spark

HERE = minor_of(version("pyspark"))
RATIO = "  - name: each\n    expr: SUM(amt) / COUNT(*)\n"
# Once for all: what the queries below read besides the star.
MADE = {
    "4.0": (
        "CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 2",
        "CREATE FUNCTION of_region(r STRING) RETURNS TABLE (cust INT, s BIGINT) RETURN SELECT cust, SUM(amt) FROM sales WHERE region = r GROUP BY cust",
        "CREATE TABLE docs (id INT, v VARIANT) USING delta",
        """INSERT INTO docs SELECT id, parse_json(j) FROM VALUES (1, '{"a": 1, "b": "x"}'), (2, '{"a": 2}'), (3, '{"a": 1}') t(id, j)""",
    ),
    "4.2": ("CREATE VIEW metrics WITH METRICS LANGUAGE YAML AS $$" + METRICS + RATIO + "$$",),
}
# The minor that has it first, whether a cache answers it, and the query.
QUERIES = [
    ("4.2", "hit", "SELECT area, MEASURE(total) AS t FROM metrics GROUP BY area"),
    ("4.2", "hit", "SELECT area, customer, MEASURE(orders) AS n FROM metrics GROUP BY ALL"),
    ("4.2", "hit", "SELECT MEASURE(total) AS t, MEASURE(orders) AS n FROM metrics"),
    ("4.2", "hit", "SELECT area, MEASURE(each) AS e FROM metrics GROUP BY area"),
    ("4.2", "hit", "SELECT MEASURE(total) AS t FROM metrics WHERE customer = 2"),
    ("4.2", "hit", "SELECT upper(area) AS a, MEASURE(orders) AS n FROM metrics GROUP BY upper(area)"),
    ("4.1", "hit", "BEGIN SELECT region, SUM(amt) AS s FROM sales GROUP BY region; END"),
    ("4.1", "hit", "BEGIN DECLARE least INT DEFAULT 2; SELECT SUM(amt) AS s FROM sales WHERE cust >= least; END"),
    ("4.1", "hit", "BEGIN DECLARE i INT DEFAULT 1; WHILE i < 3 DO SET i = i + 1; END WHILE; SELECT i, COUNT(*) AS n FROM sales WHERE cust = i; END"),
    ("4.1", "hit", "BEGIN DECLARE most BIGINT DEFAULT 0; FOR row AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region DO SET most = greatest(most, row.s); END FOR; SELECT most; END"),
    ("4.1", "hit", "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT COUNT(*) AS n FROM sales; END; SELECT 1 / 0; END"),
    ("4.1", "hit", "BEGIN IF (SELECT COUNT(*) FROM sales) > 2 THEN SELECT SUM(amt) AS s FROM sales; ELSE SELECT -1L AS s; END IF; END"),
    ("4.0", "hit", "FROM sales |> AGGREGATE SUM(amt) AS s GROUP BY region"),
    ("4.0", "hit", "FROM sales |> WHERE cust > 1 |> AGGREGATE COUNT(*) AS n GROUP BY region |> ORDER BY n DESC, region |> LIMIT 2"),
    ("4.0", "hit", "FROM sales |> EXTEND cust + 1 AS c |> AGGREGATE SUM(amt) AS s GROUP BY c |> DROP c |> ORDER BY s"),
    ("4.0", "hit", "FROM (SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust) |> JOIN cust ON cust = cid |> SELECT city, s"),
    ("4.0", "hit", "FROM sales |> AGGREGATE SUM(amt) AS s GROUP BY region |> SET s = s + 1"),
    ("4.1", "hit", "WITH RECURSIVE t(n, s) AS (SELECT 1, (SELECT SUM(amt) FROM sales) UNION ALL SELECT n + 1, s FROM t WHERE n < 3) SELECT * FROM t"),
    ("4.1", "hit", "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT t.n, x.s FROM t JOIN (SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust) x ON x.cust = t.n"),
    ("4.1", "miss", "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT SUM(n) AS s FROM t"),
    ("4.0", "hit", "SELECT region, twice(SUM(amt)) AS s FROM sales GROUP BY region"),
    ("4.0", "hit", "SELECT twice(cust) AS c, SUM(amt) AS s FROM sales GROUP BY twice(cust)"),
    ("4.0", "hit", "SELECT * FROM of_region('north')"),
    ("4.0", "hit", "SELECT r.region, f.s FROM (SELECT DISTINCT region FROM sales WHERE region IS NOT NULL) r, LATERAL (SELECT SUM(amt) AS s FROM sales WHERE sales.region = r.region) f"),
    ("4.0", "hit", "EXECUTE IMMEDIATE 'SELECT SUM(amt) AS s FROM sales WHERE cust = ?' USING 2"),
    ("4.0", "hit", "EXECUTE IMMEDIATE 'SELECT region, COUNT(*) AS n FROM sales WHERE cust >= :least GROUP BY region' USING 1 AS least"),
    ("4.0", "hit", "SELECT SUM(amt) AS s FROM IDENTIFIER('sal' || 'es')"),
    ("4.0", "hit", "SELECT IDENTIFIER('region') AS r, SUM(amt) AS s FROM sales GROUP BY ALL"),
    ("4.0", "hit", "SELECT region, cust, SUM(amt) AS s FROM sales GROUP BY ALL"),
    ("4.0", "same", "SELECT SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY GROUPING SETS (())"),
    ("4.0", "same", "SELECT SUM(amt) AS s, COUNT(*) AS n FROM sales WHERE cust = 999 GROUP BY GROUPING SETS (())"),
    ("4.0", "hit", "SELECT region AS r, SUM(amt) AS s, s + 1 AS more FROM sales GROUP BY r"),
    ("4.0", "hit", "SELECT SUM(amt) AS s FROM sales WHERE cust = seen_cust"),
    ("4.2", "hit", "SELECT region, SUM(amt) AS s FROM sales GROUP BY region QUALIFY RANK() OVER (ORDER BY s DESC) = 1"),
    ("4.2", "hit", "SELECT region, cust, COUNT(*) AS n FROM sales GROUP BY ALL QUALIFY MAX(n) OVER (PARTITION BY region) = n"),
    ("4.0", "same", "SELECT variant_get(v, '$.a', 'int') AS a, COUNT(*) AS n FROM docs GROUP BY variant_get(v, '$.a', 'int')"),
    ("4.1", "same", "SELECT COUNT(*) AS n FROM docs WHERE v:a::int = 1"),
    ("4.0", "same", "SELECT schema_of_variant_agg(v) AS s FROM docs"),
    ("4.1", "same", "SELECT d.id, x.s FROM docs d JOIN (SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust) x ON x.cust = v:a::int"),
    ("4.0", "miss", "SELECT region COLLATE UTF8_LCASE AS r, SUM(amt) AS s FROM sales GROUP BY region COLLATE UTF8_LCASE"),
    ("4.0", "same", "SELECT region, SUM(amt) AS s FROM sales WHERE region COLLATE UNICODE_CI = 'NORTH' GROUP BY region"),
    ("4.0", "hit", "SELECT region, SUM(amt) AS s FROM sales GROUP BY region ORDER BY region COLLATE UNICODE"),
    ("4.1", "same", "SELECT approx_top_k(cust, 2) AS k FROM sales"),
    ("4.1", "same", "SELECT theta_sketch_estimate(theta_sketch_agg(cust)) AS n FROM sales"),
    ("4.1", "same", "SELECT kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(amt), 0.5) AS q FROM sales"),
    ("4.0", "same", "SELECT region, LISTAGG(DISTINCT CAST(cust AS STRING), ',') WITHIN GROUP (ORDER BY CAST(cust AS STRING)) AS c FROM sales GROUP BY region"),
    ("4.0", "same", "SELECT region, string_agg(CAST(cust AS STRING), ',') WITHIN GROUP (ORDER BY CAST(cust AS STRING)) AS c FROM sales GROUP BY region"),
    ("4.0", "same", "SELECT region, mode() WITHIN GROUP (ORDER BY cust) AS m FROM sales GROUP BY region"),
    ("4.0", "hit", "SELECT region, SUM(amt) AS s FROM sales GROUP BY region UNION ALL SELECT 'all', SUM(amt) FROM sales"),
    ("4.0", "hit", "SELECT try_divide(SUM(amt), COUNT(*)) AS x FROM sales"),
    ("4.0", "hit", "SELECT region, SUM(amt) FILTER (WHERE cust > 1) AS s FROM sales GROUP BY region"),
    ("4.0", "hit", "SELECT * FROM (SELECT region, cust, amt FROM sales) PIVOT (SUM(amt) FOR cust IN (1, 2))"),
    ("4.0", "hit", "SELECT named_struct('r', region, 's', SUM(amt)) AS x FROM sales GROUP BY region"),
    ("4.0", "hit", "SELECT transform(sequence(1, 2), i -> i + s) AS x FROM (SELECT SUM(amt) AS s FROM sales)"),
    ("4.0", "hit", "WITH x AS (SELECT region, SUM(amt) AS s FROM sales GROUP BY region) SELECT a.region, b.s FROM x a JOIN x b USING (region)"),
    ("4.2", "hit", "SELECT a.region, b.s FROM (SELECT region, COUNT(*) AS n FROM sales GROUP BY region) a JOIN (SELECT region, SUM(amt) AS s FROM sales GROUP BY region) b ON a.region = b.region WHERE a.n > 0"),
]  # fmt: skip


def test_each_feature_of_this_spark(lab) -> None:
    lab.cache(CUBE)
    for minor, statements in MADE.items():
        if MINORS.index(minor) <= MINORS.index(HERE):
            for statement in statements:
                lab.plain.sql(statement.replace("{schema}", lab.schema))
    for session in (lab.plain, lab.spark):
        session.sql("DECLARE OR REPLACE VARIABLE seen_cust INT DEFAULT 2")
        session.sql("DECLARE OR REPLACE VARIABLE seen BIGINT")
    wrong = []
    for minor, outcome, query in QUERIES:
        if MINORS.index(minor) <= MINORS.index(HERE):
            try:
                if outcome == "same":  # equal rows, whether a cache answers or not
                    found = lab.spark.sql(query)
                    same(found, found.collect(), lab.plain.sql(query), "order by" in query.lower())
                else:
                    lab.check(query, outcome == "hit")
            except Exception as error:
                wrong.append(f"{query}: {type(error).__name__}: {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)


def test_there_are_as_many_as_were_tried_by_hand() -> None:
    assert len(QUERIES) == 54 + 2
