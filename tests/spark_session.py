"""The Spark session of the tests, with Delta and small numbers."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests import spark_start

# For tables of a dozen rows: to compile a query costs more than to run it.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@contextlib.contextmanager
def spark_session(settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A Spark session with Delta and small numbers, stopped at the end.

    Args:
        settings: More of the application's, or others.
    """
    from pyspark.sql import SparkSession

    folder = Path(tempfile.mkdtemp(prefix="cachemgr-spark-"))
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("cachemgr-tests")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog",
            "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        )
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        # Delta keeps some 3 MB for each table of the last hour, and each test has tables of its own
        .config("spark.databricks.delta.delta.log.cacheSize", "60")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config(
            "spark.driver.extraJavaOptions",
            # room for what a query leaves behind: it is gone before anybody has to look for it;
            # and nothing runs often enough for the second compiler to pay
            f"{spark_start.JVM} -XX:TieredStopAtLevel=1 -Xms1200m -Xmn600m "
            f"-Dderby.system.home={folder / 'derby'}",
        )
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        # Without it Delta 4.4.0 fails every spark.sql(text, args=…) on Spark 4.2.0.
        .config("spark.sql.legacy.parameterSubstitution.constantsOnly", "true")
    )
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    session = spark_start.with_delta(builder).getOrCreate()
    _interpret(session)
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _confs(spark: Any) -> tuple[Any, Any]:
    """What new sessions of the application begin with, where no builder's option says otherwise."""
    return spark._jsparkSession.sharedState().conf(), spark.sparkContext._jsc.sc().conf()


def _interpret(spark: Any) -> None:
    for key, value in INTERPRETED.items():
        spark.conf.set(key, value)
        for conf in _confs(spark):
            conf.set(key, value)


@contextlib.contextmanager
def compiled(spark: Any) -> Iterator[Any]:
    """A session whose queries are compiled, for tables of many rows; so are those of all sessions
    made meanwhile, as a refresh makes one of its own.
    """
    for conf in _confs(spark):
        for key in INTERPRETED:
            conf.remove(key)
    try:
        yield spark.newSession()
    finally:
        _interpret(spark)
