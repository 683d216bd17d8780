"""Ranges that a filter implies are put beside it: no row is lost, fewer files are read, and nothing
is added where it might change an error or cost a hit."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import cachemgr
from tests.worlds.lab_star import Lab, make_lab

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SETTING = "spark.cachemgr.pruning.impliedRanges"
ZONE = "spark.sql.session.timeZone"
WHOLE_STAGE = "spark.sql.codegen.wholeStage"
# set back at midnight and beyond it, a day left out, odd offsets, local mean time to 1972
ZONES = (
    "UTC",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "Africa/Monrovia",
    "-18:00",
)
FUNCTIONS = (
    "year({0})",
    "CAST({0} AS DATE)",
    "date_trunc('YEAR', {0})",
    "date_trunc('quarter', {0})",
    "date_trunc('MONTH', {0})",
    "date_trunc('week', {0})",
    "date_trunc('DAY', {0})",
    "date_trunc('HOUR', {0})",
    "trunc({0}, 'YEAR')",
    "trunc({0}, 'QUARTER')",
    "trunc({0}, 'MM')",
    "trunc({0}, 'week')",
    "date_format({0}, 'yyyy')",
    "date_format({0}, 'yyyy-MM')",
    "date_format({0}, 'yyyy-MM-dd')",
    "date_format({0}, 'yyyyMMdd')",
    "date_add({0}, 3)",
    "date_add({0}, -40)",
    "date_sub({0}, 1)",
    "year(date_add({0}, 1))",
    "to_date({0})",
)
COLUMNS = ("d", "ts", "ntz", "s.d", "s.ts")
WAYS = (
    "{f} = {a}",
    "{f} <=> {a}",
    "{a} <= {f}",
    "{f} < {a}",
    "{f} > {a}",
    "{f} BETWEEN {a} AND {b}",
    "{f} IN ({a}, {b}, NULL)",
    "({f} = {a} AND d IS NOT NULL) OR ({f} = {b} AND ts > TIMESTAMP'1990-01-01')",
)
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("ranges")
    yield from make_lab(spark, folder, f"sqlite:///{folder / 'metastore.db'}")


@pytest.fixture(scope="module")
def edges(lab: Lab) -> str:
    """Moments around the edges of days, months, years and of the offsets of these zones."""
    around = (
        "0001-01-01", "1582-10-15", "1600-01-01", "1883-11-18", "1972-01-07", "1987-04-05",
        "1987-10-25", "2011-12-30", "2018-02-18", "2018-11-04", "2024-02-29", "2024-12-31",
        "9999-12-31",
    )  # fmt: skip
    numbers = random.Random(49)
    moments: list[str] = []
    for day in around:
        at = datetime.fromisoformat(day).replace(tzinfo=UTC)
        first = max(-1500, -int((at - datetime(1, 1, 1, tzinfo=UTC)) / MINUTE))
        last = min(2900, int((datetime(9999, 12, 31, 23, 59, tzinfo=UTC) - at) / MINUTE))
        offsets = {0, first, last, *(numbers.randrange(first, last) for _ in range(60))}
        offsets |= {n for n in (-60, -1, 59, 60, 61, 1439, 1440) if first <= n <= last}
        moments += [(at + n * MINUTE).strftime("%Y-%m-%d %H:%M:00").rjust(19, "0") for n in offsets]
    numbered = ", ".join(f"({n}, '{text}')" for n, text in enumerate(moments))
    with setting(lab.plain, ZONE, "UTC"):
        lab.plain.sql(
            "CREATE TABLE edges USING delta AS SELECT n, CAST(t AS DATE) AS d, "
            "CAST(CONCAT(t, 'Z') AS TIMESTAMP) AS ts, CAST(t AS TIMESTAMP_NTZ) AS ntz, "
            "named_struct('d', CAST(t AS DATE), 'ts', CAST(CONCAT(t, 'Z') AS TIMESTAMP)) AS s "
            f"FROM VALUES {numbered} AS v(n, t) UNION ALL SELECT -1, NULL, NULL, NULL, NULL"
        )
    return "edges"


@contextmanager
def setting(session: Any, key: str, value: str) -> Iterator[None]:
    """A setting of a session, for a while."""
    before = session.conf.get(key, None)
    session.conf.set(key, value)
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, before)


@pytest.mark.parametrize("zone", ZONES)
def test_no_row_is_lost(lab: Lab, edges: str, zone: str) -> None:
    numbers = random.Random(zone)
    with setting(lab.spark, ZONE, zone), setting(lab.spark, WHOLE_STAGE, "false"):
        table = lab.spark.table(edges)
        texts = [text for column in COLUMNS for text in _filters(table, column, numbers)]
        is_lost = [
            F.expr(text) & ~F.coalesce(_condition(table.where(text)), F.lit(False))
            for text in texts
        ]
        (counts,) = table.select(*(F.count_if(each) for each in is_lost)).collect()
    assert [text for text, count in zip(texts, counts, strict=True) if count] == []


def test_most_filters_are_bounded(lab: Lab, edges: str) -> None:
    table = lab.spark.table(edges)
    texts = [t for c in ("d", "ts", "ntz") for t in _filters(table, c, random.Random(1))]
    found = [_condition(table.where(text)) for text in texts]
    with setting(lab.spark, SETTING, "false"):
        plain = [_condition(table.where(text)) for text in texts]
    bounded = sum(str(one) != str(other) for one, other in zip(found, plain, strict=True))
    assert bounded > 0.6 * len(texts)


def _filters(table: DataFrame, column: str, numbers: random.Random) -> Iterator[str]:
    functions = [form.format(column) for form in FUNCTIONS]
    values = [F.collect_set(F.expr(f"CAST({each} AS STRING)")) for each in functions]
    (found,) = table.select(*values).collect()
    kinds = table.selectExpr(*functions).schema.fields
    for function, texts, kind in zip(functions, found, kinds, strict=True):
        name = kind.dataType.simpleString()
        constants = [v if name == "int" else f"CAST('{v}' AS {name})" for v in sorted(texts)]
        one, two = sorted(numbers.choices(constants, k=2))
        yield numbers.choice(WAYS).format(f=function, a=one, b=two)
    for part, more in (
        ("month", "= 1"),
        ("month", "IN (2, 4)"),
        ("month", "> 11"),
        ("month", "<= 3"),
        ("month", "= 0"),
        ("quarter", "= 1"),
        ("quarter", ">= 4"),
        ("quarter", "> 4"),
    ):
        year = numbers.choice((1582, 1987, 2011, 2018, 2024, 9999))
        yield f"year({column}) = {year} AND {part}({column}) {more}"


def _condition(frame: DataFrame) -> Column:
    """The condition of a query's filter as Spark's optimiser leaves it."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    while plan.nodeName() not in ("Filter", "LocalRelation"):
        plan = plan.children().head()
    if plan.nodeName() == "LocalRelation":  # Spark has found that it is true of no row
        return F.lit(False)
    utils = frame.sparkSession._jvm.org.apache.spark.sql.classic.ExpressionUtils
    return Column(utils.column(plan.condition()))


