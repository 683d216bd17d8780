"""The Spark application of a service or worker process."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from cachemgr.results import ResultRows
from cachemgr.service_settings import ServiceSettings
from cachemgr.settings import PREFIX
from cachemgr.spark import api


class SparkHost:
    """Starts one Spark application when it is first needed, and carries our statements out on it.

    Args:
        master: The Spark master.
        metastore_url: The metastore of the process.
        location: Root folder of the caches.
        conf: More settings of the application; they win over ours.
        init: SQL statements to run when it has started.
    """

    def __init__(
        self,
        master: str,
        metastore_url: str,
        location: str,
        conf: Mapping[str, str],
        init: Sequence[str] = (),
    ) -> None:
        ours = {
            PREFIX + "metastore.url": metastore_url,
            PREFIX + "location": location,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # several refreshes share the application
            "spark.scheduler.mode": "FAIR",
        }
        self._master = master
        self._conf = {**ours, **conf}
        self._init = tuple(init)
        self._lock = threading.Lock()
        self._spark: SparkSession | None = None

    def spark(self) -> SparkSession:
        """The session; started by the first who asks, again if it was stopped."""
        with self._lock:
            if self._spark is None or self._spark.sparkContext._jsc is None:
                self._spark = self._started()
            return self._spark

    def execute(self, text: str, principal: str) -> ResultRows:
        """Carry one of our statements out; raises CacheManagerError."""
        return api.execute(self.spark(), text, principal)

    def stop(self) -> None:
        """End the application, if it was started."""
        with self._lock:
            if self._spark is not None:
                api.disable(self._spark)
                self._spark.stop()
                self._spark = None

    def _started(self) -> SparkSession:
        builder = SparkSession.builder.master(self._master).appName("relational-cache")
        for key, value in self._conf.items():
            builder = builder.config(key, value)
        spark = api.configure_spark_with_cachemgr(builder).getOrCreate()
        for statement in self._init:
            spark.sql(statement)
        api.enable(spark)
        return spark


def host_of(settings: ServiceSettings) -> SparkHost:
    """The application that the settings describe, not started yet."""
    return SparkHost(
        settings.spark_master,
        settings.metastore_url,
        settings.location,
        settings.spark_conf,
        settings.spark_init,
    )
