"""The Spark session of the demo, and the settings that it prints."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

import cachemgr
from cachemgr.metastore.migrate import upgrade

_SHOWN = (
    "spark.master",
    "spark.driver.memory",
    "spark.sql.shuffle.partitions",
    "spark.databricks.delta.snapshotPartitions",
    "spark.sql.adaptive.enabled",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
)
_MAX_DRIVER_GIB = 8
# The two largest sets that the queries read, of 4 and 5 million rows at scale 1, are held as well.
_LARGE_SETS = {
    "spark.cachemgr.pin.maxRowsPerSet": "6000000",
    "spark.cachemgr.pin.maxBytes": "2g",
    "spark.cachemgr.local.maxHeldBytes": "2g",
    "spark.cachemgr.local.maxRows": "400000",
}


def start_session(folder: Path) -> SparkSession:
    """Starts Spark with Delta and the hook enabled, on all cores of this machine.

    Args:
        folder: The run's folder; metastore, caches and warehouse go there.

    Returns:
        The session.
    """
    metastore = f"sqlite:///{folder / 'metastore.db'}"
    settings = {
        "spark.driver.memory": f"{_driver_gib()}g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.cachemgr.metastore.url": metastore,
        "spark.cachemgr.location": str(folder / "caches"),
    }
    if _driver_gib() == _MAX_DRIVER_GIB:
        settings |= _LARGE_SETS
    builder = SparkSession.builder.master("local[*]").appName("relational-cache-demo")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    upgrade(metastore)  # a new one is what is wanted here, and not worth a line
    cachemgr.enable(spark)
    return spark


def shown_settings(spark: SparkSession) -> tuple[tuple[str, str], ...]:
    """The settings that both sides of the comparison run under.

    Args:
        spark: The session.

    Returns:
        (key, value) pairs; the one setting that differs, `spark.cachemgr.mode`, is not among
        them, nor is what a driver of less memory leaves at its default.
    """
    pairs = [("Spark", spark.version)]
    pairs += [(key, str(spark.conf.get(key))) for key in _SHOWN]
    held = [(key, spark.conf.get(key, None)) for key in _LARGE_SETS]
    pairs += [(key, value) for key, value in held if value is not None]
    return tuple(pairs)


def _driver_gib() -> int:
    # Half of the machine: the other half is the page cache that both sides read through.
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        total = 8.0
    return max(1, min(_MAX_DRIVER_GIB, int(total / 2)))
