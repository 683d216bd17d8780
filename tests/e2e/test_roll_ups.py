# ruff: noqa: E501 - tables of SQL read better unbroken
"""Roll-ups of Spark's aggregates through Catalyst: what the optimiser leaves of a query is read back."""

from __future__ import annotations

CACHE = """many AS SELECT region, cust, day, SUM(amt) AS s, COUNT(amt) AS n, FIRST(cost) IGNORE NULLS AS f,
 COLLECT_SET(cost) AS cs, HLL_SKETCH_AGG(amt) AS h, KLL_SKETCH_AGG_BIGINT(amt) AS k, STDDEV(price) AS sd,
 MAX_BY(cost, amt) AS mb, BIT_XOR(amt) AS x, BOOL_OR(amt > 20) AS bo, COUNT_IF(cost > 3) AS cc,
 SUM(amt) FILTER (WHERE cost > 3) AS fs, SUM(price) AS sp FROM sales GROUP BY region, cust, day"""
BY_REGION = [
    "COUNT_IF(cust > 1), COUNT(CASE WHEN cust = 2 THEN amt END), COUNT_IF(cost > 3)",
    "SUM(CASE WHEN cust = 1 THEN amt ELSE 0 END), SUM(IF(cust = 2, amt, NULL))",
    "SUM(CASE WHEN cost > 3 THEN amt END), SUM(amt) FILTER (WHERE cust <> 1)",
    "SUM(cust), COUNT(cust), AVG(cust), SUM(1), MIN(day), SUM(MONTH(day))",
    "SUM(amt + 1), SUM(2 * amt), SUM(amt * cust), SUM(COALESCE(amt, 0)), SUM(0.5 * price)",
    "SOME(amt > 20), BIT_XOR(amt), BIT_XOR(cust)",
    "COUNT(DISTINCT cost), SORT_ARRAY(COLLECT_SET(cost)), COUNT(DISTINCT cust, day)",
    "HLL_SKETCH_ESTIMATE(HLL_SKETCH_AGG(amt)), APPROX_COUNT_DISTINCT(cust), PERCENTILE(cust, 0.5)",
    "KLL_SKETCH_GET_N_BIGINT(KLL_SKETCH_AGG_BIGINT(amt))",
    "100.0 * SUM(amt) / COUNT(*), TRY_SUM(amt), TRY_AVG(price), MEAN(price)",
    "COUNT(amt, cust), COUNT(1), ANY_VALUE(region)",
]


def test_through_the_optimiser(lab):
    lab.cache(CACHE)
    for outputs in BY_REGION:
        lab.hit(f"SELECT region, {outputs} FROM sales GROUP BY region")
        lab.hit(f"SELECT {outputs} FROM sales WHERE region = 'nowhere'")
    lab.hit(
        "SELECT region, cust, day, FIRST(cost) IGNORE NULLS, STDDEV(price), MAX_BY(cost, amt), "
        "BOOL_OR(amt > 20), SUM(amt) FILTER (WHERE cost > 3) FROM sales GROUP BY ALL"
    )
    lab.miss("SELECT region, cust, day, FIRST(cost) FROM sales GROUP BY ALL", "AGG_NOT_DERIVABLE")
    for func in ("MAX_BY", "MIN_BY"):  # also where the two next to it are stored
        several = f"SELECT region, {func}(cost, amt, 2) FROM sales GROUP BY region"
        lab.miss(several, "AGG_NOT_DERIVABLE")
    deviation = "SELECT region, ROUND(STDDEV(price), 9) FROM sales GROUP BY region"
    lab.miss(deviation, "FLOAT_NOT_EXACT")
    with lab.conf(spark__cachemgr__approximateFloats="true"):
        lab.hit(deviation)
    different = "SELECT region, COUNT(DISTINCT amt) FROM sales GROUP BY region"
    lab.miss(different, "DISTINCT_NOT_DERIVABLE")
    with lab.conf(spark__cachemgr__approximateDistinct="true"):
        lab.hit(different)


def test_from_a_cube_over_no_rows(lab):
    lab.cache(
        "c AS SELECT region, cust, SUM(amt) AS s, COLLECT_SET(cost) AS cs, BIT_XOR(amt) AS x "
        "FROM sales GROUP BY CUBE (region, cust)"
    )
    query = (
        "SELECT SUM(amt), COUNT(*), SUM(cust), COUNT(DISTINCT cost), BIT_XOR(amt), COUNT_IF(cust > 1), "
        "SUM(CASE WHEN cust = 1 THEN amt ELSE 0 END) FROM sales"
    )
    lab.hit(query)
    lab.plain.sql("DELETE FROM sales")
    lab.sql("REFRESH RELATIONAL CACHE c")
    lab.hit(query)


def test_a_set_with_null_is_not_answered_from_one_without(lab):
    lab.plain.sql("INSERT INTO sales (id, region, cust, cost) VALUES (90, 'far', 1, NULL)")
    lab.cache(
        "c AS SELECT region, cust, COLLECT_SET(cost) AS cs, COUNT(*) AS n FROM sales GROUP BY ALL"
    )
    one = "SELECT region, SIZE(COLLECT_SET({})) AS n FROM sales GROUP BY region"
    lab.hit(one.format("cost"))
    for arg in ("cost", "CASE WHEN cust = 1 THEN cost END", "cust"):
        query = one.format(arg).replace(")) AS", ") RESPECT NULLS) AS")
        lab.miss(query, "AGG_NOT_DERIVABLE" if arg != "cust" else None)
    lab.miss("SELECT region, cust, SIZE(COLLECT_SET(cost) RESPECT NULLS) FROM sales GROUP BY ALL")
    lab.miss("SELECT SIZE(COLLECT_SET(cost) RESPECT NULLS) FROM sales")
    for text in ("COLLECT_LIST(cost)", "ARRAY_AGG(cost)"):
        lab.miss(f"SELECT region, SIZE({text} RESPECT NULLS) FROM sales GROUP BY region")


