"""Files of this machine are read without Parquet's vectored reads, which have a thread for each
range of a file; what somebody has set for all reads stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from cachemgr.delta.change_feed import CHANGE, change_rows
from cachemgr.delta.changed_files import ChangedFiles
from cachemgr.delta.changes import DataFile
from cachemgr.delta.own_session import own_session
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.refresh.file_stats import of_few_files

VECTORED = "parquet.hadoop.vectored.io.enabled"


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> str:
    """A table of 100 rows and 100 more that were appended."""
    where = f"file:{tmp_path}/t"
    for first in (0, 100):
        spark.range(first, first + 100).write.format("delta").mode("append").save(where)
    return where


def appended(place: str) -> ChangedFiles:
    log = Path(place.removeprefix("file:"), "_delta_log", f"{1:020}.json")
    adds = [a["add"] for a in map(json.loads, log.read_text().splitlines()) if "add" in a]
    files = tuple(DataFile(add["path"], "", add["size"], None) for add in adds)
    return ChangedFiles(place, 0, 1, files)


READS: dict[str, Callable[[SparkSession, str], Any]] = {
    "a version": lambda session, place: TableRead(place, 1),
    "few files": lambda session, place: of_few_files(session, TableRead(place, 1)),
    "appended files": lambda session, place: appended(place).plan(session),
}


def options(rows: DataFrame) -> Any:
    relation = rows._jdf.queryExecution().analyzed().collectLeaves().head().relation()
    return relation.options()


@pytest.mark.parametrize("read", READS)
def test_no_vectored_reads(spark: SparkSession, place: str, read: str) -> None:
    session = own_session(spark, {})
    rows = run_select(session, "SELECT id FROM t", {"t": READS[read](session, place)})
    assert options(rows).apply(VECTORED) == "false"
    first = 100 if read == "appended files" else 0
    assert {row.id for row in rows.collect()} == set(range(first, 200))


@pytest.mark.parametrize("read", READS)
def test_what_is_set_stands(spark: SparkSession, place: str, read: str) -> None:
    session = own_session(spark, {})
    session.conf.set(VECTORED, "true")
    rows = run_select(session, "SELECT id FROM t", {"t": READS[read](session, place)})
    assert not options(rows).contains(VECTORED)


def test_what_is_set_for_the_application_stands(spark: SparkSession, place: str) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(VECTORED, "true")
    try:
        rows = run_select(own_session(spark, {}), "SELECT id FROM t", {"t": TableRead(place, 1)})
        assert not options(rows).contains(VECTORED)
    finally:
        hadoop.unset(VECTORED)


@pytest.mark.parametrize("before", [None, "true"])
def test_the_feed(spark: SparkSession, tmp_path: Path, before: str | None) -> None:
    """Delta makes its relations itself, so the session of ours is told."""
    where = f"file:{tmp_path}/f"
    spark.range(10).write.format("delta").option("delta.enableChangeDataFeed", "true").save(where)
    spark.range(10, 20).write.format("delta").mode("append").save(where)
    session = own_session(spark, {})
    if before is not None:
        session.conf.set(VECTORED, before)
    rows = change_rows(session, where, 0, 1)
    assert session.conf.get(VECTORED) == (before or "false")
    assert {(row.id, row[CHANGE]) for row in rows.collect()} == {(n, 1) for n in range(10, 20)}
