"""Runs statements on the Spark application of a process: each in a session of its own, as its
principal, and nothing but what he may read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.config.result_settings import result_settings
from cachemgr.config.substitution import SUBSTITUTE
from cachemgr.errors import CacheManagerError, DefinitionError, ErrorCode
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.metastore.statement_records import StatementRecord
from cachemgr.metastore.store import Metastore
from cachemgr.results.folders import Folder, Results
from cachemgr.results.manifest import Manifest
from cachemgr.spark import api
from cachemgr.spark.host import SparkHost
from cachemgr.spark.results.rights import allowed_query
from cachemgr.spark.results.writer import WRITING, ResultWriter
from cachemgr.spark.spark_errors import code_and_line, innermost_code_and_line
from cachemgr.telemetry import logger
from cachemgr.worker.statements import Finished, Noted

_POOL: Final = "spark.scheduler.pool"
_GROUP: Final = "spark.jobGroup.id"


class StatementRunner:
    """The Spark half of statements.

    Args:
        host: The application.
        metastore: What principals may read.
        results: Where rows go.
    """

    def __init__(self, host: SparkHost, metastore: Metastore, results: Results) -> None:
        self._host = host
        self._metastore = metastore
        self._results = results

    def prepare(self) -> None:
        """Start Spark if it does not run yet."""
        # what it logs of a task that fails quotes values of rows
        self._host.spark().sparkContext.setLogLevel("OFF")

    def is_lost(self) -> bool:
        """Whether the JVM has ended by itself."""
        return self._host.lost()

    def interrupt(self, statement_id: str) -> None:
        """Cancel the jobs of a statement.

        Args:
            statement_id: Its id.
        """
        self._host.spark().sparkContext.cancelJobGroup(statement_id)

    def run(self, statement: StatementRecord, noted: Noted) -> Finished:
        """Run a statement whose lease is held.

        Args:
            statement: The statement.
            noted: Told how far it is.

        Raises:
            CacheManagerError: It may not run, or fails; Spark's own condition is the code.
        """
        try:
            with self._session(statement) as session:
                return self._run(session, statement, noted)
        except PySparkException as error:
            raise CacheManagerError(*code_and_line(error)) from error
        except Py4JJavaError as error:
            raise CacheManagerError(*innermost_code_and_line(error)) from error
        except Py4JError as error:
            raise CacheManagerError(
                ErrorCode.STATEMENT_FAILED, f"Spark failed: {_first_line(error)}"
            ) from error

    def _run(self, session: SparkSession, statement: StatementRecord, noted: Noted) -> Finished:
        context = session.sparkContext
        # Statements take turns at the processors, a task at a time, however many another has. Spark
        # forgets no pool: there is one for each thread that runs statements.
        context.setLocalProperty(_POOL, threading.current_thread().name)
        context.setJobGroup(statement.id, f"statement {statement.id}", interruptOnCancel=True)
        try:
            places = self._metastore.select_grants.of(statement.principal)
            allowed = allowed_query(session, statement.asked.text, places, statement.principal)
            noted.analysed(reads_only=True)
            run = statement.fencing_token
            folder = self._made(statement.id, run)
            manifest = ResultWriter(session).write(
                allowed.rows,
                folder,
                self._results.uri(statement.id, run),
                most_rows=statement.asked.options.get("maxRows"),
            )
            return Finished(_told(manifest, run, allowed.places), _hits(session, allowed.rows))
        finally:
            for key in (_POOL, _GROUP):
                context.setLocalProperty(key, None)  # type: ignore[arg-type]

    def _made(self, statement_id: str, run: int) -> Folder:
        try:
            return self._results.make(statement_id, run)
        except OSError as error:  # where that is, is for whoever runs the service
            logger.error("no result can be kept at %s: %s", self._results.location, error)
            raise CacheManagerError(
                ErrorCode.STORAGE_UNAVAILABLE,
                "no result can be kept at this moment: tell who runs the service, whose log says "
                "why",
            ) from None

    @contextmanager
    def _session(self, statement: StatementRecord) -> Iterator[SparkSession]:
        asked, spark = statement.asked, self._host.spark()
        session = spark.newSession()
        for key, value in result_settings(asked.settings).items():
            session.conf.set(key, value)
        session.conf.set(SUBSTITUTE, "false")
        for key, value in WRITING.items():
            session.conf.set(key, value)
        acting = java_class(session, "Acting")
        acting.begin(session_of(session), statement.principal)
        try:
            if asked.catalog is not None:
                session.catalog.setCurrentCatalog(asked.catalog)
            if asked.schema_name is not None:
                session.catalog.setCurrentDatabase(asked.schema_name)
        except PySparkException as error:
            acting.end(session_of(session))
            raise DefinitionError(
                ErrorCode.SCHEMA_NOT_FOUND,
                f"this service's Spark has no schema {_shown(asked.catalog, asked.schema_name)} to "
                "look names up in: correct the statement's catalog and schema",
            ) from error
        try:
            api.enable(session)
            yield session
        finally:
            api.disable(session)
            acting.end(session_of(session))


def _told(manifest: Manifest, run: int, places: frozenset[str]) -> dict[str, Any]:
    """What the readers of a result need before they open it."""
    return {
        "run": run,
        "rows": manifest.rows,
        "bytes": manifest.bytes,
        "files": len(manifest.files),
        "truncated": manifest.truncated,
        "ordered": manifest.ordered,
        "columns": [{"name": c.name, "type": c.type} for c in manifest.columns],
        "places": sorted(places),
    }


def _hits(session: SparkSession, rows: DataFrame) -> tuple[str, ...]:
    """The caches that answered it."""
    if not api.counters(session)["hits"]:
        return ()
    return tuple(api.explain(session, rows).caches)


def _shown(catalog: str | None, schema: str | None) -> str:
    return ".".join(filter(None, (catalog, schema)))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
