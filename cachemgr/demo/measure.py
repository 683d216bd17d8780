"""Runs each query without and with the hook, times both, and proves the answers equal.

Both sides run in one session under the same settings but `spark.cachemgr.mode`, alternating. The
first set of parameters is what the session was warmed up with: it is compared and not timed. No
result is ever cached: every timed run plans its query and collects its rows anew.
"""

from __future__ import annotations

import contextlib
import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

import cachemgr
from cachemgr.config.session_settings import MODE
from cachemgr.demo.ssb_queries import SsbQuery
from cachemgr.errors import CacheManagerError

#: Every query joins the fact with its dates, so a plan without this column reads no fact.
_FACT_COLUMN = "lo_orderdate"


@dataclass(frozen=True, slots=True)
class Run:
    """One query with one set of parameters.

    Args:
        number: Which set, 0 is the paper's.
        seconds_without: Without the hook.
        seconds_with: With it.
        rows: Rows without the hook.
        rows_with: Rows with it.
        hit: Whether the plan that ran read no fact table and the explanation says hit.
        empty: Whether there was no row, or none but the NULL of an aggregate over nothing.
        differences: What differs between the two answers, empty if nothing.
    """

    number: int
    seconds_without: float
    seconds_with: float
    rows: int
    rows_with: int
    hit: bool
    empty: bool
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryResult:
    """One query over its sets of parameters.

    Args:
        name: `Q1.1` to `Q4.3`.
        sql: Its text with the paper's parameters.
        runs: One a set.
        caches: The caches that answered.
        grouping_set: The grouping set that was read.
        rewritten_sql: What ran instead.
        reasons: Why it missed, if it did.
        differences: Rows of all sets that one side has more often.
        error: What failed, or None.
    """

    name: str
    sql: str
    runs: tuple[Run, ...] = ()
    caches: tuple[str, ...] = ()
    grouping_set: str | None = None
    rewritten_sql: str | None = None
    reasons: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    error: str | None = None

    @property
    def hit(self) -> bool:
        """Whether every set was answered from a cache."""
        return bool(self.runs) and all(run.hit for run in self.runs)

    @property
    def equal(self) -> bool:
        """Whether both answers had the same names, types, rows and order, in every set."""
        return (
            bool(self.runs)
            and not self.differences
            and not any(run.differences for run in self.runs)
        )

    @property
    def empty_sets(self) -> tuple[int, ...]:
        """The sets of parameters that selected nothing."""
        return tuple(run.number for run in self.runs if run.empty)

    @property
    def rows(self) -> int:
        """Rows of all sets together."""
        return sum(run.rows for run in self.runs)

    @property
    def timed(self) -> tuple[Run, ...]:
        """The runs whose parameters the session had not seen: all but the first set's."""
        return tuple(run for run in self.runs if run.number) or self.runs

    @property
    def without(self) -> float:
        """Median seconds without the hook."""
        return statistics.median(run.seconds_without for run in self.timed) if self.runs else 0.0

    @property
    def with_hook(self) -> float:
        """Median seconds with the hook."""
        return statistics.median(run.seconds_with for run in self.timed) if self.runs else 0.0

    @property
    def ratio(self) -> float:
        """How many times faster the median is."""
        return self.without / self.with_hook if self.with_hook else 0.0


@dataclass(frozen=True, slots=True)
class _Answer:
    seconds: float
    rows: list[Row]
    types: tuple[tuple[str, str], ...]
    reads_fact: bool


def measure(spark: SparkSession, query: SsbQuery) -> QueryResult:
    """Runs a query with each of its sets of parameters, without and with the hook.

    Args:
        spark: An enabled session.
        query: The query.

    Returns:
        Times and differences; a query that fails is a result with an error.
    """
    try:
        return _measure(spark, query)
    except (CacheManagerError, PySparkException) as error:
        return QueryResult(query.name, query.sql(), error=f"{type(error).__name__}: {error}")


def warm_up(spark: SparkSession, queries: Sequence[SsbQuery]) -> None:
    """Runs queries untimed: once without the hook, three times with it.

    The first hit on a small set has it pinned in the background, which would take a core from
    whatever is timed meanwhile, and both sides' code is compiled as it gets hot.

    Args:
        spark: An enabled session.
        queries: The queries; one that fails is left for `measure` to tell.
    """
    for mode in ("off", "rewrite", "rewrite", "rewrite"):
        for query in queries:
            with contextlib.suppress(CacheManagerError, PySparkException):
                _answer(spark, query.sql(), mode)


