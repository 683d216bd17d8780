"""Hits by many threads: of one session, and of a new session for each query, beside the same
without us.

A new session is made, enabled, asked once and disabled, all of it within the time of its query;
without us it is made and asked. The queries are the thirteen of the Star Schema Benchmark with all
their parameters, by turns. The kinds of session are loaded by turns too: a JVM gets faster for
minutes. Ratios are the median of the rounds.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median

from pyspark.sql import SparkSession

import cachemgr
from bench.results import Figure, percentile
from bench.ssb import SCALE, ssb_session
from cachemgr.config.session_settings import MODE
from cachemgr.demo.ssb_queries import QUERIES

_THREADS = (1, 4, 16)
_ROUNDS = 3
# of a round
_WITH_US, _WITHOUT = 26, 13
# 25 hits a second on two cores
_MILLIS_A_HIT = 40.0
_FRESH_AGAINST_ONE = 1.2
_ONE, _FRESH = "one session", "a new session for each query"
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
        plain.conf.set(MODE, "off")
        # all sets pinned, all code compiled
        for ask in (spark.sql, spark.sql, spark.sql, plain.sql):
            for query in QUERIES:
                ask(query.sql()).collect()
        figures = []
        for threads in _THREADS:
            figures += _figures(spark, plain, threads)
        return figures


def _figures(spark: SparkSession, plain: SparkSession, threads: int) -> list[Figure]:
    kinds: dict[str, tuple[Ask, int]] = {
        _ONE: (lambda text: spark.sql(text).collect(), _WITH_US),
        _FRESH: (lambda text: _by_new_session(spark, text), _WITH_US),
        f"{_ONE}, without us": (lambda text: plain.sql(text).collect(), _WITHOUT),
        f"{_FRESH}, without us": (lambda text: _without_us(spark, text), _WITHOUT),
    }
    rounds = [
        {kind: _load(ask, threads, queries) for kind, (ask, queries) in kinds.items()}
        for _ in range(_ROUNDS)
    ]
    by = f"{threads} thread" + ("s" if threads > 1 else "")
    figures = []
    for kind in kinds:
        load = _together([each[kind] for each in rounds])
        budget = _MILLIS_A_HIT if kind == _ONE and threads == max(_THREADS) else None
        figures += [
            Figure(f"queries a second, {by}, {kind}", 1e3 / load.each, "/s"),
            Figure(f"time by queries, {by}, {kind}", load.each, "ms", budget),
            Figure(f"query p50, {by}, {kind}", percentile(load.millis, 0.5), "ms"),
            Figure(f"query p99, {by}, {kind}", percentile(load.millis, 0.99), "ms"),
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
    ]


def _together(loads: Sequence[_Load]) -> _Load:
    return _Load(sum(load.seconds for load in loads), [m for load in loads for m in load.millis])


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
    session.conf.set(MODE, "off")
    session.sql(text).collect()
