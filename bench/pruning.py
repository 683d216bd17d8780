"""What the ranges that a filter implies save, and what they cost a query that has none.

A table of two years, ten days a file. Both ways by turns, in one session, the caches off.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import SparkSession

import cachemgr
from bench.results import Figure
from bench.sessions import session

_SETTING: Final = "spark.cachemgr.pruning.impliedRanges"
_FILES: Final = 73
_DAYS: Final = 730
_ROWS_A_DAY: Final = 10_000
_ROUNDS: Final = 10
_MORE_ROUNDS: Final = 40
_WARM: Final = 4
_PLANNED: Final = 400
_SELECT: Final = "SELECT SUM(v), COUNT(DISTINCT n % 1000) FROM sorted WHERE {filter}"
_TOUCHED: Final = {
    "year and month of a date": ("year(d) = 2023 AND month(d) = 2", 0.8),
    "date_trunc of a timestamp": ("date_trunc('MONTH', ts) = TIMESTAMP'2023-02-01'", 0.8),
}
_UNTOUCHED: Final = "d BETWEEN DATE'2023-02-01' AND DATE'2023-02-28' AND n % 3 = 1"
_MOST_PLANNING: Final = 0.5


def run() -> list[Figure]:
    """All figures of this module."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session(
            Path(folder),
            spark__sql__shuffle__partitions="4",
            spark__databricks__delta__snapshotPartitions="2",
        )
        cachemgr.enable(spark)
        try:
            _make_table(spark, Path(folder))
            touched = [_figure(spark, f"a month by {n}", *of) for n, of in _TOUCHED.items()]
            untouched = _figure(spark, "a query that none touches", _UNTOUCHED, 1.02, _MORE_ROUNDS)
            return [*touched, untouched, _planning(spark)]
        finally:
            spark.stop()


def _make_table(spark: SparkSession, folder: Path) -> None:
    day = f"CAST(id DIV {_ROWS_A_DAY} AS INT)"
    rows = spark.range(0, _DAYS * _ROWS_A_DAY, 1, _FILES).selectExpr(
        "id AS n",
        f"date_add(DATE'2022-01-01', {day}) AS d",
        f"TIMESTAMP'2022-01-01 00:00:00' + make_dt_interval({day}) AS ts",
        "hash(id) AS v",
    )
    rows.write.format("delta").save(str(folder / "sorted"))
    spark.read.format("delta").load(str(folder / "sorted")).createOrReplaceTempView("sorted")
    rows.limit(1000).write.parquet(str(folder / "files"))  # which no job lists when it is planned
    spark.read.parquet(str(folder / "files")).createOrReplaceTempView("files")


def _figure(
    spark: SparkSession, name: str, condition: str, most: float, rounds: int = _ROUNDS
) -> Figure:
    query = _SELECT.format(filter=condition)
    ratios = []
    for each in range(_WARM + rounds):
        ways = ("true", "false") if each % 2 else ("false", "true")
        took = {way: _seconds(spark, query, way) for way in ways}
        ratios.append(took["true"] / took["false"])
    # of neighbours in time, so that what else the machine does weighs on both
    return Figure(f"{name}, with implied ranges over without", median(ratios[_WARM:]), "x", most)


def _planning(spark: SparkSession) -> Figure:
    query = _SELECT.format(filter=_UNTOUCHED).replace("sorted", "files")
    added = []
    for each in range(_PLANNED):
        ways = ("true", "false") if each % 2 else ("false", "true")
        took = {way: _planned_seconds(spark, query, way) for way in ways}
        added.append(took["true"] - took["false"])
    name = "implied ranges add to planning a query that none touches, medians"
    return Figure(name, median(added[_PLANNED // 4 :]) * 1000, "ms", _MOST_PLANNING)


def _planned_seconds(spark: SparkSession, query: str, way: str) -> float:
    spark.conf.set(_SETTING, way)
    frame = spark.sql(query)
    began = time.perf_counter()
    frame._jdf.queryExecution().optimizedPlan()
    return time.perf_counter() - began


def _seconds(spark: SparkSession, query: str, way: str) -> float:
    spark.conf.set(_SETTING, way)
    began = time.perf_counter()
    spark.sql(query).collect()
    return time.perf_counter() - began
