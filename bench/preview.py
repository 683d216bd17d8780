"""The first rows of a query that few rows pass: several jobs at once beside Spark's own `take`.

The rows lie in one of two thousand partitions. Where take has found some rows it reckons how many
partitions it needs; where it has found none it takes four times as many as before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Final

from pyspark.sql import SparkSession

import cachemgr
from bench.results import Figure
from cachemgr.spark.results.preview import first_rows

_PARTITIONS: Final = 2_000
_ROWS: Final = 500
_LIMIT: Final = 100
_ROUNDS: Final = 7
# The partition that holds the rows, and how much of take's time is allowed.
_NEEDED: Final = {1: 1.11, 5: 1.11, 130: 0.59, 700: None}
_SELECT: Final = (
    "SELECT id, sha2(CAST(id + {number} AS STRING), 256) AS s "
    f"FROM range(0, {_PARTITIONS * _ROWS}, 1, {_PARTITIONS}) "
    "WHERE size(filter(sequence(1, 20), x -> sha2(CAST(id + x AS STRING), 512) = '{number}')) = 0 "
    f"AND id >= {{first}} LIMIT {_LIMIT}"
)


def run() -> list[Figure]:
    """All figures of this module."""
    spark = _session()
    try:
        return [_figure(spark, needed, most) for needed, most in _NEEDED.items()]
    finally:
        spark.stop()


def _session() -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName("relational-cache-bench")
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _figure(spark: SparkSession, needed: int, most: float | None) -> Figure:
    theirs, ours = [], []
    for number in range(_ROUNDS):
        query = _SELECT.format(number=number, first=(needed - 1) * _ROWS)
        theirs.append(_seconds(partial(_take, spark, query)))
        ours.append(_seconds(partial(_first, spark, query)))
    name = f"a preview over take, partition {needed} of {_PARTITIONS:,}"
    return Figure(name, median(ours) / median(theirs), "x", most)


def _take(spark: SparkSession, query: str) -> int:
    return len(spark.sql(query).collect())


def _first(spark: SparkSession, query: str) -> int:
    return len(first_rows(spark, spark.sql(query)).collect())


def _seconds(work: Callable[[], int]) -> float:
    began = time.perf_counter()
    assert work() == _LIMIT
    return time.perf_counter() - began
