"""What is set in a Spark session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def explicit_settings(spark: SparkSession) -> dict[str, str]:
    """All settings explicitly set in a session, and its time zone.

    Args:
        spark: The session.
    """
    conf = spark._jsparkSession.sessionState().conf()
    jvm: Any = spark._jvm
    java_map = jvm.scala.jdk.javaapi.CollectionConverters.asJava(conf.getAllConfs())
    found = {str(k): str(java_map[k]) for k in java_map}
    found["spark.sql.session.timeZone"] = conf.sessionLocalTimeZone()
    return found
