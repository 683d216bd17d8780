"""What the hook adds to queries of a real Spark session, and what a freshness check costs.

The rule measures itself: from its call by Spark's optimiser to its return, callback to Python
included. Tables are small, since only planning is looked at.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

import cachemgr
from bench.results import Figure, percentile
from bench.sessions import session
from cachemgr.delta.tables import current_versions, normalise_location
from cachemgr.spark import hook

_WARM, _REPEATS = 50, 400
_TABLES = 10


def run() -> list[Figure]:
    """All figures of this module."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder), spark__cachemgr__decisionLog__enabled="false")
        try:
            return _measure(spark, Path(folder))
        finally:
            cachemgr.disable(spark)
            spark.stop()


def _measure(spark: SparkSession, folder: Path) -> list[Figure]:
    for i in range(_TABLES):
        spark.sql(f"CREATE TABLE t{i} (k INT NOT NULL, g STRING, v BIGINT NOT NULL) USING delta")
        spark.sql(f"INSERT INTO t{i} SELECT id, concat('g', id % 10), id FROM range(1000)")
    cachemgr.enable(spark)
    for i in range(5):
        spark.sql(f"CREATE RELATIONAL CACHE c{i} AS SELECT g, SUM(v) AS s FROM t{i} GROUP BY g")
        spark.sql(f"REFRESH RELATIONAL CACHE c{i}")

    def plan(text: str) -> Callable[[int], None]:
        def action(i: int) -> None:
            spark.sql(text.format(i=i))._jdf.queryExecution().optimizedPlan()

        return action

    unknown = _rule_times(spark, plan("SELECT g, SUM(v) FROM t9 WHERE k > {i} GROUP BY g"), False)
    strange = _rule_times(spark, plan("SELECT g, MAX(v) FROM t0 WHERE v > {i} GROUP BY g"), True)
    sums = ", ".join(f"SUM(v + {n}) AS s{n}" for n in range(60))
    wide = _rule_times(spark, plan(f"SELECT g, {sums} FROM t0 WHERE v > {{i}} GROUP BY g"), True)
    hits = _rule_times(spark, plan("SELECT g, SUM(v) FROM t0 WHERE g > '{i}' GROUP BY g"), True)
    figures = [
        Figure("added to a query over no known table p50", percentile(unknown.own, 0.5), "ms"),
        Figure(
            "added to a query over no known table p99", percentile(unknown.own, 0.99), "ms", 1.0
        ),
        Figure("added to a query that cannot hit p50", percentile(strange.own, 0.5), "ms"),
        Figure("added to a query that cannot hit p99", percentile(strange.own, 0.99), "ms", 5.0),
        Figure(
            "added to a query that cannot hit p99, the JVM's collections in it",
            percentile(strange.all, 0.99),
            "ms",
        ),
        Figure("added to a query of 60 sums that cannot hit p50", percentile(wide.own, 0.5), "ms"),
        Figure("added to the planning of a hit p50", percentile(hits.own, 0.5), "ms"),
    ]
    places = [
        normalise_location(spark, str(folder / "warehouse" / f"t{i}")) for i in range(_TABLES)
    ]
    for count, budget in ((5, 10.0), (_TABLES, 20.0)):
        times = []
        for _ in range(_REPEATS):
            start = time.perf_counter()
            current_versions(spark, {place: place for place in places[:count]})
            times.append((time.perf_counter() - start) * 1e3)
        name = f"versions of {count} tables looked up p50"
        figures.append(Figure(name, percentile(times, 0.5), "ms", budget))
    return figures


@dataclass(frozen=True)
class _Times:
    """What the rule took, in milliseconds: of all queries, and of those in whose planning the JVM
    collected no garbage.

    Planning a query fills some 35 MB, so every twentieth is stopped for 10 ms or more wherever it
    is; what falls into the rule would have fallen elsewhere without it.
    """

    all: list[float]
    own: list[float]


def _rule_times(spark: SparkSession, action: Callable[[int], None], asked: bool) -> _Times:
    for i in range(_WARM):
        action(i)
    times = _Times([], [])
    for i in range(_REPEATS):
        before, collected = hook.measured(spark, asked=asked), _collections(spark)
        action(i)
        undisturbed = _collections(spark) == collected
        plans = hook.measured(spark, asked=asked) - before
        added = sum(hook.durations(spark, asked=asked, last=plans))
        times.all.append(added)
        if undisturbed:
            times.own.append(added)
    return times


def _collections(spark: SparkSession) -> int:
    jvm = spark._jvm
    beans = jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()  # type: ignore[union-attr]
    return sum(int(bean.getCollectionCount()) for bean in beans)
