"""A hit means what the query means: semantics, places and names, settings."""

from __future__ import annotations

import pytest

import cachemgr
from tests.e2e.never_wrong.sales_totals import TOTALS
from tests.worlds.lab_star import make_lab

pytestmark = pytest.mark.spark

WIDE = (
    "wide AS SELECT region, day, cust, SUM(amt) AS s, COUNT(amt) AS c, COUNT(*) AS n, "
    "MIN(amt) AS lo, MAX(amt) AS hi, SUM(cost) AS sc, COUNT(cost) AS cc, SUM(price) AS sp, "
    "COUNT(price) AS cp, SUM(weight) AS sw, AVG(amt) AS a, SUM(amt - cost) AS diff "
    "FROM sales GROUP BY region, day, cust"
)


@pytest.fixture(scope="module")
def wide(spark, tmp_path_factory):
    """One cache for the tests that change nothing."""
    folder = tmp_path_factory.mktemp("wide")
    for lab in make_lab(spark, folder, f"sqlite:///{folder / 'm.db'}"):
        lab.cache(WIDE)
        yield lab


def test_names_types_and_order_are_the_originals(wide):
    wide.hit("SELECT SUM(amt), region FROM sales GROUP BY region")
    wide.hit("SELECT region AS `Ünï code`, COUNT(*) `n`, SUM(price) FROM sales GROUP BY 1")
    wide.hit("SELECT region, SUM(amt) AS x FROM sales GROUP BY region ORDER BY x DESC, region")
    frame = wide.spark.table("sales").groupBy("region").sum("amt")
    plain = wide.plain.table("sales").groupBy("region").sum("amt")
    before = wide.hits()
    assert sorted(map(str, frame.collect())) == sorted(map(str, plain.collect()))
    assert wide.hits() == before + 1 and frame.schema == plain.schema


def test_null_keys_are_not_not_grouped(wide):
    wide.hit("SELECT region, COUNT(*) FROM sales GROUP BY region")
    wide.hit("SELECT COUNT(*) FROM sales WHERE region IS NULL")
    wide.hit("SELECT SUM(amt) FROM sales WHERE NOT (region = 'north')")
    wide.hit("SELECT SUM(amt) FROM sales WHERE region <=> NULL")


def test_bytes_that_are_no_text_are_no_constant_to_write(lab):
    """As text they would be a character that stands for any of them."""
    values = "NULL, {}, 1, 5, 1, 1, 1"
    for number, bytes_ in enumerate(("CAST(X'FF' AS STRING)", "CAST(X'FE' AS STRING)", "'\ufffd'")):
        lab.plain.sql(f"INSERT INTO sales SELECT {90 + number}, {values.format(bytes_)}")
    lab.cache("k AS SELECT region, COUNT(*) AS n FROM sales GROUP BY region")
    for bytes_ in ("X'FF'", "X'FE'", "X'FD'"):
        lab.miss(f"SELECT COUNT(*) FROM sales WHERE region = CAST({bytes_} AS STRING)")
        lab.miss(f"SELECT COUNT(*) FROM sales WHERE region IN (CAST({bytes_} AS STRING), 'north')")
    lab.hit("SELECT COUNT(*) FROM sales WHERE region = '\ufffd'")


def test_count_over_nothing_is_zero(wide):
    rows = wide.hit("SELECT COUNT(*), COUNT(amt), SUM(amt) FROM sales WHERE region = 'nowhere'")
    assert [tuple(r) for r in rows] == [(0, 0, None)]
    assert wide.hit("SELECT region, COUNT(*) FROM sales WHERE region = 'x' GROUP BY region") == []


def test_avg_from_sum_and_count_only_where_exact(wide):
    wide.hit("SELECT region, AVG(price) FROM sales GROUP BY region")
    wide.hit("SELECT region, AVG(amt) FROM sales GROUP BY region")
    wide.miss("SELECT region, AVG(weight) FROM sales GROUP BY region")


