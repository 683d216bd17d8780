"""Large results of a JDBC client: rows a second, and what the server takes in memory, with three
ways of sending them: collected, collected a partition at a time, and from files.

A server of its own for each way, with a heap of 2 GB, and PyHive in this process, whose work for a
row is in each of the rates.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bench.results import Figure
from tests.doors.spark_server import server, server_conf
from tests.doors.thrift_results import rss_mb

_ROWS: Final = 2_000_000
_SELECT: Final = (
    "SELECT id, CAST(id % 1000 AS INT) AS k, date_add(DATE'2020-01-01', CAST(id % 2000 AS INT)) "
    "AS d, CAST(id % 100000 / 100 AS DECIMAL(10,2)) AS p, concat('name ', id) AS s "
    "FROM range(0, {rows}, 1, 40)"
)
_WAYS: Final[Mapping[str, Mapping[str, str]]] = {
    "collected": {},
    "incremental": {"spark.sql.thriftServer.incrementalCollect": "true"},
    "files": {"spark.cachemgr.results.toFiles": "true"},
}
# As in production, where tests save the time to compile.
_FAST: Final = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
_FETCHED: Final = 10_000
_FEW_ROUNDS: Final = 15


def run(scale: float = 1.0) -> list[Figure]:
    """All figures of this module.

    Args:
        scale: 1 is two million rows.
    """
    rows = int(_ROWS * scale)
    return [figure for way in _WAYS for figure in _figures(way, rows)]


def _figures(way: str, rows: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        conf = {**server_conf(folder), **_FAST, "spark.local.dir": name, **_WAYS[way]}
        with server(folder, conf) as made, made.session() as cursor:
            _seconds(cursor, _SELECT.format(rows=100_000))
            few = [_seconds(cursor, _groups(number))[1] for number in range(_FEW_ROUNDS)]
            yield Figure(f"{way}: a thousand groups", 1000 * sorted(few)[_FEW_ROUNDS // 2], "ms")
            before = rss_mb(made.jvm())
            finished, ended = _seconds(cursor, _SELECT.format(rows=rows))
            most = rss_mb(made.jvm(), "VmHWM")
            yield Figure(f"{way}: {rows:,} rows, until it is finished", finished, "s")
            yield Figure(f"{way}: rows a second, all in all", rows / ended, "")
            yield Figure(f"{way}: the server before", before, "MB")
            yield Figure(f"{way}: the server at most", most, "MB")


def _groups(number: int) -> str:
    return f"SELECT id % 1000 AS k, SUM(id + {number}) FROM range(200000) GROUP BY k"


def _seconds(cursor: Any, query: str) -> tuple[float, float]:
    """Until a query is finished, and until its last row."""
    began = time.perf_counter()
    cursor.execute(query)
    finished = time.perf_counter()
    while cursor.fetchmany(_FETCHED):
        pass
    return finished - began, time.perf_counter() - began
