"""Runs statements on the Spark application of a process: each in a session of its own, as its
principal, and nothing but what he may read and write."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.config.result_settings import result_settings
from cachemgr.config.substitution import SUBSTITUTE
from cachemgr.config.write_settings import write_settings
from cachemgr.delta.log import METADATA_KEY
from cachemgr.errors import CacheManagerError, DefinitionError, ErrorCode
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.metastore.statement_records import StatementRecord, commit_mark
from cachemgr.metastore.store import Metastore
from cachemgr.results.folders import Folder, Results
from cachemgr.results.manifest import Manifest
from cachemgr.spark import api
from cachemgr.spark.host import SparkHost
from cachemgr.spark.results.rights import Allowed, allowed_statement
from cachemgr.spark.results.targets import Targets, Write, commit_of
from cachemgr.spark.results.writer import WRITING, ResultWriter
from cachemgr.spark.spark_errors import code_and_line, innermost_code_and_line
from cachemgr.telemetry import logger
from cachemgr.worker.settling import without_rows
from cachemgr.worker.statements import Finished, Noted

_POOL: Final = "spark.scheduler.pool"
_GROUP: Final = "spark.jobGroup.id"
# Whatever the application has: a statement changes the rows of a table, and never its columns.
_NO_EVOLUTION: Final = "spark.databricks.delta.schema.autoMerge.enabled"


class StatementRunner:
    """The Spark half of statements.

    Args:
        host: The application.
        metastore: What principals may read.
        results: Where rows go.
        writers: The principals who may give statements that write.
        location: The folder that the caches' tables lie in.
    """

    def __init__(
        self,
        host: SparkHost,
        metastore: Metastore,
        results: Results,
        *,
        writers: Collection[str] = (),
        location: str = "",
    ) -> None:
        self._host = host
        self._metastore = metastore
        self._results = results
        self._writers = frozenset(writers)
        self._targets = Targets(location, self._cache_places)

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

    def written(self, statement_id: str, into: Mapping[str, Any]) -> int | None:
        """The version that a statement has made of what it writes to.

        Args:
            statement_id: Its id.
            into: What it writes to, as it was noted.

        Returns:
            None if it has made none, as far as the table's log goes.

        Raises:
            CacheManagerError: The log cannot be read, or does not tell any more.
        """
        mark = commit_mark(statement_id)
        try:
            return commit_of(self._host.spark(), into["place"], int(into["after"]), mark)
        except Py4JJavaError as error:
            raise CacheManagerError(*innermost_code_and_line(error)) from error
        except Py4JError as error:
            raise _unanswered(error) from error

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
            raise _unanswered(error) from error

    def _run(self, session: SparkSession, statement: StatementRecord, noted: Noted) -> Finished:
        context = session.sparkContext
        # Statements take turns at the processors, a task at a time, however many another has. Spark
        # forgets no pool: there is one for each thread that runs statements.
        context.setLocalProperty(_POOL, threading.current_thread().name)
        context.setJobGroup(statement.id, f"statement {statement.id}", interruptOnCancel=True)
        try:
            granted = self._metastore.select_grants.of(statement.principal)
            targets = self._targets if statement.principal in self._writers else None
            allowed = allowed_statement(
                session, statement.asked.text, granted, statement.principal, targets
            )
            if isinstance(allowed, Allowed):
                noted.analysed(reads_only=True)
                return self._read(session, statement, allowed)
            noted.analysed(reads_only=False)
            return self._write(session, statement, allowed, noted)
        finally:
            for key in (_POOL, _GROUP):
                context.setLocalProperty(key, None)  # type: ignore[arg-type]

    def _read(
        self, session: SparkSession, statement: StatementRecord, allowed: Allowed
    ) -> Finished:
        run = statement.fencing_token
        folder = self._made(statement.id, run)
        manifest = self._result(session, statement, allowed.rows, folder)
        return Finished(_told(manifest, run, allowed.places), _hits(session, allowed.rows))

    def _write(
        self, session: SparkSession, statement: StatementRecord, write: Write, noted: Noted
    ) -> Finished:
        run, table = statement.fencing_token, write.table
        into = {"table": table.name, "place": table.place, "after": table.version}
        into["places"] = sorted(write.places)
        folder = self._made(statement.id, run)  # what fails here fails before anything is written
        session.conf.set(METADATA_KEY, commit_mark(statement.id))
        noted.handed_over(into)
        rows = write.carried_out(session)
        session.conf.unset(METADATA_KEY)
        version = self.written(statement.id, into)
        if not rows.columns:  # of INSERT
            return Finished(without_rows(run, into, version))
        manifest = self._result(session, statement, rows, folder)
        told = _told(manifest, run, write.places)
        return Finished({**told, "table": table.name, "version": version})

    def _result(
        self, session: SparkSession, statement: StatementRecord, rows: DataFrame, folder: Folder
    ) -> Manifest:
        for key, value in WRITING.items():
            session.conf.set(key, value)
        most = statement.asked.options.get("maxRows")
        uri = self._results.uri(statement.id, statement.fencing_token)
        return ResultWriter(session).write(rows, folder, uri, most_rows=most)

    def _cache_places(self) -> Iterator[str]:
        caches = self._metastore.caches.all(include_dropped=True)
        return (cache.location for cache in caches)

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
        for key, value in write_settings(asked.settings).items():
            session.conf.set(key, value)
        session.conf.set(SUBSTITUTE, "false")
        session.conf.set(_NO_EVOLUTION, "false")
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


def _unanswered(error: Py4JError) -> CacheManagerError:
    """Spark has given no answer: of a connection that broke nobody knows what it does."""
    is_lost = isinstance(error, Py4JNetworkError)
    code = ErrorCode.SPARK_LOST if is_lost else ErrorCode.STATEMENT_FAILED
    return CacheManagerError(code, f"Spark failed: {_first_line(error)}")


def _shown(catalog: str | None, schema: str | None) -> str:
    return ".".join(filter(None, (catalog, schema)))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
