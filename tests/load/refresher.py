"""A process that refreshes one real cache over and over, on a Spark of its own: what goes on beside
the load. Writes `refreshed … s` after each."""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession

import cachemgr


def main(url: str, folder: str) -> None:
    """Refresh until the process is killed.

    Args:
        url: The metastore.
        folder: Where the table and the cache lie.
    """
    builder = SparkSession.builder.master("local[1]").appName("refreshes beside a load")
    for key, value in {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.cachemgr.metastore.url": url,
        "spark.cachemgr.location": f"{folder}/refreshed",
    }.items():
        builder = builder.config(key, value)
    spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
    cachemgr.enable(spark)
    spark.sql(f"CREATE TABLE facts (k INT, v BIGINT) USING delta LOCATION '{folder}/facts'")
    spark.sql("CREATE RELATIONAL CACHE kept AS SELECT k, SUM(v) AS s FROM facts GROUP BY k")
    while True:
        spark.sql("INSERT OVERWRITE facts SELECT id % 1000, id FROM range(200000)")
        began = time.perf_counter()
        spark.sql("REFRESH RELATIONAL CACHE kept FULL").collect()
        sys.stdout.write(f"refreshed {time.perf_counter() - began:.2f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