def test_a_table_is_read_by_the_ranges(lab: Lab) -> None:
    """Ten days a file, of two years; see docs/pruning.md."""
    _days(lab, "sorted")
    for column in ("d", "ts", "ntz"):
        for form, most in (
            ("year({0}) = 2023 AND month({0}) = 2", 5),
            ("date_trunc('MONTH', {0}) = DATE'2023-02-01'", 5),
            ("trunc({0}, 'MM') = DATE'2023-02-01'", 5),
            ("date_format({0}, 'yyyy-MM') = '2023-02'", 5),
            ("date_add({0}, 1) = DATE'2023-02-02'", 3),
            ("CAST({0} AS DATE) IN (DATE'2023-02-01', DATE'2023-02-09')", 3),
            ("year({0}) = 2023", 39),
        ):
            query = f"SELECT COUNT(*), SUM(n) FROM sorted WHERE {form.format(column)}"
            rows, files = _read(lab.spark, query)
            expected, before = _read(lab.plain, query)
            assert rows == expected, query
            assert files <= most and before == (
                73 if column != "d" or "CAST" not in form else before
            ), query


@pytest.mark.parametrize(
    "condition",
    [
        "year(d) = 2023 AND 1 / (n - 1) > 0",
        "year(d) = 2023 AND CAST(CONCAT('x', n) AS INT) = 1",
        "year(d) = 2023 OR n = 1",
        "month(d) = 2",
        "year(d) <> 2023",
        "date_add(d, 1) < DATE'2023-02-01'",
        "date_add(d, CAST(n AS TINYINT)) = DATE'2023-02-01'",
        "date_add(d, day(d)) = DATE'2023-02-01'",
        "date_format(d, 'MM-yyyy') = '02-2023'",
        "year(d) = 2023 AND date_format(d, 'BBBB') = 'x'",
        "year(coalesce(d, DATE'2023-01-01')) = 2023",
    ],
)
def test_nothing_is_added_where_it_is_not_implied_or_may_hide_an_error(
    lab: Lab, condition: str
) -> None:
    _days(lab, "few", days=30)
    found = str(_condition(lab.spark.table("few").where(condition)))
    with setting(lab.spark, SETTING, "false"):
        # names of the same columns have other numbers
        assert _bare(str(_condition(lab.spark.table("few").where(condition)))) == _bare(found)