def test_deviations_of_a_single_row_by_the_setting_of_a_view(lab):
    """NaN under spark.sql.legacy.statisticalAggregate, which the view keeps, and NULL without."""
    moments = "STDDEV(cust) AS s, COVAR_SAMP(cust, cust) AS v, SKEWNESS(cust) AS k"
    body = f"SELECT region, cust, {moments} FROM sales GROUP BY region, cust"
    with lab.conf(spark__sql__legacy__statisticalAggregate="true"):
        lab.plain.sql(f"CREATE VIEW v AS {body}")
    lab.cache(f"m AS {body}")
    lab.hit(body)
    with lab.conf(spark__cachemgr__approximateFloats="true"):
        lab.miss("SELECT * FROM v")
        lab.miss("SELECT region, cust, v FROM v")


UNITED = "HLL_SKETCH_ESTIMATE(HLL_UNION_AGG(s{}))"
BY_G = "SELECT g, " + UNITED + " AS e FROM sketches GROUP BY g"


def stored_unions(lab, *rows: str, union: str = "HLL_UNION_AGG(s)") -> None:
    lab.plain.sql("CREATE TABLE sketches (k INT, g INT, s BINARY) USING delta")
    lab.plain.sql("INSERT INTO sketches " + " UNION ALL ".join(rows))
    lab.cache(f"u AS SELECT k, g, {union} AS u, COUNT(*) AS n FROM sketches GROUP BY k, g")


def test_a_union_of_sketches_where_some_group_has_none(lab):
    """Such a group stores an empty sketch, of the usual size: not that of the others."""
    of_ten = "SELECT 1, 1, hll_sketch_agg(id, 10) FROM range(500)"
    stored_unions(lab, of_ten, "SELECT 2, 1, NULL", "SELECT 2, 2, NULL")
    for query in (BY_G.format(""), f"SELECT {UNITED.format('')} FROM sketches"):
        lab.hit(query)
    lab.plain.sql("INSERT INTO sketches VALUES (1, 2, NULL), (1, 1, NULL)")
    lab.hit(BY_G.format(""))
    lab.sql("REFRESH RELATIONAL CACHE u FULL")
    lab.hit(BY_G.format("") + " HAVING g = 1")


def test_partial_rows_of_a_union_of_sketches(lab):
    stored_unions(lab, "SELECT 1, 1, hll_sketch_agg(id, 10) FROM range(500)")
    lab.cache("p AS SELECT g, HLL_UNION_AGG(s) AS f, COUNT(*) AS n FROM sketches GROUP BY g")
    for row in ("VALUES (1, 1, NULL)", "SELECT 1, 1, hll_sketch_agg(id, 10) FROM range(400, 900)"):
        lab.plain.sql(f"INSERT INTO sketches {row}")
        lab.sql("REFRESH RELATIONAL CACHE p INCREMENTAL")
        lab.hit(BY_G.format(""))


def test_unions_of_sketches_of_several_sizes_are_not_united_again(lab):
    of_twelve = "SELECT 1, 1, hll_sketch_agg(id, 12) FROM range(1000)"
    of_ten = "SELECT 2, 1, hll_sketch_agg(id, 10) FROM range(900, 2000)"
    stored_unions(lab, of_twelve, of_ten, union="HLL_UNION_AGG(s, TRUE)")
    query = BY_G.format(", TRUE")
    lab.miss(query, "AGG_NOT_DERIVABLE")
    stored = query.replace("SELECT g", "SELECT k, g").replace("BY g", "BY k, g")
    lab.hit(stored)
    lab.plain.sql("INSERT INTO sketches SELECT 1, 1, hll_sketch_agg(id, 10) FROM range(500)")
    lab.miss(stored, "NOT_MERGEABLE")
    (done,) = lab.sql("REFRESH RELATIONAL CACHE u")
    assert "several sizes" in str(done), done
    lab.hit(stored)


def test_sums_that_leave_bigint_on_the_way_alone(lab):
    """Spark adds up a large number and its opposite in turns; the groups of a cache come in the order
    +, +, -: their sums stay within BIGINT all the same."""
    lab.plain.sql(
        "CREATE TABLE far (k INT, x BIGINT NOT NULL, v BIGINT NOT NULL, w BIGINT NOT NULL) USING delta"
    )
    lab.plain.sql(
        "INSERT INTO far SELECT /*+ COALESCE(1) */ k, s * 9000000000000000000L, s * 4500000000000000000L, "
        "s * -4500000000000000000L FROM VALUES (2, 0), (1, 1), (3, -1), (2, 1) AS t (k, s)"
    )
    lab.cache(
        "c AS SELECT k, SUM(x) AS x, SUM(v) AS v, SUM(w) AS w, COUNT(*) AS n FROM far GROUP BY k"
    )
    for output in (
        "SUM(x)",
        "TRY_SUM(x)",
        "SUM(v - w)",
        "SUM(2 * v)",
        "SUM(-x)",
        "SUM(COALESCE(x, 0L))",
    ):
        lab.hit(f"SELECT {output} AS s FROM far")
        lab.hit(f"SELECT k < 5 AS g, {output} AS s FROM far GROUP BY k < 5 HAVING {output} <> 0")
