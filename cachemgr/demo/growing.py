"""What happens while the fact grows: rows are appended, queries hit at once with these rows in the
answer, and a refresh costs what was appended. At the end the table is put back as it was.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

import cachemgr
from cachemgr.config.session_settings import MODE
from cachemgr.demo.ssb_cube import CUBE_NAME
from cachemgr.demo.ssb_queries import QUERIES
from cachemgr.errors import CacheManagerError

_FACT: Final = "lineorder"
_ONE_IN: Final = 100
# one of each flight of the benchmark
_ASKED: Final = ("Q1.1", "Q2.1", "Q3.1", "Q4.1")


@dataclass(frozen=True, slots=True)
class Growth:
    """What was seen while the fact grew.

    Args:
        rows: Rows appended.
        without: Median seconds of a query without the hook.
        at_once: The same with it, right after the append.
        refresh: Seconds of the refresh that added the rows.
        way: The way that it took.
        full: Seconds of a refresh of everything.
        after: Median seconds of a query with the hook, after the refresh.
        failures: What went wrong, for people.
    """

    rows: int
    without: float
    at_once: float
    refresh: float
    way: str
    full: float
    after: float
    failures: tuple[str, ...] = ()

    def told(self) -> tuple[str, ...]:
        """What happened, a line each."""
        return (
            f"{self.rows:,} rows appended to {_FACT} (1 %)",
            f"asked at once: {self.at_once:.2f} s a query from the cube and the new rows, "
            f"{self.without:.2f} s without",
            f"refreshed by {self.way} in {self.refresh:.1f} s; everything takes {self.full:.1f} s",
            f"asked again: {self.after:.2f} s a query",
        )


def grow(spark: SparkSession) -> Growth:
    """Append one row in a hundred, ask, refresh, ask again, and put the table back.

    Args:
        spark: An enabled session with a cube that is up to date.

    Raises:
        CacheManagerError, PySparkException: A statement failed.
    """
    full = _timed(lambda: _refresh(spark, "FULL"))[0]
    history = f"DESCRIBE HISTORY {_FACT} LIMIT 1"
    before = spark.sql(history).collect()[0]["version"]
    chosen = f"pmod(hash(lo_orderkey, lo_linenumber), {_ONE_IN}) = 0"
    spark.sql(f"INSERT INTO {_FACT} SELECT * FROM {_FACT} WHERE {chosen}")
    rows = int(spark.sql(history).collect()[0]["operationMetrics"]["numOutputRows"])
    try:
        texts = [query.sql() for query in QUERIES if query.name in _ASKED]
        failures: list[str] = []
        for text in texts:  # uncounted: the code of both sides gets warm
            _ask(spark, text, "rewrite")
        asked = _fresh_hits(spark)
        pairs = [(_ask(spark, t, "off"), _ask(spark, t, "rewrite")) for t in texts]
        if _fresh_hits(spark) < asked + len(texts):
            failures.append("not every query hit right after the append")
        seconds, run = _timed(lambda: _refresh(spark, ""))
        again = [_ask(spark, text, "rewrite") for text in texts]
        for name, (plain, fresh), later in zip(_ASKED, pairs, again, strict=True):
            if not _same(plain[1], fresh[1]) or not _same(plain[1], later[1]):
                failures.append(f"{name} differs after the append")
        return Growth(
            rows=rows,
            without=statistics.median(plain[0] for plain, _ in pairs),
            at_once=statistics.median(fresh[0] for _, fresh in pairs),
            refresh=seconds,
            way=str(run["mode"]),
            full=full,
            after=statistics.median(later[0] for later in again),
            failures=tuple(failures),
        )
    finally:
        spark.conf.unset(MODE)
        spark.sql(f"RESTORE TABLE {_FACT} TO VERSION AS OF {before}")
        _refresh(spark, "")


def try_to_grow(spark: SparkSession) -> Growth | str:
    """The same; what failed in place of the result."""
    try:
        return grow(spark)
    except (CacheManagerError, PySparkException) as error:
        return f"the part with appended rows failed: {type(error).__name__}: {error}"


def _refresh(spark: SparkSession, mode: str) -> Row:
    return spark.sql(f"REFRESH RELATIONAL CACHE {CUBE_NAME} {mode}").collect()[0]


def _timed(work: Callable[[], Row]) -> tuple[float, Row]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def _ask(spark: SparkSession, text: str, mode: str) -> tuple[float, Sequence[Row]]:
    spark.conf.set(MODE, mode)
    started = time.perf_counter()
    rows = spark.sql(text).collect()
    return time.perf_counter() - started, rows


def _fresh_hits(spark: SparkSession) -> int:
    return cachemgr.counters(spark).get("fresh_hits", 0)


def _same(left: Sequence[Row], right: Sequence[Row]) -> bool:
    return Counter(map(tuple, left)) == Counter(map(tuple, right))
