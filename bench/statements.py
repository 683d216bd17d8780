"""Large results: a statement of the service beside what PySpark offers for the same rows, by turns.

A service, and the process of its statements with a driver of 2 GB, run beside a session in this
process with as much. What a client takes in memory is measured in a process of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

from bench.results import Figure
from cachemgr.metastore import open_metastore
from cachemgr.results.client import StatementClient
from cachemgr.roles import Role
from tests.processes import Replica, replica_settings, replicas, until

_MILLION: Final = 1_000_000
_ROWS: Final = 5 * _MILLION
_FEW_ROUNDS: Final = 15
_MEMORY: Final = "2g"
_SELECT: Final = (
    "SELECT id, CAST(id % 1000 AS INT) AS k, date_add(DATE'2020-01-01', CAST(id % 2000 AS INT)) "
    "AS d, CAST(id % 100000 / 100 AS DECIMAL(10,2)) AS p, concat('name ', id) AS s "
    "FROM range(0, {rows}, 1, 40)"
)
_MOST_OVER_ARROW: Final = 1.4
_MOST_READ: Final = 0.1
_MOST_JVM_MB: Final = 1_200
_MOST_CLIENT_MB: Final = 64
_MOST_MS_OVER: Final = 100


def run(scale: float = 1.0) -> list[Figure]:
    """All figures of this module.

    Args:
        scale: 20 is the hundred million rows of the large result; 1 is five million.
    """
    with tempfile.TemporaryDirectory() as name, _served(Path(name)) as (client, worker, spark):
        rows = int(_ROWS * scale)
        query = _SELECT.format(rows=rows)
        large, read = _timed_parts(client, query)
        jvm = _rss_of_jvm(worker)
        grown = _client_growth(client, query)
        iterated = _seconds(partial(_iterated, spark, query))
        return [
            *_few(client, spark),
            *_two_million(client, spark),
            Figure(f"toLocalIterator over a statement, {rows:,} rows", iterated / large, "x"),
            *_ordered(client, spark),
            Figure("of a statement's time: reading its rows back", read / large, "", _MOST_READ),
            Figure(f"the JVM of a statement of {rows:,} rows", jvm, "MB", _MOST_JVM_MB),
            Figure(f"its client above its start, {rows:,} rows", grown, "MB", _MOST_CLIENT_MB),
        ]


def _few(client: StatementClient, spark: SparkSession) -> Iterator[Figure]:
    ours, theirs = [], []
    for number in range(_FEW_ROUNDS):
        query = f"{_SELECT.format(rows=_MILLION)} WHERE id > {number} LIMIT 1000"
        ours.append(_seconds(partial(_fetched, client, query)))
        theirs.append(_seconds(partial(_as_arrow, spark, query)))
    over = 1000 * (median(ours[5:]) - 1.1 * median(theirs[5:]))
    yield Figure("a statement of 1,000 rows over 1.1 toArrow", over, "ms", _MOST_MS_OVER)
    yield Figure("a statement of 1,000 rows", 1000 * median(ours[5:]), "ms")


def _two_million(client: StatementClient, spark: SparkSession) -> Iterator[Figure]:
    query = _SELECT.format(rows=2 * _MILLION)
    ours, theirs = _by_turns(partial(_fetched, client, query), partial(_as_arrow, spark, query))
    yield Figure("a statement over toArrow, 2,000,000 rows", ours / theirs, "x", _MOST_OVER_ARROW)


def _ordered(client: StatementClient, spark: SparkSession) -> Iterator[Figure]:
    query = f"{_SELECT.format(rows=_MILLION)} ORDER BY k, id"
    ours, theirs = _by_turns(
        partial(_fetched, client, query), partial(_iterated, spark, query), rounds=1
    )
    yield Figure("ordered toLocalIterator over a statement, 1,000,000 rows", theirs / ours, "x")


def _by_turns(
    one: Callable[[], int], other: Callable[[], int], rounds: int = 2
) -> tuple[float, float]:
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        found[0].append(_seconds(one))
        found[1].append(_seconds(other))
    return median(found[0]), median(found[1])


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _fetched(client: StatementClient, query: str) -> int:
    statement = client.finished(client.submit(query))
    rows = sum(int(batch.num_rows) for batch in client.batches(statement["id"]))
    client.give_up(statement["id"])
    return rows


def _as_arrow(spark: SparkSession, query: str) -> int:
    return int(spark.sql(query).toArrow().num_rows)


def _iterated(spark: SparkSession, query: str) -> int:
    return sum(1 for _ in spark.sql(query).toLocalIterator())


def _timed_parts(client: StatementClient, query: str) -> tuple[float, float]:
    """Seconds of a statement from its submission to its last row, and those of reading."""
    began = time.perf_counter()
    statement = client.finished(client.submit(query))
    computed = time.perf_counter()
    rows = sum(batch.num_rows for batch in client.batches(statement["id"]))
    ended = time.perf_counter()
    assert rows == statement["rows"]
    client.give_up(statement["id"])
    return ended - began, ended - computed


def _rss_of_jvm(worker: Replica) -> float:
    """The most that the JVM of a process has held, in MB."""
    process = psutil.Process(worker.started.process.pid)
    jvm = next(p for p in process.children(recursive=True) if "java" in p.name())
    status = Path(f"/proc/{jvm.pid}/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def _client_growth(client: StatementClient, query: str) -> float:
    """How much more a client holds at most than before it asked, in MB."""
    told = subprocess.run(
        [sys.executable, "-m", "bench.statements", client.server, client.token or "", query],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(told.stdout)


@contextmanager
def _served(folder: Path) -> Iterator[tuple[StatementClient, Replica, SparkSession]]:
    url = f"sqlite:///{folder / 'metastore.db'}"
    with open_metastore(url) as store:
        token = store.tokens.create("bench", Role.VIEWER)[1]
    conf = {"spark.driver.memory": _MEMORY, "spark.ui.enabled": "false"}
    given = replica_settings(url, folder, [], master="local[2]", results_location=str(folder / "r"))
    given["CACHEMGR_SPARK_CONF"] = json.dumps(conf)
    serve = Replica("serve", folder, given, token, ("serve", "--no-scheduler"))
    worker = Replica("worker", folder, given, "", ("worker", "--statements"))
    builder: Any = SparkSession.builder.master("local[2]")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    try:
        with replicas(serve, worker):
            until(serve.ready, 120, "the service is ready")
            with StatementClient(serve.address, token) as client:
                _fetched(client, "SELECT 1")
                yield client, worker, spark
    finally:
        spark.stop()


def _measure(server: str, token: str, query: str) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with StatementClient(server, token) as client:
        _fetched(client, query)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


if __name__ == "__main__":
    sys.stdout.write(str(_measure(*sys.argv[1:])))
