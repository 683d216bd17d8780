"""What `cachemgr doctor` asks of a running Spark."""

from __future__ import annotations

import uuid

from pyspark.sql import SparkSession

from cachemgr.delta.places import absolute_location
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.jvm.classes import HADOOP_PATH, class_on_path


def spark(session: SparkSession) -> str:
    """Whether the application runs jobs on its executors."""
    count = session.range(1000).repartition(4).count()
    if count != 1000:
        raise ConfigurationError(ErrorCode.SPARK_COUNTS_WRONG, f"1000 rows were counted as {count}")
    return f"Spark {session.version} on {session.sparkContext.master}"


def settings_of(session: SparkSession) -> dict[str, str]:
    """The application's settings, those of Spark's own files among them."""
    return dict(session.sparkContext.getConf().getAll())


def delta(session: SparkSession, location: str) -> str:
    """Whether executors write a Delta table under the root, and an old version can be read."""
    place = f"{absolute_location(location)}/_relational_caches/doctor-{uuid.uuid4().hex}"
    path = class_on_path(session._jvm, HADOOP_PATH)(place)
    system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    try:
        for rows in (3, 4):
            session.range(rows).write.format("delta").mode("overwrite").save(place)
        reader = session.read.format("delta")
        old = reader.option("versionAsOf", 0).load(place).count()
        new = reader.option("versionAsOf", 1).load(place).count()
    finally:
        system.delete(path, True)
    if (old, new) != (3, 4):
        raise ConfigurationError(
            ErrorCode.DELTA_READS_WRONG, f"3 and 4 rows were written, {old} and {new} were read"
        )
    return f"written and read under {absolute_location(location)}"
