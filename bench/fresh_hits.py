"""What a hit costs right after rows were appended to the fact: of the 13 queries of the Star Schema
Benchmark, without us, before the append, from the appended files alone, from the rows that are held
in memory, and as the first one after an append, with us and without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import geometric_mean, median
from typing import Final

from pyspark.sql import SparkSession

import cachemgr
from bench.results import Figure
from bench.ssb import SCALE, ssb_session
from cachemgr.config.session_settings import MODE
from cachemgr.demo.ssb_cube import CUBE_NAME
from cachemgr.demo.ssb_queries import QUERIES

_TAILS: Final = "spark.cachemgr.freshHits.tailMaxBytes"
_ROUNDS: Final = 3
_ONE_IN: Final = 100
_OTHERS: Final = 3
_PATIENCE_SECONDS: Final = 60.0


def run(scale: float = SCALE) -> list[Figure]:
    """All figures of this module.

    Args:
        scale: SSB scale factor.
    """
    with ssb_session(scale, cube=True) as spark:
        texts = [query.sql() for query in QUERIES]
        for text in texts:  # pins are made, code gets warm
            _seconds(spark, text, "off")
            _seconds(spark, text, "rewrite")
        time.sleep(5)
        hits = [_median(spark, text, "rewrite") for text in texts]
        _append(spark, len(texts))
        base = [_median(spark, text, "off") for text in texts]
        spark.conf.set(_TAILS, "0")
        files = [_median(spark, text, "rewrite") for text in texts]
        spark.conf.unset(_TAILS)
        for text in texts:
            _until(lambda text=text: _by_tail(spark, text))  # type: ignore[misc]
        tails = [_median(spark, text, "rewrite") for text in texts]
        counted = cachemgr.counters(spark)
        assert counted.get("tail_hits", 0) >= len(texts) * _ROUNDS, counted
        first, beside_first = _first(spark, texts)
    return [
        _figure("the first hit after an append over without us, g. m.", first, beside_first, 2 / 3),
        _worst("the first hit after an append over without us, worst", first, beside_first, 1.0),
        _figure("without us over a hit from the appended files, geometric mean", base, files),
        _figure("without us over a hit with rows in memory, geometric mean", base, tails),
        _worst("a hit from the appended files over without us, the worst query", files, base, None),
        _figure("a hit with rows in memory over a hit before the append, g. m.", tails, hits, 2.0),
        _worst("a hit with rows in memory over a hit before the append, worst", tails, hits, None),
    ]


def _append(spark: SparkSession, share: int) -> None:
    """One percent of the rows once more, another one for each share."""
    some = f"pmod(hash(lo_orderkey, lo_linenumber), {_ONE_IN}) = {share}"
    spark.sql(f"INSERT INTO lineorder SELECT * FROM lineorder WHERE {some}")


def _first(spark: SparkSession, texts: list[str]) -> tuple[list[float], list[float]]:
    """The seconds of each query where it is the first one after an append, with us and without. A
    new version of the table costs its first query something in both ways."""
    with_us, without = [], []
    for number, text in enumerate(texts):
        spark.sql(f"REFRESH RELATIONAL CACHE {CUBE_NAME}").collect()
        for asked in (text, *texts[:_OTHERS]):
            _seconds(spark, asked, "rewrite")
        _append(spark, number)
        with_us.append(_seconds(spark, text, "rewrite"))
        for other in (texts * 2)[number + 1 : number + 1 + _OTHERS]:
            _seconds(spark, other, "rewrite")
        _append(spark, len(texts) + 1 + number)
        without.append(_seconds(spark, text, "off"))
    return with_us, without


def _figure(
    name: str, over: list[float], under: list[float], budget: float | None = None
) -> Figure:
    ratio = geometric_mean(a / b for a, b in zip(over, under, strict=True))
    return Figure(name, ratio, "x", budget)


def _worst(name: str, over: list[float], under: list[float], budget: float | None) -> Figure:
    return Figure(name, max(a / b for a, b in zip(over, under, strict=True)), "x", budget)


def _seconds(spark: SparkSession, text: str, mode: str) -> float:
    spark.conf.set(MODE, mode)
    started = time.perf_counter()
    spark.sql(text).collect()
    return time.perf_counter() - started


def _median(spark: SparkSession, text: str, mode: str) -> float:
    return median(_seconds(spark, text, mode) for _ in range(_ROUNDS))


def _by_tail(spark: SparkSession, text: str) -> bool:
    before = cachemgr.counters(spark).get("tail_hits", 0)
    _seconds(spark, text, "rewrite")
    return cachemgr.counters(spark).get("tail_hits", 0) > before


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("no rows are held in memory")
        time.sleep(0.2)