def _measure(spark: SparkSession, query: SsbQuery) -> QueryResult:
    runs: list[Run] = []
    pairs: list[tuple[_Answer, _Answer]] = []
    for number in range(len(query.parameters)):
        sql = query.sql(number)
        # Turn about, so that neither side always finds the other's warm files and JIT.
        first, second = ("off", "rewrite") if number % 2 == 0 else ("rewrite", "off")
        answers = {mode: _answer(spark, sql, mode) for mode in (first, second)}
        without, with_hook = answers["off"], answers["rewrite"]
        hit = cachemgr.explain(spark, sql).hit and not with_hook.reads_fact
        runs.append(_run(number, query, without, with_hook, hit))
        pairs.append((without, with_hook))
    explanation = cachemgr.explain(spark, query.sql())
    return QueryResult(
        name=query.name,
        sql=query.sql(),
        runs=tuple(runs),
        caches=explanation.caches,
        grouping_set=explanation.grouping_set,
        rewritten_sql=explanation.rewritten_sql,
        reasons=tuple(f"{r.code}: {r.detail}" for r in explanation.reasons),
        differences=_row_differences(pairs),
    )


@contextlib.contextmanager
def _in(spark: SparkSession, mode: str) -> Iterator[None]:
    """Under a mode, and after it under the session's own: what is explained is what users get."""
    spark.conf.set(MODE, mode)
    try:
        yield
    finally:
        spark.conf.unset(MODE)


def _answer(spark: SparkSession, sql: str, mode: str) -> _Answer:
    with _in(spark, mode):
        started = time.perf_counter()
        frame = spark.sql(sql)
        rows = frame.collect()
        seconds = time.perf_counter() - started
        plan: Any = frame._jdf.queryExecution()
        return _Answer(
            seconds=seconds,
            rows=rows,
            types=_planned_types(plan),
            reads_fact=_FACT_COLUMN in plan.optimizedPlan().toString(),
        )


def _planned_types(execution: Any) -> tuple[tuple[str, str], ...]:
    """Names and types of the plan that ran: the frame's own schema is older than any rewrite."""
    schema = StructType.fromJson(json.loads(execution.executedPlan().schema().json()))
    return tuple((field.name, field.dataType.simpleString()) for field in schema.fields)


def _run(number: int, query: SsbQuery, without: _Answer, with_hook: _Answer, hit: bool) -> Run:
    return Run(
        number=number,
        seconds_without=without.seconds,
        seconds_with=with_hook.seconds,
        rows=len(without.rows),
        rows_with=len(with_hook.rows),
        hit=hit,
        empty=is_empty(without.rows),
        differences=differences(query.order, without, with_hook),
    )


def is_empty(rows: Sequence[Row]) -> bool:
    """Whether a query selected nothing: no row, or the one NULL row of a sum over nothing.

    Args:
        rows: Its rows.

    Returns:
        Whether it is empty.
    """
    return not rows or (len(rows) == 1 and all(value is None for value in rows[0]))


def differences(order: Sequence[str], without: _Answer, with_hook: _Answer) -> tuple[str, ...]:
    """What differs in names, types, row count and order; `_row_differences` compares the rows.

    Args:
        order: The columns of the ORDER BY: rows that tie there may come in any order.
        without: The answer without the hook.
        with_hook: The answer with it.

    Returns:
        One text a difference.
    """
    found = []
    if without.types != with_hook.types:
        found.append(f"names and types: {without.types} against {with_hook.types}")
    if len(without.rows) != len(with_hook.rows):
        found.append(f"row count: {len(without.rows)} against {len(with_hook.rows)}")
    keys = [[tuple(row[key] for key in order) for row in a.rows] for a in (without, with_hook)]
    if keys[0] != keys[1]:
        found.append(f"order by {', '.join(order)}")
    return tuple(found)


def _row_differences(pairs: Sequence[tuple[_Answer, _Answer]]) -> tuple[str, ...]:
    """What one side has more often than the other, of the rows of all sets."""
    without, with_hook = (
        Counter((number, *row) for number, pair in enumerate(pairs) for row in pair[side].rows)
        for side in (0, 1)
    )
    return tuple(
        f"{label}: set {row[0] + 1}, {row[1:]}"
        for label, more in (
            ("only without the hook", without - with_hook),
            ("only with the hook", with_hook - without),
        )
        for row in islice(more.elements(), 3)
    )


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers.

    Args:
        values: The numbers.

    Returns:
        Their geometric mean, 0 if there is none or one is not positive.
    """
    if not values or min(values) <= 0:
        return 0.0
    return math.exp(sum(map(math.log, values)) / len(values))


def failures(results: Sequence[QueryResult], scale: float) -> tuple[str, ...]:
    """What makes the demo fail.

    Args:
        results: The queries' results.
        scale: The scale factor: below 1 a query may be empty.

    Returns:
        One text a failure, empty if the demo succeeds.
    """
    found = []
    for result in results:
        if result.error is not None:
            found.append(f"{result.name} failed: {result.error}")
            continue
        if not result.hit:
            missed = [str(run.number + 1) for run in result.runs if not run.hit]
            why = "; ".join(result.reasons) or "the plan that ran reads the fact table"
            found.append(f"{result.name} missed with set {', '.join(missed)}: {why}")
        for run in result.runs:
            found += [f"{result.name} set {run.number + 1} differs in {d}" for d in run.differences]
        found += [f"{result.name} differs: {text}" for text in result.differences]
        if scale >= 1 and 0 in result.empty_sets:  # a drawn set may select nothing
            found.append(f"{result.name} returned no row with the paper's parameters")
    return tuple(found)
