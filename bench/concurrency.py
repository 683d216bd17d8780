"""Hits by many threads: of one session, and of a new session for each query, beside the same
without us, DuckDB on the same files of the base tables, and two queries that read nothing.

A new session is made, enabled, asked once and disabled, all of it within the time of its query;
without us it is made and asked. The queries are the thirteen of the Star Schema Benchmark, or those
eleven that sets in memory answer, each with constants drawn by `SEED`: Spark compiles code with the
numbers of a query in it, so that constants which come again cost less than those of a dashboard.
The kinds are loaded by turns: a JVM gets faster for minutes. A round of what is fast has so many
queries that few of its threads wait for its end. Ratios are the median of the rounds.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import duckdb
from pyspark.sql import SparkSession
from sqlglot import transpile

import cachemgr
from bench.results import Figure, percentile
from bench.ssb import SCALE, drawn, held_queries, ssb_session
from cachemgr.config.session_settings import MODE
from cachemgr.demo.ssb_queries import QUERIES, SsbQuery
from cachemgr.demo.ssb_schema import TABLES

SEED = 46
_THREADS = (1, 4, 16)
_ROUNDS = 3
# of a round; of those that are fast, for each thread
_WITHOUT, _AT_LEAST, _A_THREAD = 13, 26, 8
_DUCKDB_THREADS = 2
# 45 hits a second on two cores, and 75 over sets in memory
_MILLIS_A_HIT, _MILLIS_A_HELD_HIT, _P99_MILLIS = 22.2, 13.3, 600.0
_FRESH_AGAINST_ONE = 1.2
_ONE, _FRESH, _HELD = "one session", "a new session for each query", "over sets in memory"
_DUCKDB = "DuckDB"
Ask = Callable[[str], object]


@dataclass(frozen=True)
class _Kind:
    """Who is asked what.

    Args:
        ask: Asks one text.
        texts: The texts.
        is_fast: Many of them make a round.
    """

    ask: Ask
    texts: Iterator[str]
    is_fast: bool = True

    def queries(self, threads: int) -> int:
        """How many make a round of so many threads."""
        return max(_AT_LEAST, _A_THREAD * threads) if self.is_fast else _WITHOUT


@dataclass(frozen=True)
class _Load:
    """What one number of threads took: seconds in all, and milliseconds of each query."""

    seconds: float
    millis: list[float]

    @property
    def each(self) -> float:
        """Milliseconds in all by the number of queries."""
        return self.seconds * 1e3 / len(self.millis)


def run(scale: float = SCALE) -> list[Figure]:
    """All figures of this module.

    Args:
        scale: SSB scale factor.
    """
    numbers = random.Random(SEED)
    with ssb_session(scale, cube=True) as spark, _duckdb(spark) as duck:
        plain = spark.newSession()
        plain.conf.set(MODE, "off")
        # all sets are pinned, and the code that every query needs is compiled
        for ask in (spark.sql, spark.sql, spark.sql, plain.sql):
            for query in QUERIES:
                ask(query.sql()).collect()
            time.sleep(5)
        kinds = _kinds(spark, plain, duck, numbers)
        return [figure for threads in _THREADS for figure in _figures(kinds, threads)]


def _kinds(
    spark: SparkSession,
    plain: SparkSession,
    duck: duckdb.DuckDBPyConnection,
    numbers: random.Random,
) -> dict[str, _Kind]:
    def of(queries: Sequence[SsbQuery]) -> Iterator[str]:
        while True:
            yield from [drawn(query, numbers) for query in queries]

    def of_no_table(text: str) -> Iterator[str]:
        while True:
            yield text.format(numbers.randrange(10**9))

    def asked(text: str) -> object:
        return spark.sql(text).collect()

    return {
        _ONE: _Kind(asked, of(QUERIES)),
        _HELD: _Kind(asked, of(held_queries())),
        _FRESH: _Kind(lambda text: _by_new_session(spark, text), of(QUERIES)),
        f"{_ONE}, without us": _Kind(lambda text: plain.sql(text).collect(), of(QUERIES), False),
        f"{_FRESH}, without us": _Kind(lambda text: _without_us(spark, text), of(QUERIES), False),
        _DUCKDB: _Kind(
            lambda text: _by_duckdb(duck, text),
            (transpile(text, read="spark", write="duckdb")[0] for text in of(held_queries())),
            False,
        ),
        "SELECT 1": _Kind(asked, of_no_table("SELECT {}")),
        "VALUES (1)": _Kind(asked, of_no_table("SELECT * FROM VALUES ({})")),
    }


def _by_duckdb(duck: duckdb.DuckDBPyConnection, text: str) -> object:
    with duck.cursor() as cursor:  # one for each thread
        return cursor.sql(text).fetchall()


@contextmanager
def _duckdb(spark: SparkSession) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB over the files of the base tables as they are now."""
    with duckdb.connect(config={"threads": _DUCKDB_THREADS}) as connection:
        for name in TABLES:
            files = [file.removeprefix("file://") for file in spark.table(name).inputFiles()]
            connection.sql(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files})")
        yield connection


