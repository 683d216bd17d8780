"""Which files queries of a session open: as they would be planned, or as they have run."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cachemgr.jvm.loader import java_class, session_of
from cachemgr.serving.files_opened import FilesOpened
from cachemgr.spark.hook import Decider, proxy


def files_planned(spark: SparkSession, plan: Any, decider: Decider | None) -> FilesOpened:
    """Which files a query would open, of how many. It is planned, and the plan thrown away; nothing
    is counted.

    Args:
        spark: The session whose settings hold.
        plan: The JVM's analysed plan, Spark's own kept data in its place; it stays as it is.
        decider: What is asked for caches; None to use none.
    """
    asked = None if decider is None else proxy(spark, decider)
    found = java_class(spark, "Hook").files(session_of(spark), plan, asked)
    return FilesOpened.of(json.loads(found))


def files_of(frame: DataFrame) -> FilesOpened:
    """Which files a query has opened that was run, as its scans say.

    Args:
        frame: The query.
    """
    found = java_class(frame.sparkSession, "Hook").filesOf(frame._jdf)
    return FilesOpened.of(json.loads(found))
