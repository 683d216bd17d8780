"""A process that refreshes one real cache over and over, on a Spark that it starts as a worker
does: what goes on beside the load. Writes `refreshed … s` after each."""

from __future__ import annotations

import sys
import time

from cachemgr.config.service_settings import ServiceSettings
from cachemgr.priority import lower_session
from cachemgr.spark.host import host_of


def main(url: str, folder: str) -> None:
    """Refresh until the process is killed.

    Args:
        url: The metastore.
        folder: Where the table and the cache lie.
    """
    settings = ServiceSettings(
        metastore_url=url,
        location=f"{folder}/refreshed",
        spark_master="local[1]",
        spark_conf={
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        },
    )
    lower_session(settings.spark_nice)
    spark = host_of(settings).spark()
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
