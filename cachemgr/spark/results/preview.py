"""The first rows of a query, which a grid shows before anybody asks for more."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.config.setting_names import PREFIX
from cachemgr.config.setting_table import setting
from cachemgr.jvm.loader import java_class

_MOST_JOBS: Final = 16


def first_rows(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Take the rows of a query that ends in a LIMIT, without a look at more of its partitions than
    they need.

    They are what `DataFrame.take` gives; it runs one job after the other, each over more
    partitions, and what collects rows as Arrow runs them all.

    Args:
        spark: The query's session.
        frame: The query.

    Returns:
        A query over the rows, if they were taken so; else the query as it is.

    Raises:
        ConfigurationError: A setting has a value that is not accepted.
        pyspark.errors.PySparkException: The query fails.
    """
    jobs = _value(spark, "preview.concurrentJobs") or spark.sparkContext.defaultParallelism
    growth = _value(spark, "preview.growth")
    preview = java_class(spark, "results.Preview")
    taken = preview.taken(frame._jdf, min(max(jobs, 1), _MOST_JOBS), growth)
    return frame if taken is None else DataFrame(taken, spark)


def _value(spark: SparkSession, name: str) -> Any:
    found = setting(PREFIX + name)
    return found.parse(spark.conf.get(found.key, found.default) or found.default)
