"""Hits through a server with our extension, by Thrift and by Connect, beside those of a Python
program of one's own; and what the extension adds to queries there that cannot hit.

The thirteen queries of the Star Schema Benchmark by turns in process, by a DBAPI client and by a
Connect session against one server over the same tables, metastore and settings, each time with
constants that were drawn by `SEED`. For what is added, a second server without the extension gets
the same queries by turns. The clients run in this process.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as RemoteSession

from bench.results import Figure
from bench.ssb import SCALE, SEED, drawn, ssb_session
from cachemgr.demo.ssb_data import table_path
from cachemgr.demo.ssb_queries import QUERIES
from cachemgr.demo.ssb_schema import TABLES
from tests.doors.spark_server import CLASS_PATH, Server, reads_cache, server, server_conf

_WARM, _ROUNDS = 4, 7
# a JVM compiles the same code ever better for a while
_ADDED_WARM, _ADDED_ROUNDS = 300, 150
_KEPT: Final = ("spark.sql.", "spark.databricks.", "spark.cachemgr.", "spark.driver.memory")
_AGAINST_IN_PROCESS: Final = 1.6
_NEW_CONNECTION: Final = 1.2
_MILLIS: Final = {"no known table": 1.0, "a known table": 5.0}
_MISSES: Final = {
    "no known table": "SELECT MAX(v) FROM unknown WHERE k < {number}",
    "a known table": "SELECT MAX(d_year) FROM known WHERE d_datekey > {number}",
}
Ask = Callable[[str], object]


def run(scale: float = SCALE) -> list[Figure]:
    """All figures of this module.

    Args:
        scale: SSB scale factor.
    """
    with (
        tempfile.TemporaryDirectory() as name,
        ssb_session(scale, cube=True, folder=Path(name)) as spark,
    ):
        folder, settings = Path(name), _settings(spark)
        tables = [
            f"CREATE TABLE {table} USING delta LOCATION '{table_path(folder / 'data', table)}'"
            for table in TABLES
        ]
        with server(folder, _conf(folder, settings), tables) as ours:
            with ours.session() as cursor, _connected(ours) as remote:
                here, *there = _millis(
                    partial(_collected, spark), partial(_rows, cursor), partial(_collected, remote)
                )
            for query in QUERIES:
                (told,) = ours.sql(f"EXPLAIN {query.sql()}")
                assert reads_cache(told[0][0]), told
            fresh, warm = _connections(ours)
            return [
                *itertools.chain(
                    *(
                        _against(door, found, here)
                        for door, found in zip(("Thrift", "Connect"), there, strict=True)
                    )
                ),
                Figure(
                    "the first hit of a new JDBC connection over one of a warm one",
                    fresh / warm,
                    "x",
                    _NEW_CONNECTION,
                ),
                *_added(ours, folder, settings),
            ]


def _against(door: str, there: Mapping[str, float], here: Mapping[str, float]) -> Iterator[Figure]:
    yield Figure(
        f"a hit at the {door} door over one in process, geometric mean of 13",
        geometric_mean([there[name] / here[name] for name in there]),
        "x",
        _AGAINST_IN_PROCESS,
    )
    yield Figure(f"a hit at the {door} door, median of 13", median(there.values()), "ms")
    yield Figure(f"a hit at the {door} door, the slowest of 13", max(there.values()), "ms")


@contextmanager
def _connected(ours: Server) -> Iterator[RemoteSession]:
    remote = RemoteSession.builder.remote(f"sc://127.0.0.1:{ours.connect}").create()
    try:
        yield remote
    finally:
        remote.stop()


def _settings(spark: SparkSession) -> dict[str, str]:
    found = spark.sparkContext.getConf().getAll()
    return {key: value for key, value in found if key.startswith(_KEPT)}


def _conf(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The server's: what hits in process ran under, and what the extension needs."""
    given = server_conf(folder)
    # the catalog too is that of in process: Hive's is asked for each table of each query
    wanted = (
        CLASS_PATH,
        "spark.sql.extensions",
        "spark.sql.catalogImplementation",
        "spark.cachemgr.sidecar.python",
    )
    loopback = ("spark.driver.host", "spark.driver.bindAddress", "spark.ui.enabled")
    return {**settings, **{key: given[key] for key in (*wanted, *loopback)}}


def _millis(*asks: Ask) -> list[dict[str, float]]:
    """The median of each query on each side, by turns, once all sets are pinned and all code is
    compiled."""
    numbers = random.Random(SEED)
    taken: list[dict[str, list[float]]] = [{q.name: [] for q in QUERIES} for _ in asks]
    for number in range(_WARM + _ROUNDS):
        for query in QUERIES:
            text = drawn(query, numbers)
            for ask, of_side in zip(asks, taken, strict=True):
                took = _timed(ask, text)
                if number >= _WARM:
                    of_side[query.name].append(took)
    return [{name: median(times) for name, times in of_side.items()} for of_side in taken]


def _connections(ours: Server) -> tuple[float, float]:
    """Milliseconds of a hit on a connection that has just been opened, and on one that stays."""
    fresh, warm = [], []
    with ours.session() as lasting:
        for query, _ in itertools.product(QUERIES, range(2)):
            warm.append(_timed(partial(_rows, lasting), query.sql()))
            with ours.session() as cursor:
                fresh.append(_timed(partial(_rows, cursor), query.sql()))
    return median(fresh), median(warm)


def _added(ours: Server, folder: Path, settings: Mapping[str, str]) -> list[Figure]:
    """What a query that cannot hit takes longer with the extension."""
    tables = [
        "CREATE TABLE IF NOT EXISTS known USING delta LOCATION "
        f"'{table_path(folder / 'data', 'dates')}'",
        f"CREATE TABLE IF NOT EXISTS unknown USING delta LOCATION '{folder / 'unknown'}' AS "
        "SELECT id AS k, id AS v FROM range(1000)",
    ]
    conf = _conf(folder, {k: v for k, v in settings.items() if not k.startswith("spark.cachemgr")})
    conf["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
    conf["spark.sql.warehouse.dir"] = str(folder / "other-warehouse")
    del conf["spark.cachemgr.sidecar.python"]
    other = folder / "other"
    other.mkdir()
    ours.sql(*tables)
    tables[1] = f"CREATE TABLE unknown USING delta LOCATION '{folder / 'unknown'}'"
    figures = []
    with server(other, conf, tables) as plain, ours.session() as with_us, plain.session() as bare:
        for what, text in _MISSES.items():
            taken: dict[bool, list[float]] = {True: [], False: []}
            for number in range(_ADDED_WARM + _ADDED_ROUNDS):
                for is_ours, cursor in ((True, with_us), (False, bare)):
                    took = _timed(partial(_rows, cursor), text.format(number=number))
                    if number >= _ADDED_WARM:
                        taken[is_ours].append(took)
            told = f"added at the Thrift door to a query of {what} that cannot hit, medians"
            added = median(taken[True]) - median(taken[False])
            figures.append(Figure(told, added, "ms", _MILLIS[what]))
    return figures


def _collected(spark: SparkSession | RemoteSession, text: str) -> object:
    return spark.sql(text).collect()


def _rows(cursor: Any, text: str) -> object:
    cursor.execute(text)
    return cursor.fetchall()


def _timed(ask: Ask, text: str) -> float:
    start = time.perf_counter()
    ask(text)
    return (time.perf_counter() - start) * 1e3
