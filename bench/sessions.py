"""A Spark session of two threads in this process, for what is measured by turns in one session."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import cachemgr

_SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(folder: Path, **more: str) -> SparkSession:
    """A session that can be enabled.

    Args:
        folder: For its warehouse, metastore and caches.
        more: More of its settings, dots as `__`.
    """
    settings = {
        **_SETTINGS,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.cachemgr.metastore.url": f"sqlite:///{folder / 'metastore.db'}",
        "spark.cachemgr.location": str(folder / "caches"),
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    builder = SparkSession.builder.master("local[2]").appName("relational-cache-bench")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
