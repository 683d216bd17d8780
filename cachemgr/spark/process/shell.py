"""Statements one after the other on an enabled session, with what became of each."""

from __future__ import annotations

import datetime
import decimal
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cachemgr.config.session_settings import Settings
from cachemgr.config.setting import Mode
from cachemgr.ddl import looks_like_ours
from cachemgr.errors import CacheManagerError
from cachemgr.jvm.session_conf import explicit_settings
from cachemgr.reason_text import reason_text
from cachemgr.spark import api
from cachemgr.spark.process.cancellable import Cancellable
from cachemgr.spark.process.jvm_log import JvmLog
from cachemgr.spark.spark_errors import code_and_line
from matcher.index.explain import reason_data

_QUERY = re.compile(r"\s*(?:\(|(?:SELECT|WITH|FROM|VALUES|TABLE)\b)", re.IGNORECASE)

_WRITE = re.compile(r"\s*(?:INSERT|CREATE|REPLACE|MERGE|UPDATE|DELETE)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """What a statement gave.

    Args:
        columns: Names of the columns.
        rows: Values as JSON knows them, texts for all others.
        more: There are more rows than were asked for.
        seconds: How long it ran.
        verdict: `hit` or `miss` with the caches or the reason; of what writes the rows of a query,
            whether that query was answered from a cache. None for what is neither.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    more: bool
    seconds: float
    verdict: str | None


class Statements:
    """Runs statements so that Ctrl-C can cancel them.

    Args:
        spark: An enabled session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._cancellable = Cancellable(spark)
        self._log = JvmLog(spark)

    def run(self, text: str, limit: int) -> Answer:
        """Run a statement; see `run_statement`. Called in the main thread.

        Raises:
            KeyboardInterrupt: It was cancelled by Ctrl-C, and has ended.
        """
        self._log.speak()
        with _plain_interrupts():
            return self._cancellable.run(
                lambda: run_statement(self._spark, text, limit), self._log.fall_silent
            )


@contextmanager
def _plain_interrupts() -> Iterator[None]:
    """Let Ctrl-C do nothing but raise KeyboardInterrupt: PySpark's own handler cancels the jobs
    before anybody can tell Spark to keep its traces to itself."""
    theirs = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, theirs)


def run_statement(spark: SparkSession, text: str, limit: int) -> Answer:
    """Run a statement.

    Args:
        spark: An enabled session.
        text: One statement, Spark's or ours.
        limit: Rows to fetch at most.

    Raises:
        CacheManagerError: It is wrong; Spark's condition is the code.
    """
    try:
        return _run(spark, text, limit)
    except PySparkException as error:
        raise CacheManagerError(*code_and_line(error)) from error


def _run(spark: SparkSession, text: str, limit: int) -> Answer:
    before = api.counters(spark)
    started = time.perf_counter()
    frame = spark.sql(text)
    rows = frame.collect() if looks_like_ours(text) else frame.take(limit + 1)
    seconds = time.perf_counter() - started
    after = api.counters(spark)
    hits, misses = (after[name] - before[name] for name in ("hits", "misses"))
    shown = [tuple(_plain(value) for value in row) for row in rows]
    more = not looks_like_ours(text) and len(shown) > limit
    return Answer(
        tuple(frame.columns), shown[:limit] if more else shown, more, seconds,
        _verdict(spark, text, hits > 0, misses > 0),
    )  # fmt: skip


def _verdict(spark: SparkSession, text: str, hit: bool, miss: bool) -> str | None:
    if looks_like_ours(text):
        return None
    if not _QUERY.match(text):  # which EXPLAIN REWRITE does not take
        if not _WRITE.match(text) or not (hit or miss):
            return None
        return f"{'hit' if hit else 'miss'} of the query whose rows it writes"
    mode = Settings.from_mapping(explicit_settings(spark)).mode
    found = api.explain(spark, text)
    if hit:
        keys = "" if found.grouping_set is None else f" ({found.grouping_set})"
        told = f"hit {', '.join(found.caches)}{keys}".rstrip()
        told = "; ".join((told, *(f"behind its tables: {b.told()}" for b in found.behind)))
        return f"planned only, the original ran: {told}" if mode is Mode.PLAN_ONLY else told
    why = reason_text(reason_data(found.reasons[0])) if found.reasons and not found.hit else ""
    return f"miss: {why}" if why else "miss"


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case decimal.Decimal() | datetime.date() | datetime.datetime() | datetime.timedelta():
            return str(value)
        case bytes() | bytearray():
            return value.hex()
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case _:
            return str(value)
