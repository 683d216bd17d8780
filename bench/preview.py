"""The first rows of a query that few rows pass: several jobs at once beside Spark's own `take`.

The rows lie in one of two thousand partitions. Where take has found some rows it reckons how many
partitions it needs; where it has found none it takes four times as many as before.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import SparkSession

import cachemgr
from bench.results import Figure
from bench.sessions import session
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
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder))
        cachemgr.enable(spark)  # as statements have it
        try:
            return [_figure(spark, needed, most) for needed, most in _NEEDED.items()]
        finally:
            spark.stop()


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
