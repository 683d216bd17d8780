"""The Spark application of a service or worker process."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cachemgr.causes import cause_of
from cachemgr.config.service_settings import ServiceSettings
from cachemgr.config.setting_names import PREFIX
from cachemgr.config.substitution import SUBSTITUTE, refuse_substitution
from cachemgr.ddl import parse
from cachemgr.ddl.statements import CreateRelationalCache, ExplainCreate
from cachemgr.delta.own_session import session_under
from cachemgr.delta.places import absolute_location, is_inside, storage_place
from cachemgr.errors import DefinitionError, ErrorCode, RefreshError
from cachemgr.jvm.alive import is_stopped, jvm_is_gone
from cachemgr.jvm.runtime import NoJavaError
from cachemgr.metastore.records import CacheRecord, SnapshotRecord
from cachemgr.priority import with_priority
from cachemgr.refresh.stored_values import stored_values
from cachemgr.secrets import masked
from cachemgr.spark import api
from cachemgr.spark.process.failed_start import FailedStart
from cachemgr.spark.scratch import Scratch, roots_of, scratch, sweep
from cachemgr.spark.spark_errors import without_traces
from cachemgr.statements.apply import Context
from cachemgr.statements.layouts import StoredValues
from cachemgr.statements.results import ResultRows
from cachemgr.telemetry import logger
from cachemgr.vocabulary import SparkState

_LOGS: Final = "spark.databricks.delta.delta.log.cacheSize"
# What Delta 4.4.0 keeps for an hour of a table that a query read, however few its files are.
_LOG_BYTES: Final = 3_300_000
_FEWEST_LOGS: Final = 50
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"


class SparkHost:
    """Starts one Spark application when it is first needed, and carries our statements out on it.

    Args:
        master: The Spark master.
        metastore_url: The metastore of the process.
        location: Root folder of the caches.
        conf: More settings of the application; they win over ours.
        init: SQL statements to run when it has started.
        roots: More folders that a LOCATION may lie in.
        nice: How much lower than this process's the priority of its JVM is (0 to 19).
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        master: str,
        metastore_url: str,
        location: str,
        conf: Mapping[str, str],
        init: Sequence[str] = (),
        nice: int = 0,
        roots: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
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
        self._nice = nice
        self._roots = tuple(absolute_location(root) for root in (location, *roots))
        self._lock = threading.Lock()
        self._spark: SparkSession | None = None
        self._over = False
        self._starting = False
        self._failed: FailedStart | None = None
        self._clock = clock
        self._scratch: Scratch | None = None

    @property
    def state(self) -> SparkState:
        """Where its Spark is; waits for nothing."""
        if self._starting:
            return "starting"
        if self._spark is None:
            return "failed" if self._failed else "notStarted"
        return "ended" if self._over or self.lost() else "running"

    @property
    def trouble(self) -> str | None:
        """Why the last start failed and when the next one is, without a word of any statement; None
        if it did not. Waits for nothing."""
        failed = self._failed
        return None if failed is None else failed.readiness(self._clock())

    def spark(self) -> SparkSession:
        """The session; started by the first who asks, again if its cluster gave up on it.

        Raises:
            RefreshError: The process stops, its JVM has ended, or Spark does not start. After a
                start that failed nothing is tried for a while, and the same is said again.
        """
        with self._lock:
            if self._over or self.lost():
                raise RefreshError(
                    ErrorCode.SPARK_LOST, "the Spark of this process has ended: ask another"
                )
            if self._spark is not None and is_stopped(self._spark.sparkContext):
                logger.warning("Spark stopped, and is started again")
                self._end()
            if self._spark is None:
                failed = self._failed
                if failed is not None and failed.seconds_left(self._clock()) > 0:
                    raise self._not_started(failed)
                self._spark = self._started()
            return self._spark

    def _not_started(self, failed: FailedStart) -> RefreshError:
        return RefreshError(ErrorCode.SPARK_NOT_STARTED, failed.message(self._clock()))

    def lost(self) -> bool:
        """True if the JVM has ended by itself: this process cannot start another."""
        spark = self._spark
        return spark is not None and not self._over and jvm_is_gone(spark)

    def plain(self) -> SparkSession:
        """The session, where nothing but its storage is wanted: the metastore may be gone."""
        with self._lock:
            if self._spark is None:
                self._spark = self._created()
            return self._spark

    def initialised(self) -> str:
        """Carry `spark_init` out where nothing else is wanted.

        Raises:
            RefreshError: Names the statement that fails.
        """
        self._initialise(self.plain())
        return f"{len(self._init)} statements"

    def execute(self, text: str, principal: str) -> ResultRows:
        """Carry one of our statements out; raises CacheManagerError."""
        self._refuse(text)
        return api.execute(self.spark(), text, principal)

    def stored_values(
        self, cache: CacheRecord, published: SnapshotRecord, columns: Sequence[str]
    ) -> StoredValues:
        """What a cache's table holds; see `refresh.stored_values`."""
        return stored_values(self.spark(), cache, published, columns)

    def execute_in(self, text: str, principal: str, context: Context) -> ResultRows:
        """Carry one of our statements out in a session of its own.

        Args:
            text: The statement.
            principal: Who asks.
            context: Its current catalog and schema, and its `spark.sql.*` settings (None for the
                application's).

        Raises:
            CacheManagerError: The statement fails, or the schema or a setting cannot be had.
        """
        self._refuse(text)
        spark = self.spark()
        session = (
            spark.newSession()
            if context.settings is None
            else session_under(spark, context.settings)
        )
        session.conf.set(SUBSTITUTE, "false")
        try:
            session.catalog.setCurrentCatalog(context.catalog)
            session.catalog.setCurrentDatabase(context.schema)
        except PySparkException as error:
            raise DefinitionError(
                ErrorCode.SCHEMA_NOT_FOUND,
                f"this service's Spark has no schema {context.catalog}.{context.schema} to look "
                "names up in: create it there, or correct the definition's catalog and schema",
            ) from error
        api.enable(session)
        try:
            return api.execute(session, text, principal)
        finally:
            api.disable(session)

    def _refuse(self, text: str) -> None:
        """What comes through a door is not substituted, and writes below the roots alone."""
        refuse_substitution(text, "the statement")
        statement = parse(text)
        create = statement.statement if isinstance(statement, ExplainCreate) else statement
        if not isinstance(create, CreateRelationalCache) or create.spec.location is None:
            return
        what = f"LOCATION of cache {create.name}"
        place = storage_place(create.spec.location, what)
        roots = [storage_place(root, "the service's location") for root in self._roots]
        if not any(is_inside(place, root) for root in roots):
            raise DefinitionError(
                ErrorCode.PLACE_NOT_ALLOWED,
                f"{what}: {place} lies outside of the folders that this service writes to: choose "
                "one inside of them, or name it in the service's setting `locations`",
            )

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

    def _builder(self) -> SparkSession.Builder:
        builder = SparkSession.builder.master(self._master).appName("relational-cache")
        for key, value in self._conf.items():
            builder = builder.config(key, value)
        return api.configure_spark_with_cachemgr(builder)

    def _created(self) -> SparkSession:
        # a start after one that failed is told by its own failure alone
        level = logging.INFO if self._failed is None else logging.DEBUG
        logger.log(level, "Spark starts; it takes 10 to 20 s on a quiet machine")
        began = time.monotonic()
        without_traces()
        self._starting = True
        roots = roots_of(self._conf)
        sweep(roots)
        self._scratch = self._scratch or scratch(roots)
        try:
            with nullcontext() if self._scratch is None else self._scratch.told():
                spark = with_priority(self._nice, lambda: self._builder().getOrCreate())
        finally:
            self._starting = False
        jvm: Any = spark._jvm
        if self._scratch is not None:
            self._scratch.hold(jvm)
        _bound_logs(spark, jvm)
        logger.log(level, "Spark runs after %.0f s", time.monotonic() - began)
        return spark

    def _started(self) -> SparkSession:
        spark: SparkSession | None = None
        try:
            spark = self._created()
            self._initialise(spark)
            # what follows comes through doors
            spark.conf.set(SUBSTITUTE, "false")
        except (PySparkException, Py4JError, InitError, NoJavaError) as error:
            self._failed = failed = self._failure(error)
            wait = f"{failed.wait_seconds:.0f} s"
            logger.error("Spark does not start: %s; tried again in %s", failed.cause, wait)
            if spark is not None:  # the next start has to carry all of it out, on nothing
                with suppress(Exception):
                    spark.stop()
            raise self._not_started(failed) from error
        api.enable(spark)
        if self._failed is not None:
            logger.info("Spark runs, after %d starts that failed", self._failed.failures)
        self._failed = None
        return spark

    def _failure(self, error: Exception) -> FailedStart:
        failures = 1 if self._failed is None else self._failed.failures + 1
        now = self._clock()
        if isinstance(error, InitError):
            return FailedStart(failures, error.message, error.public, now)
        if isinstance(error, NoJavaError):
            return FailedStart(failures, error.message, error.code, now)
        public = _condition(error) or "see there"
        return FailedStart(failures, cause_of(error)[:300], public, now)

    def _initialise(self, spark: SparkSession) -> None:
        for number, statement in enumerate(self._init, 1):
            try:
                spark.sql(statement)
            except (PySparkException, Py4JError) as error:
                shown = masked(" ".join(statement.split()))[:200]
                what = f"statement {number} of the setting spark_init"
                raise InitError(
                    f"{what}, `{shown}`, fails: {cause_of(error)[:300]}",
                    f"{what} fails{_in_brackets(_condition(error))}",
                ) from error


