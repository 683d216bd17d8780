"""Large results: a statement of the service beside what PySpark offers for the same rows, by turns.

A service, and the process of its statements with a driver of 2 GB, run beside a session in this
process with as much. What a client takes in memory is measured in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
        scale: 20 is the hundred million rows of the largest result; 1 is five million.
    """
    with tempfile.TemporaryDirectory() as name, _served(Path(name)) as (client, worker, spark):
        return [
            *_few(client, spark),
            *_two_million(client, spark),
            *_iterator(client, spark),
            *_ordered(client, spark),
            *_largest(client, worker, int(_ROWS * scale), Path(name)),
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


def _iterator(client: StatementClient, spark: SparkSession) -> Iterator[Figure]:
    query = _SELECT.format(rows=_ROWS)
    ours, theirs = _by_turns(
        partial(_fetched, client, query), partial(_iterated, spark, query), rounds=1
    )
    yield Figure(f"toLocalIterator over a statement, {_ROWS:,} rows", theirs / ours, "x")


def _largest(client: StatementClient, worker: Replica, rows: int, folder: Path) -> Iterator[Figure]:
    query, of = _SELECT.format(rows=rows), f"{rows:,} rows"
    large, read = _timed_parts(client, query)
    yield Figure(f"a statement of {of}", large, "s")
    yield Figure("of its time: reading its rows back", read / large, "", _MOST_READ)
    yield Figure(f"the JVM of a statement of {of}", _rss_of_jvm(worker), "MB", _MOST_JVM_MB)
    python = _client_growth(client, query)
    yield Figure(f"fetch above its start, {of}", python, "MB", _MOST_CLIENT_MB)
    command = _peak_of_query(client, query, folder) - _peak_of_query(client, "SELECT 1", folder)
    yield Figure(f"cachemgr query above its start, {of}", command, "MB", _MOST_CLIENT_MB)


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
    return _peak(jvm.pid)


def _client_growth(client: StatementClient, query: str) -> float:
    """How much more a client holds at most than before it asked, in MB."""
    told = subprocess.run(
        [sys.executable, "-m", "bench.statements", client.server, client.token or "", query],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(told.stdout)


def _peak_of_query(client: StatementClient, query: str, folder: Path) -> float:
    """The most that `cachemgr query` holds, in MB."""
    program = Path(sys.executable).with_name("cachemgr")
    environment = {**os.environ, "CACHEMGR_SERVER": client.server}
    environment["CACHEMGR_TOKEN"] = client.token or ""
    process = subprocess.Popen(
        [program, "query", query, "--force", "-o", str(folder / "out.parquet")],
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    most = 0.0
    while process.poll() is None:
        with suppress(IndexError):  # it has just ended
            most = max(most, _peak(process.pid))
        time.sleep(0.05)
    if process.returncode != 0:
        raise ChildProcessError(f"cachemgr query ended with {process.returncode}")
    return most


def _peak(pid: int | str) -> float:
    """The most that a process has held since it began its program, in MB; `getrusage` would count
    what its parent held when it was forked."""
    status = Path(f"/proc/{pid}/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


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
    before = _peak("self")
    with StatementClient(server, token) as client:
        _fetched(client, query)
    return _peak("self") - before


if __name__ == "__main__":
    sys.stdout.write(str(_measure(*sys.argv[1:])))
