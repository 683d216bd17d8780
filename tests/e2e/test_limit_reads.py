"""A LIMIT opens few files and runs few tasks where Spark and Delta alone open and run all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.harness.limits.reads import ONE_FILE_A_TASK, Read, is_part, iterated, read
from tests.worlds.lab_star import Lab, make_lab

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STATISTICS = "spark.databricks.delta.stats.collect"


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("limits")
    for made in make_lab(spark, folder, f"sqlite:///{folder / 'metastore.db'}"):
        for session in (made.spark, made.plain):
            session.conf.set(*ONE_FILE_A_TASK)
        _table(made, "vectors", vectors=True)
        made.plain.sql("DELETE FROM vectors WHERE a % 7 = 1")
        _table(made, "uncounted", statistics=False)
        _table(made, "both", statistics=False, vectors=True)
        made.plain.sql("DELETE FROM both WHERE a < 1500")
        yield made


def _table(
    lab: Lab, name: str, files: int = 20, statistics: bool = True, vectors: bool = False
) -> None:
    """A thousand rows a file, and a file a partition."""
    lab.plain.conf.set(STATISTICS, str(statistics).lower())
    try:
        rows = lab.plain.range(files * 1000).selectExpr("id AS a", "CAST(id DIV 1000 AS INT) AS p")
        frame = rows.repartition(files, "p").write.format("delta").partitionBy("p")
        frame.option("delta.enableDeletionVectors", vectors).saveAsTable(name)
    finally:
        lab.plain.conf.unset(STATISTICS)


def _check(lab: Lab, query: str, whole: str, rows: int, ask: Any = DataFrame.collect) -> Read:
    found = read(lab.spark.sql(query), ask)
    assert len(found.rows) == rows and is_part(found.rows, lab.plain.sql(whole).collect()), query
    return found


@pytest.mark.parametrize("table", ["vectors", "uncounted", "both"])
@pytest.mark.parametrize(
    ("query", "whole", "rows", "files"),
    [
        ("SELECT * FROM {0} LIMIT 10", "SELECT * FROM {0}", 10, 3),
        ("SELECT a + 1 AS b FROM {0} LIMIT 10 OFFSET 5", "SELECT a + 1 AS b FROM {0}", 10, 3),
        ("SELECT a FROM {0} LIMIT 2500", "SELECT a FROM {0}", 2500, 5),
        ("SELECT a FROM {0} WHERE p = 3 LIMIT 10", "SELECT a FROM {0} WHERE p = 3", 10, 1),
        (
            "SELECT a FROM {0} WHERE p BETWEEN 3 AND 9 AND p <> 4 LIMIT 10",
            "SELECT a FROM {0} WHERE p BETWEEN 3 AND 9",
            10,
            1,
        ),
        ("SELECT COUNT(*) FROM (SELECT * FROM {0} LIMIT 10)", "SELECT 10L", 1, 3),
        (
            "SELECT a FROM (SELECT a FROM {0} LIMIT 10) WHERE a >= 0 ORDER BY a",
            "SELECT a FROM {0}",
            10,
            3,
        ),
        (
            "SELECT a, p FROM {0} LEFT JOIN (SELECT 5 AS k) ON a = k LIMIT 10",
            "SELECT * FROM {0}",
            10,
            3,
        ),
        (
            "(SELECT a FROM {0} LIMIT 10) UNION ALL SELECT 1L",
            "SELECT a FROM {0} UNION ALL SELECT 1L",
            11,
            3,
        ),
    ],
)
def test_few_files(lab: Lab, table: str, query: str, whole: str, rows: int, files: int) -> None:
    found = _check(lab, query.format(table), whole.format(table), rows)
    before = read(lab.plain.sql(query.format(table)))
    # of `both` the first files have no row left, or half of their rows
    assert 1 <= found.files <= (files if table == "both" else max(1, files - 2))
    assert before.files > found.files or "p = 3" in query


def test_a_subquery_opens_few_files(lab: Lab) -> None:
    query = "SELECT (SELECT COUNT(*) FROM (SELECT a FROM vectors LIMIT 10)) AS n FROM cust"
    found = read(lab.spark.sql(query), but=("/cust",))
    assert {row.n for row in found.rows} == {10} and found.files == 1


def test_extremes(lab: Lab) -> None:
    for table, size in (("vectors", 17_143), ("uncounted", 20_000), ("both", 18_500)):
        whole = f"SELECT a FROM {table}"
        for limit, rows in (
            ("0", 0),
            ("2147483647", size),
            ("5 OFFSET 30000", 0),
            (f"10 OFFSET {size - 3}", 3),
            ("2147483640 OFFSET 7", size - 7),
        ):
            _check(lab, f"{whole} LIMIT {limit}", whole, rows)
    (counted,) = lab.spark.sql(
        "SELECT COUNT(*) AS n FROM (SELECT * FROM vectors LIMIT :n)", args={"n": 3}
    ).collect()
    assert counted.n == 3


def test_no_row_is_left_and_files_without_rows(lab: Lab) -> None:
    _table(lab, "emptied", files=4, vectors=True)
    lab.plain.sql("DELETE FROM emptied WHERE a <> 3999 OR a IS NULL")
    _check(lab, "SELECT a FROM emptied LIMIT 10", "SELECT 3999L AS a", 1)
    lab.plain.sql("DELETE FROM emptied WHERE a = 3999")
    _check(lab, "SELECT a FROM emptied LIMIT 10", "SELECT a FROM emptied", 0)
    with_none = lab.plain.range(0).selectExpr("id AS a", "1 AS p")
    with_none.write.format("delta").mode("append").saveAsTable("emptied")
    _check(lab, "SELECT a FROM emptied LIMIT 10", "SELECT a FROM emptied", 0)


def test_versions_and_replaced_tables(lab: Lab) -> None:
    _table(lab, "moved", files=6, vectors=True)
    lab.plain.sql("DELETE FROM moved WHERE a < 5500 AND a % 2 = 0")
    held = lab.spark.sql("SELECT a FROM moved LIMIT 3200")
    held._jdf.queryExecution().optimizedPlan()
    lab.plain.sql("DELETE FROM moved WHERE a < 5500")
    assert len(held.collect()) == 3200
    _check(lab, "SELECT a FROM moved LIMIT 3200", "SELECT a FROM moved", 500)
    old = "SELECT a FROM moved VERSION AS OF 0"
    assert _check(lab, f"{old} LIMIT 10", old, 10).files == 1
    lab.plain.sql("CREATE OR REPLACE TABLE moved USING delta AS SELECT 1L AS a, 2 AS p")
    _check(lab, "SELECT a FROM moved LIMIT 10", "SELECT a FROM moved", 1)


def test_writes_open_few_files(lab: Lab) -> None:
    _table(lab, "target", files=2, vectors=True)
    lab.plain.sql("DELETE FROM target WHERE a = 1")
    lab.spark.sql("INSERT INTO target SELECT * FROM vectors LIMIT 10")
    lab.spark.sql("INSERT INTO target SELECT * FROM target LIMIT 10")
    assert lab.plain.table("target").count() == 2000 - 1 + 20


def test_where_files_may_be_passed_over_all_are_listed(lab: Lab) -> None:
    query = "SELECT COUNT(*) FROM (SELECT * FROM vectors LIMIT 10)"
    for key in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        with lab.conf(**{f"spark__sql__files__{key}": "true"}):
            assert read(lab.spark.sql(query)).files == 20
    with lab.conf(spark__cachemgr__limits__enabled="false"):
        assert read(lab.spark.sql(query)).files == 20
    with lab.conf(spark__cachemgr__enabled="false"):
        assert read(lab.spark.sql(query)).files == 20
    assert read(lab.spark.sql(query)).files == 1


def test_a_footer_that_cannot_be_read_changes_nothing(lab: Lab, tmp_path: Path) -> None:
    _table(lab, "damaged", files=4, statistics=False)
    (table,) = lab.plain.sql("DESCRIBE DETAIL damaged").collect()
    for file in Path(table.location.removeprefix("file:")).rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.write_bytes(b"x" * file.stat().st_size)
    for session in (lab.spark, lab.plain):
        with pytest.raises(Exception, match=r"(?i)parquet"):
            session.sql("SELECT * FROM damaged LIMIT 10").collect()


FILTERED = "SELECT a FROM uncounted WHERE a % 997 = 3 LIMIT 3"
BEYOND = "SELECT a FROM uncounted LIMIT 5 OFFSET 2500"


@pytest.mark.parametrize(
    ("query", "ask"),
    [
        (FILTERED, iterated),
        (FILTERED, DataFrame.isEmpty),
        (FILTERED, lambda frame: frame.rdd.collect()),
        (BEYOND, iterated),
    ],
)
def test_few_tasks_however_rows_are_asked_for(lab: Lab, query: str, ask: Any) -> None:
    with lab.conf(spark__sql__files__ignoreMissingFiles="true"):
        found = read(lab.spark.sql(query), ask)
        before = read(lab.plain.sql(query), ask)
        if ask is iterated:
            assert found.rows == lab.spark.sql(query).collect()
        assert 0 < found.tasks <= 10 and before.tasks >= 20


def test_a_large_limit_is_left_to_spark(lab: Lab) -> None:
    def names(query: str) -> str:
        return str(lab.spark.sql(query)._jdf.queryExecution().executedPlan().toString())

    assert "TakenRows" in names("SELECT a FROM vectors LIMIT 10000")
    assert "TakenRows" not in names("SELECT a FROM vectors LIMIT 10001")
    assert "TakenRows" not in names("SELECT a FROM vectors ORDER BY a LIMIT 10")
    assert "TakenRows" not in names("SELECT a FROM vectors OFFSET 10")
    with lab.conf(spark__cachemgr__limits__enabled="false"):
        assert "TakenRows" not in names("SELECT a FROM vectors LIMIT 10")
    with lab.conf(spark__cachemgr__enabled="false"):
        assert "TakenRows" not in names("SELECT a FROM vectors LIMIT 10")


def test_wide_rows_are_shuffled_by_spark(lab: Lab) -> None:
    query = "SELECT REPEAT('x', 100000) AS wide FROM vectors LIMIT 200"
    with lab.conf(spark__sql__files__ignoreMissingFiles="true"):
        assert len(iterated(lab.spark.sql(query))) == 200


def test_kept_and_used_rows(lab: Lab) -> None:
    few = lab.spark.sql("SELECT a FROM vectors WHERE a % 100 = 5 LIMIT 7")
    kept = few.cache()
    assert kept.count() == 7 and kept.collect() == kept.collect()
    kept.unpersist()
    assert few.rdd.map(lambda row: row.a % 100).collect() == [5] * 7
    assert len(few.tail(3)) == 3 and few.isEmpty() is False