class InitError(RefreshError):
    """A statement of `spark_init` fails.

    Args:
        message: Names the statement and the cause.
        public: The same without the statement.
    """

    def __init__(self, message: str, public: str) -> None:
        super().__init__(ErrorCode.SPARK_NOT_STARTED, message)
        self.public = public


def _condition(error: Exception) -> str:
    """Spark's word for an error, which quotes nothing; empty if it has none."""
    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _bound_logs(spark: SparkSession, jvm: Any) -> None:
    """Let what Delta keeps of tables' logs take half of the heap at most, unless a setting says
    something else: with its own 10,000 tables a process of many caches would run out of memory."""
    if spark.conf.get(_LOGS, None) is None:
        heap = jvm.java.lang.Runtime.getRuntime().maxMemory()
        logs = str(max(_FEWEST_LOGS, heap // 2 // _LOG_BYTES))
        # Delta asks the session that comes first, which may be any one
        for conf in (spark.conf, spark._jsparkSession.sharedState().conf()):
            conf.set(_LOGS, logs)


def host_of(settings: ServiceSettings) -> SparkHost:
    """The application that the settings describe, not started yet."""
    return SparkHost(
        settings.spark_master,
        settings.metastore_url,
        settings.location,
        settings.spark_conf,
        settings.spark_init,
        settings.spark_nice,
        settings.locations,
    )


def host_of_statements(settings: ServiceSettings) -> SparkHost:
    """The same for the process that runs statements: what it writes is for nobody else, and one
    that is out of memory ends at once and does not go on with half of its threads."""
    options = settings.spark_conf.get(_JAVA_OPTIONS, "")
    ours = {
        _JAVA_OPTIONS: f"{options} -XX:+ExitOnOutOfMemoryError".strip(),
        "spark.hadoop.fs.permissions.umask-mode": "077",
    }
    conf = {**settings.spark_conf, **ours}
    return host_of(settings.model_copy(update={"spark_conf": conf}))
