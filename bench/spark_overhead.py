"""What the hook adds to queries of a real Spark session, and what a freshness check costs.

The rule measures itself: from its call by Spark's optimiser to its return, callback to Python
included. Tables are small, since only planning is looked at.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import cachemgr
from bench.results import Figure, percentile
from cachemgr.spark import hook
from cachemgr.spark.tables import current_versions, normalise_location

_WARM, _REPEATS = 50, 200
_TABLES = 10


def run() -> list[Figure]:
    """All figures of this module."""
    with tempfile.TemporaryDirectory() as folder:
        spark = _session(Path(folder))
        try:
            return _measure(spark, Path(folder))
        finally:
            cachemgr.disable(spark)
            spark.stop()


def _session(folder: Path) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName("relational-cache-bench")
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.cachemgr.metastore.url": f"sqlite:///{folder / 'metastore.db'}",
        "spark.cachemgr.location": str(folder / "caches"),
        "spark.cachemgr.decisionLog.enabled": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


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
    hits = _rule_times(spark, plan("SELECT g, SUM(v) FROM t0 WHERE g > '{i}' GROUP BY g"), True)
    figures = [
        Figure("added to a query over no known table p50", percentile(unknown, 0.5), "ms"),
        Figure("added to a query over no known table p99", percentile(unknown, 0.99), "ms", 1.0),
        Figure("added to a query that cannot hit p99", percentile(strange, 0.99), "ms", 5.0),
        Figure("added to the planning of a hit p50", percentile(hits, 0.5), "ms"),
    ]
    places = [
        normalise_location(spark, str(folder / "warehouse" / f"t{i}")) for i in range(_TABLES)
    ]
    for count, budget in ((5, 10.0), (_TABLES, 20.0)):
        times = []
        for _ in range(_REPEATS):
            start = time.perf_counter()
            current_versions(spark, places[:count])
            times.append((time.perf_counter() - start) * 1e3)
        name = f"versions of {count} tables looked up p50"
        figures.append(Figure(name, percentile(times, 0.5), "ms", budget))
    return figures


def _rule_times(spark: SparkSession, action: Callable[[int], None], asked: bool) -> list[float]:
    for i in range(_WARM):
        action(i)
    before = len(hook.durations(spark, asked=asked))
    for i in range(_REPEATS):
        action(i)
    found = hook.durations(spark, asked=asked)
    # The last ones are at the end as long as the ring has not come round.
    return list(found[before:] if len(found) < 1024 else found)