def test_avg_of_huge_integers_is_refused(lab):
    lab.plain.sql("INSERT INTO sales SELECT 99, NULL, 'north', 1, 9007199254740993, 1, 1, 1")
    lab.cache("big AS SELECT region, cust, AVG(amt) AS a FROM sales GROUP BY region, cust")
    lab.miss("SELECT region, AVG(amt) FROM sales GROUP BY region", "AVG_NOT_EXACT")
    lab.hit("SELECT region, cust, AVG(amt) FROM sales GROUP BY region, cust")


def test_sum_of_a_difference_with_a_null(wide):
    wide.hit("SELECT region, SUM(amt - cost) FROM sales GROUP BY region")
    wide.miss("SELECT region, SUM(cost - amt) FROM sales GROUP BY region")


def test_decimal_and_integer_overflow_types(wide):
    rows = wide.hit("SELECT SUM(price) FROM sales")
    assert rows[0][0] is not None
    wide.hit("SELECT SUM(amt) + 1 AS x, SUM(price) * 2 AS y FROM sales")


def test_an_overflow_that_the_original_raises_is_never_turned_into_rows(lab):
    lab.plain.sql("INSERT INTO sales SELECT 90, NULL, 'x', 1, 9223372036854775807, 1, 1, 1")
    lab.plain.sql("INSERT INTO sales SELECT 91, NULL, 'x', 2, 9223372036854775807, 1, 1, 1")
    lab.cache("s AS SELECT region, cust, SUM(amt) AS s FROM sales GROUP BY region, cust")
    # the total is a DECIMAL by then, which no BIGINT holds
    for session, error in ((lab.plain, "ARITHMETIC_OVERFLOW"), (lab.spark, "CAST_OVERFLOW")):
        with pytest.raises(Exception, match=error):
            session.sql(TOTALS).collect()


def test_floats_only_when_allowed(wide):
    query = "SELECT region, SUM(weight) FROM sales GROUP BY region"
    wide.miss(query, "FLOAT_NOT_EXACT")
    wide.hit("SELECT region, day, cust, SUM(weight) FROM sales GROUP BY region, day, cust")
    with wide.conf(spark__cachemgr__approximateFloats="true"):
        assert cachemgr.explain(wide.spark, query).hit


def test_count_distinct_only_from_the_keys(wide):
    wide.miss("SELECT region, COUNT(DISTINCT amt) FROM sales GROUP BY region")
    rows = wide.plain.sql("SELECT region, COUNT(DISTINCT day) FROM sales GROUP BY region")
    got = wide.spark.sql("SELECT region, COUNT(DISTINCT day) FROM sales GROUP BY region")
    assert sorted(map(str, got.collect())) == sorted(map(str, rows.collect()))


def test_limit_below_a_compensation(wide):
    wide.hit(TOTALS + " ORDER BY total DESC NULLS LAST, region LIMIT 2")
    inner = "(SELECT region, amt FROM sales ORDER BY id LIMIT 3)"
    wide.miss(f"SELECT region, SUM(amt) FROM {inner} GROUP BY region")
    below = "SELECT SUM(total) FROM (SELECT region, SUM(amt) AS total FROM sales GROUP BY region "
    wide.hit(below + "ORDER BY total DESC NULLS LAST LIMIT 2)")


def test_group_by_prefers_the_input_column(wide):
    wide.hit("SELECT upper(region) AS region, COUNT(*) FROM sales GROUP BY region")


def test_division_by_zero_is_the_originals(wide):
    query = "SELECT region, SUM(amt) / NULLIF(COUNT(cost), 0) FROM sales GROUP BY region"
    wide.hit(query)
    for session in (wide.plain, wide.spark):
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            session.sql(
                "SELECT region, day, SUM(amt) / COUNT(cost) FROM sales GROUP BY region, day"
            ).collect()


