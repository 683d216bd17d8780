"""Hits by many threads: of one session, and of a new session for each query, beside the same
without us.

A new session is made, enabled, asked once and disabled, all of it within the time of its query;
without us it is made and asked. The queries are the thirteen of the Star Schema Benchmark with all
their parameters, by turns.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import SparkSession

import cachemgr
from bench.results import Figure, percentile
from bench.ssb import SCALE, ssb_session
from cachemgr.demo.ssb_queries import QUERIES

_THREADS = (1, 4, 16)
_WITH_US, _WITHOUT = 52, 26
_MODE = "spark.cachemgr.mode"
# 25 hits a second on two cores
_MILLIS_A_HIT = 40.0
_FRESH_AGAINST_ONE = 1.2
Ask = Callable[[str], object]


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
    with ssb_session(scale, cube=True) as spark:
        plain = spark.newSession()
        plain.conf.set(_MODE, "off")
        # all sets pinned, all code compiled
        for ask in (spark.sql, spark.sql, spark.sql, plain.sql):
            for query in QUERIES:
                ask(query.sql()).collect()
        figures = []
        for threads in _THREADS:
            figures += _figures(spark, plain, threads)
        return figures


def _figures(spark: SparkSession, plain: SparkSession, threads: int) -> list[Figure]:
    one = _load(lambda text: spark.sql(text).collect(), threads, _WITH_US)
    without = _load(lambda text: plain.sql(text).collect(), threads, _WITHOUT)
    fresh = _load(lambda text: _by_new_session(spark, text), threads, _WITH_US)
    fresh_without = _load(lambda text: _without_us(spark, text), threads, _WITHOUT)
    by = f"{threads} thread" + ("s" if threads > 1 else "")
    most = max(_THREADS) == threads
    figures = []
    for kind, load in (
        ("one session", one),
        ("a new session for each query", fresh),
        ("one session, without us", without),
        ("a new session for each query, without us", fresh_without),
    ):
        budget = _MILLIS_A_HIT if most and load is one else None
        figures += [
            Figure(f"queries a second, {by}, {kind}", 1e3 / load.each, "/s"),
            Figure(f"time by queries, {by}, {kind}", load.each, "ms", budget),
            Figure(f"query p50, {by}, {kind}", percentile(load.millis, 0.5), "ms"),
            Figure(f"query p99, {by}, {kind}", percentile(load.millis, 0.99), "ms"),
        ]
    ratio = fresh.each / one.each
    return [
        *figures,
        Figure(f"new sessions against one session, {by}", ratio, "x", _FRESH_AGAINST_ONE),
        Figure(f"with us against without us, {by}", one.each / without.each, "x", 1.0),
        Figure(
            f"with us against without us, {by}, new sessions",
            fresh.each / fresh_without.each,
            "x",
            1.0,
        ),
    ]


def _texts() -> Iterator[str]:
    sets = range(min(len(query.parameters) for query in QUERIES))
    return itertools.cycle([query.sql(number) for number in sets for query in QUERIES])


def _load(ask: Ask, threads: int, queries: int) -> _Load:
    texts, lock, millis = _texts(), threading.Lock(), []

    def one(_: int) -> None:
        with lock:
            text = next(texts)
        start = time.perf_counter()
        ask(text)
        millis.append((time.perf_counter() - start) * 1e3)

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(queries)))
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
    session.conf.set(_MODE, "off")
    session.sql(text).collect()
