"""What is set in a Spark session."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import RDD
from pyspark.sql import SparkSession

from cachemgr.jvm.loader import java_class, session_of

_rebinding = threading.Lock()


@contextmanager
def unnoticed() -> Iterator[None]:
    """Make a Python session of ours inside: each new SparkSession object makes itself the one that
    the user's `rdd.toDF()` uses, and ours must not."""
    with _rebinding:
        before = RDD.__dict__.get("toDF")
        try:
            yield
        finally:
            if before is not None:
                RDD.toDF = before  # type: ignore[method-assign]


def explicit_settings(spark: SparkSession) -> dict[str, str]:
    """The settings of Spark's SQL, Delta and ours (`spark.sql.*`, `spark.databricks.delta.*`,
    `spark.cachemgr.*`), and of Hadoop's those of Parquet's reader, that are explicitly set in a
    session, its time zone, and `spark.sql.ansi.enabled` where it is false, whatever made it so.

    Args:
        spark: The session.
    """
    found: dict[str, str] = json.loads(java_class(spark, "Hook").settings(session_of(spark)))
    return found