def test_a_global_aggregate_over_an_empty_table(lab):
    lab.plain.sql("DELETE FROM sales")
    lab.cache(
        "cube AS SELECT region, day, COUNT(*) AS n, SUM(amt) AS s FROM sales "
        "GROUP BY region, day GROUPING SETS ((region, day), (region), ())"
    )
    query = "SELECT COUNT(*), SUM(amt) FROM sales"
    assert [tuple(r) for r in lab.plain.sql(query).collect()] == [(0, None)]
    assert [tuple(r) for r in lab.sql(query)] == [(0, None)]
    lab.hit("SELECT region, COUNT(*) FROM sales GROUP BY region")


def test_duplicate_grouping_sets_count_once(lab):
    lab.cache(
        "dup AS SELECT GROUPING_ID(), region, day, SUM(amt) AS s, COUNT(*) AS n FROM sales "
        "GROUP BY region, day GROUPING SETS ((region, day), (day, region), (region), (region))"
    )
    lab.hit(TOTALS)
    lab.hit("SELECT day, COUNT(*) FROM sales GROUP BY day")
    lab.hit("SELECT region, day, SUM(amt) FROM sales GROUP BY region, day")


def test_a_temp_view_or_cte_that_shadows_a_base_table(lab):
    lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
    lab.miss(f"WITH sales AS (SELECT 'x' AS region, 1L AS amt) {TOTALS}")
    for session in (lab.spark, lab.plain):
        session.sql("CREATE TEMP VIEW sales AS SELECT 'y' AS region, 2L AS amt")
    lab.miss(TOTALS)
    lab.hit(TOTALS.replace("sales", f"{lab.schema}.sales"))
    lab.hit(f"WITH t AS (SELECT * FROM {lab.schema}.sales) {TOTALS.replace('sales', 't')}")


@pytest.mark.parametrize(
    "source",
    ["sales TABLESAMPLE (100 PERCENT)", "sales VERSION AS OF 1", "(SELECT explode(array(amt)) "
     "AS amt, region FROM sales)"],
)  # fmt: skip
def test_what_reads_other_rows_than_the_tables_is_a_miss(wide, source):
    query = f"SELECT region, SUM(amt) FROM {source} GROUP BY region"
    wide.miss(query)


def test_metadata_columns_are_a_miss(wide):
    wide.miss("SELECT MIN(_metadata.file_name), SUM(amt) FROM sales")


def test_runsqlonfiles_false_breaks_nothing(wide):
    with wide.conf(spark__sql__runSQLOnFiles="false"):
        wide.hit(TOTALS)


def test_parameters_and_other_schemas(wide):
    query = f"SELECT region, SUM(amt) FROM {wide.schema}.sales WHERE region = :r GROUP BY region"
    before = wide.hits()
    wide.spark.sql("USE default")
    try:
        got = wide.spark.sql(query, args={"r": "north"}).collect()
    finally:
        wide.spark.sql(f"USE {wide.schema}")
    assert [tuple(r) for r in got] == [("north", 50)] and wide.hits() == before + 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.files.ignoreCorruptFiles", "true"),
    ],
)
def test_each_result_changing_setting(wide, key, value):
    with wide.conf(**{key.replace(".", "__"): value}):
        wide.miss(TOTALS, "SETTINGS_DIFFER")
    wide.hit(TOTALS)


def test_settings_that_cannot_change_rows_do_not_matter(wide):
    with wide.conf(spark__sql__shuffle__partitions="3", spark__sql__adaptive__enabled="false"):
        wide.hit(TOTALS)


def test_a_cache_is_refreshed_under_its_own_settings(lab):
    with lab.conf(spark__sql__ansi__enabled="false"):
        lab.cache("r AS SELECT region, SUM(amt) AS s FROM sales GROUP BY region")
        lab.hit(TOTALS)
    lab.miss(TOTALS, "SETTINGS_DIFFER")
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales WHERE id = 1")
    lab.sql("REFRESH RELATIONAL CACHE r")
    lab.miss(TOTALS, "SETTINGS_DIFFER")
