"""The Spark application of a service or worker process."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from cachemgr.errors import SPARK_LOST, RefreshError
from cachemgr.results import ResultRows
from cachemgr.service_settings import ServiceSettings
from cachemgr.settings import PREFIX
from cachemgr.spark import api
from cachemgr.spark.alive import jvm_is_gone
from cachemgr.telemetry import logger


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
        self._over = False

    def spark(self) -> SparkSession:
        """The session; started by the first who asks, again if its cluster gave up on it.

        Raises:
            RefreshError: The process stops, or its JVM has ended.
        """
        with self._lock:
            if self._over or self.lost():
                raise RefreshError(SPARK_LOST, "the Spark of this process has ended: ask another")
            if self._spark is not None and _is_stopped(self._spark):
                logger.warning("Spark stopped, and is started again")
                self._end()
            if self._spark is None:
                self._spark = self._started()
            return self._spark

    def lost(self) -> bool:
        """True if the JVM has ended by itself: this process cannot start another."""
        spark = self._spark
        return spark is not None and not self._over and jvm_is_gone(spark)

    def execute(self, text: str, principal: str) -> ResultRows:
        """Carry one of our statements out; raises CacheManagerError."""
        return api.execute(self.spark(), text, principal)

    def stop(self) -> None:
        """End the application, if it was started; it is not started again."""
        with self._lock:
            gone = self.lost()
            self._over = True
            if self._spark is not None and not gone:
                self._end()

    def _end(self) -> None:
        assert self._spark is not None
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


def _is_stopped(spark: SparkSession) -> bool:
    context: Any = spark.sparkContext._jsc
    return context is None or bool(context.sc().isStopped())