def _figures(kinds: dict[str, _Kind], threads: int) -> list[Figure]:
    rounds = [{name: _load(kind, threads) for name, kind in kinds.items()} for _ in range(_ROUNDS)]
    by = f"{threads} thread" + ("s" if threads > 1 else "")
    budgets = {_ONE: _MILLIS_A_HIT, _HELD: _MILLIS_A_HELD_HIT} if threads == max(_THREADS) else {}
    figures = []
    for name in kinds:
        load = _together([each[name] for each in rounds])
        longest = _P99_MILLIS if name in budgets else None
        figures += [
            Figure(f"queries a second, {by}, {name}", 1e3 / load.each, "/s"),
            Figure(f"time by queries, {by}, {name}", load.each, "ms", budgets.get(name)),
            Figure(f"query p50, {by}, {name}", percentile(load.millis, 0.5), "ms"),
            Figure(f"query p99, {by}, {name}", percentile(load.millis, 0.99), "ms", longest),
        ]

    def ratio(kind: str, beside: str) -> float:
        return median(each[kind].each / each[beside].each for each in rounds)

    without = "with us against without us"
    return [
        *figures,
        Figure(
            f"new sessions against one session, {by}", ratio(_FRESH, _ONE), "x", _FRESH_AGAINST_ONE
        ),
        Figure(f"{without}, {by}", ratio(_ONE, f"{_ONE}, without us"), "x", 1.0),
        Figure(f"{without}, {by}, new sessions", ratio(_FRESH, f"{_FRESH}, without us"), "x", 1.0),
        Figure(f"{_HELD} against {_DUCKDB}, {by}", ratio(_HELD, _DUCKDB), "x", 0.5),
        Figure(f"{_HELD} against SELECT 1, {by}", ratio(_HELD, "SELECT 1"), "x", 1.2),
    ]


def _together(loads: Sequence[_Load]) -> _Load:
    return _Load(sum(load.seconds for load in loads), [m for load in loads for m in load.millis])


def _load(kind: _Kind, threads: int) -> _Load:
    lock, millis = threading.Lock(), []

    def one(_: int) -> None:
        with lock:
            text = next(kind.texts)
        start = time.perf_counter()
        kind.ask(text)
        millis.append((time.perf_counter() - start) * 1e3)

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(kind.queries(threads))))
    return _Load(time.perf_counter() - start, millis)


def _by_new_session(spark: SparkSession, text: str) -> None:
    session = spark.newSession()
    cachemgr.enable(session)
    try:
        session.sql(text).collect()
    finally:
        cachemgr.disable(session)


def _without_us(spark: SparkSession, text: str) -> None:
    session = spark.newSession()
    session.conf.set(MODE, "off")
    session.sql(text).collect()