def test_nothing_is_added_by_the_older_formatter(lab: Lab) -> None:
    _days(lab, "older", days=30)
    with setting(lab.spark, "spark.sql.legacy.timeParserPolicy", "LEGACY"):
        found = _condition(lab.spark.table("older").where("date_format(d, 'yyyy') = '2022'"))
    assert ">=" not in str(found)


def test_hits_stay_hits(lab: Lab) -> None:
    _days(lab, "asked", days=400)
    lab.cache(
        "by_year AS SELECT year(d) AS y, n % 3 AS k, COUNT(*) AS c, SUM(n) AS s FROM asked "
        "GROUP BY year(d), n % 3"
    )
    lab.check("SELECT n % 3, SUM(n) FROM asked WHERE year(d) = 2023 GROUP BY n % 3", hit=True)
    lab.check("SELECT SUM(n) FROM asked WHERE year(d) IN (2022, 2023)", hit=True)
    lab.cache("by_day AS SELECT d, COUNT(*) AS c FROM asked GROUP BY d")
    lab.check("SELECT COUNT(*) FROM asked WHERE year(d) = 2023 AND month(d) = 2", hit=True)
    lab.check(
        "SELECT COUNT(*) FROM asked "
        "WHERE d IN (SELECT d FROM asked WHERE year(d) = 2023 GROUP BY d)",
        hit=True,
    )


def test_caches_and_generated_columns_are_read_by_the_ranges(lab: Lab) -> None:
    _days(lab, "daily")
    lab.cache("flat CLUSTER BY (d) AS SELECT d, ts, n FROM daily")
    query = "SELECT COUNT(*), SUM(n) FROM daily WHERE year(d) = 2022 AND month(d) = 2"
    found = lab.spark.sql(query)
    assert found.collect() == lab.plain.sql(query).collect()
    assert (
        ">= DATE '2022-02-01'" in str(_condition(found))
        and cachemgr.explain(lab.spark, query).caches
    )
    lab.plain.sql(
        "CREATE TABLE made (n BIGINT, ts TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(ts AS DATE))) "
        "USING delta PARTITIONED BY (d)"
    )
    lab.plain.sql("INSERT INTO made (n, ts) SELECT n, ts FROM daily WHERE n < 2400")
    query = "SELECT COUNT(*) FROM made WHERE year(ts) = 2022 AND month(ts) = 2"
    rows, files = _read(lab.spark, query)
    expected, before = _read(lab.plain, query)
    assert rows == expected and files < before / 2


def _bare(condition: str) -> str:
    return re.sub(r"#\d+L?", "", condition)


def _days(lab: Lab, name: str, days: int = 730) -> None:
    lab.plain.sql(f"DROP TABLE IF EXISTS {name}")
    frame = lab.plain.range(days * 24).selectExpr(
        "id AS n",
        "date_add(DATE'2022-01-01', CAST(id DIV 24 AS INT)) AS d",
        "TIMESTAMP'2022-01-01 00:00:00' + make_dt_interval(0, CAST(id AS INT)) AS ts",
        "TIMESTAMP_NTZ'2022-01-01 00:00:00' + make_dt_interval(0, CAST(id AS INT)) AS ntz",
    )
    frame.repartitionByRange(days // 10, "d").sortWithinPartitions("n").write.format(
        "delta"
    ).saveAsTable(name)


def _read(session: SparkSession, query: str) -> tuple[list[Any], int]:
    """The rows of a query, and how many files its scan has read."""
    frame = session.sql(query)
    rows = frame.collect()
    (scan,) = _scans(frame._jdf.queryExecution().executedPlan())
    return rows, int(scan.metrics().apply("numFiles").value())


def _scans(plan: Any) -> list[Any]:
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        return _scans(plan.executedPlan())
    if name.endswith("QueryStageExec"):
        return _scans(plan.plan())
    if name == "FileSourceScanExec":
        return [plan]
    children = plan.children()
    return [scan for n in range(children.size()) for scan in _scans(children.apply(n))]
