"""What a user calls: enable, disable, is_enabled, explain; and our statements inside `spark.sql`.

`spark.sql` is wrapped once, on the class. The wrapper looks at the first words of a text and passes
everything that is not ours to Spark as it is; sessions that never enabled us are untouched.
"""

from __future__ import annotations

import atexit
import functools
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.config.session_settings import ENABLED, METASTORE_URL, Settings
from cachemgr.config.settings_told import refuse_late, setting_in, warn_of_unknown
from cachemgr.ddl import looks_like_ours, nearly_ours, parse
from cachemgr.ddl.names import hinted_name
from cachemgr.ddl.statements import CreateRelationalCache
from cachemgr.delta.hadoop_files import HadoopFiles
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.jvm.session_conf import explicit_settings
from cachemgr.serving.explain import Explanation
from cachemgr.serving.feed import release_feed
from cachemgr.serving.files_opened import FilesOpened
from cachemgr.serving.sources import MetastoreSource
from cachemgr.spark import failures, hook
from cachemgr.spark.application import Application
from cachemgr.spark.configure import configure_builder
from cachemgr.spark.connect import is_remote, see_served
from cachemgr.spark.definitions.what_if import answers_if_built
from cachemgr.spark.explaining import explain_query
from cachemgr.spark.files_opened import files_of
from cachemgr.spark.hints import expect_own_hints, install_dataframe_hint
from cachemgr.spark.result_frames import to_frame
from cachemgr.spark.session import CacheSession, known_locations
from cachemgr.spark.session_statements import statements_of
from cachemgr.spark.source_of import feed_of
from cachemgr.spark.texts import substituted
from cachemgr.statements.results import ResultRows
from cachemgr.telemetry import Telemetry, logger

# Long enough for a small registry, short enough that no first query waits for a large one.
_LOAD_PATIENCE_SECONDS = 0.5


@dataclass(frozen=True)
class Enabled:
    """A session that takes part. It holds no Spark session: one that is dropped without a
    `disable` is noticed, and goes."""

    session: CacheSession
    shared: bool


_enabled: dict[str, Enabled] = {}
_application: Application | None = None
_lock = threading.RLock()


def configure_spark_with_cachemgr(
    builder: SparkSession.Builder, extra_packages: Sequence[str] | None = None
) -> SparkSession.Builder:
    """Add Delta and what relational caches need to a session builder; what it holds is kept. Delta
    comes from Maven, unless its jar is named by the builder or in Spark's own folder.

    Args:
        builder: The builder, `spark.cachemgr.*` settings on it included. With
            `spark.cachemgr.enabled=true` its session is enabled as soon as it is made.
        extra_packages: More Maven coordinates; those in `spark.jars.packages` are kept as well.

    Returns:
        The same builder.

    Raises:
        ConfigurationError: The builder is one of Spark Connect.
    """
    return configure_builder(builder, extra_packages, lambda spark: _enable(spark, shared=True))


def enable(spark: SparkSession) -> None:
    """Answer the queries of this session from relational caches, and take our statements.

    Args:
        spark: A classic session. Enabling it again changes nothing. A Spark Connect session is
            answered by its server, which is only asked whether it does.

    Raises:
        ConfigurationError: A Spark Connect session whose server has no relational caches, or a
            setting that is not accepted.
        MetastoreError: The metastore cannot be opened; says what to do.
    """
    if is_remote(spark):
        see_served(spark)
        return
    _enable(spark, shared=False)


def serve_all(spark: SparkSession, fixed: Mapping[str, str], metastore_url: str) -> CacheSession:
    """What decides for all sessions of an application that other people use: a server's.

    Args:
        spark: A session of our own in that application.
        fixed: The application's own settings.
        metastore_url: The metastore, where no setting is to name it; else empty.

    Raises:
        ConfigurationError: A setting is not accepted.
        MetastoreError: The metastore cannot be opened; says what to do.
    """
    if metastore_url:
        fixed = {**fixed, METASTORE_URL: metastore_url}
    return _enable(spark, shared=False, fixed=fixed).session


def _enable(
    spark: SparkSession, *, shared: bool, fixed: Mapping[str, str] | None = None
) -> Enabled:
    key = _key(spark)
    with _lock:
        found = _enabled.get(key)
        if found is not None:
            return found
        explicit = explicit_settings(spark) | dict(fixed or {})
        settings = Settings.from_mapping(explicit)
        warn_of_unknown(explicit)
        feed = feed_of(settings, explicit)
        try:
            application = _application_of(spark)
            session = CacheSession(application, feed, Telemetry(), explicit, fixed)
            found = Enabled(session, shared)
            if fixed is None:
                hook.register(spark, session)
            if shared:
                hook.share(spark, session)
            if isinstance(feed.source, MetastoreSource):
                files = application.session
                feed.source.keep_journal(settings.location, lambda: HadoopFiles(files))
        except BaseException:
            release_feed(feed)
            raise
        if not settings.enabled:
            spark.conf.set(ENABLED, "true")
        _enabled[key] = found
        application.join(key, feed, settings, session.telemetry)
        ended = _forget_gone(spark)
        _wrap_sql()
        failures.watch(session.failed_on)
        install_dataframe_hint()
    for each in ended:
        each.close()
    feed.wait_loaded(_LOAD_PATIENCE_SECONDS)
    feed.listen(_push_locations)
    _push_locations()
    return found


def _application_of(spark: SparkSession) -> Application:
    global _application
    if _application is None or _application.context is not spark.sparkContext:
        _application = Application(spark)
        expect_own_hints(spark)
    return _application


def _forget_gone(spark: SparkSession) -> list[Application]:
    """Forget the sessions that were dropped, or whose application ended; see `_let_go`."""
    ended = []
    for key in hook.gone(spark):
        found = _enabled.pop(key, None)
        if found is None:
            continue
        if found.shared and not any(other.shared for other in _enabled.values()):
            hook.uninstall_shared(spark)
        ended += _let_go(key, found)
    return ended


def _let_go(key: str, found: Enabled) -> list[Application]:
    """Give back what a session used.

    Returns:
        The application, if this was its last session. To be closed by the caller without our lock:
        that waits for a pin that is being made.
    """
    global _application
    feed, application = found.session.feed, found.session.application
    failures.unwatch(found.session.failed_on)
    last = application.leave(key)
    if last and _application is application:
        _application = None
    if all(other.session.feed is not feed for other in _enabled.values()):
        feed.unlisten(_push_locations)
    release_feed(feed)
    return [application] if last else []


def disable(spark: SparkSession) -> None:
    """Leave the queries and statements of this session to Spark alone again.

    Args:
        spark: A session; one that was never enabled is left as it is.
    """
    key = _key(spark)
    with _lock:
        found = _enabled.pop(key, None)
        hook.uninstall(spark)
        if _asks(spark):
            # Set in the builder it would let the application's shared decider answer.
            spark.conf.set(ENABLED, "false")
        if found is None:
            return
        if found.shared:
            hook.uninstall_shared(spark)
        ended = _let_go(key, found)
    for each in ended:
        each.close()
    _push_locations()


def is_enabled(spark: SparkSession) -> bool:
    """Whether a session was enabled and not disabled since."""
    return _key(spark) in _enabled


def explain(spark: SparkSession, query: str | DataFrame, *, files: bool = False) -> Explanation:
    """Which cache would answer a query now, which grouping set, or why not. Runs no job.

    Args:
        spark: An enabled session.
        query: One SELECT, or a DataFrame.
        files: Also tell which files would be opened, with caches and without. The query is planned
            both ways for that, as Spark's EXPLAIN plans it: Delta looks for files by jobs.

    Raises:
        ConfigurationError: The session is not enabled.
        TypeError: The query is neither.
        pyspark.errors.AnalysisException: The query does not analyse.
    """
    if not isinstance(query, str | DataFrame):
        raise TypeError(f"a query is a text or a DataFrame, and not {type(query).__name__}")
    text = substituted(spark, query) if isinstance(query, str) else query
    return explain_query(spark, _of(spark).session, text, files=files)


def files_opened(frame: DataFrame) -> FilesOpened:
    """Which files a query has opened, of how many, and how dynamic pruning went.

    Args:
        frame: A DataFrame whose rows were asked for by `collect`, `toLocalIterator` or `toArrow`:
            PySpark makes another query of it for most other actions.
    """
    return files_of(frame)


def execute(spark: SparkSession, text: str, principal: str) -> ResultRows:
    """Carry out one of our statements for somebody.

    Args:
        spark: An enabled session.
        text: The statement.
        principal: Who asks.

    Returns:
        The rows that answer it.

    Raises:
        CacheManagerError: What is wrong, with what, and what to do.
    """
    statements = statements_of(spark, _of(spark).session)
    return statements.execute(parse(text), principal=principal)


def counters(spark: SparkSession) -> dict[str, int]:
    """Hits, misses, errors and reads of pinned sets of an enabled session since it was enabled.

    Of the `hits`, `fresh_hits` read rows that were appended to a base table since the cache's
    refresh; `tail_hits` of these from memory; `fresh_rows` is how many rows were read from files.
    `local_hits` were computed while they were planned, without a job; `prepared_hits` by what was
    decided on an earlier query of their shape, without asking again. `pin_hits` found their set
    in memory, `pin_misses` did not.
    """
    names = (
        *("hits", "misses", "errors", "local_hits", "prepared_hits", "fresh_hits", "tail_hits"),
        *("fresh_rows", "pin_hits", "pin_misses"),
    )
    none = dict.fromkeys(names, 0)
    session = _of(spark).session
    session.application.outcomes.settle()
    return {**none, **session.telemetry.counters()}


def would_answer(
    spark: SparkSession, create_text: str, queries: Iterable[str]
) -> tuple[Explanation, ...]:
    """Which of these queries an unbuilt cache would answer by itself, and why not the others.

    Nothing is stored. Freshness counts as given; declared joins and restricted tables as they
    stand.

    Args:
        spark: An enabled session.
        create_text: A CREATE RELATIONAL CACHE statement.
        queries: SELECTs.

    Returns:
        One explanation a query.

    Raises:
        CacheManagerError: The statement or its SELECT is not right.
    """
    session = _of(spark).session
    statement = parse(substituted(spark, create_text))
    if not isinstance(statement, CreateRelationalCache):
        raise ConfigurationError(
            ErrorCode.NOT_A_CREATE, "would_answer takes a CREATE RELATIONAL CACHE statement"
        )
    return answers_if_built(spark, session, statement, queries)


def _of(spark: SparkSession) -> Enabled:
    found = _enabled.get(_key(spark))
    if found is not None:
        return found
    if _asks(spark):
        return _enable(spark, shared=False)
    raise ConfigurationError(
        ErrorCode.NOT_ENABLED,
        "this session has no relational caches: call cachemgr.enable(spark) first",
    )


def _key(spark: SparkSession) -> str:
    if getattr(spark, "sql", None) is None:
        raise ConfigurationError(
            ErrorCode.INVALID_REQUEST,
            f"a SparkSession is needed, and this is {spark!r:.60}: give the session",
        )
    remote = not isinstance(spark, SparkSession) or getattr(spark, "_jsparkSession", None) is None
    if remote:
        raise ConfigurationError(
            ErrorCode.SPARK_CONNECT,
            f"{type(spark).__module__}.{type(spark).__name__} is a Spark Connect session, whose "
            "plans are made on the server: ask there, by EXPLAIN REWRITE SELECT … and SHOW "
            "RELATIONAL CACHES in spark.sql",
        )
    key: str = spark._jsparkSession.sessionUUID()
    return key


def _push_locations() -> None:
    """Tell Java which base tables are known to any session of this application."""
    with _lock:
        application = _application
        feeds = {id(e.session.feed): e.session.feed for e in _enabled.values()}
        if application is None or not feeds:
            return
        places = frozenset().union(*map(known_locations, feeds.values()))
        if places == application.known:
            return
        try:
            hook.set_known_locations(application.session, places)
            application.known = places
        except Exception as error:  # a stopped application must not end the feed's thread
            logger.debug("known tables were not told to Spark: %s", error)


def _wrap_sql() -> None:
    original = SparkSession.sql
    if getattr(original, "_cachemgr", False):
        return

    @functools.wraps(original)
    def sql(self: SparkSession, sqlQuery: str, *args: Any, **kwargs: Any) -> DataFrame:
        text = sqlQuery if isinstance(sqlQuery, str) else ""
        ours = looks_like_ours(text)
        setting = None if ours or "${" in text else setting_in(text)
        if not (ours or setting) or not _takes_part(self):
            try:
                return original(self, sqlQuery, *args, **kwargs)
            except AnalysisException as error:
                _note_what_was_meant(self, text, error)
                raise
        if setting is not None:
            # where it is set, not in each query after it
            Settings.from_mapping(dict([setting]))
            warn_of_unknown(dict([setting]), again=True)
            if is_enabled(self):
                refuse_late(*setting, self.conf.get(setting[0], None))
            return original(self, sqlQuery, *args, **kwargs)
        statement = parse(substituted(self, sqlQuery))
        return to_frame(self, statements_of(self, _of(self).session).execute(statement))

    sql._cachemgr = True  # type: ignore[attr-defined]
    SparkSession.sql = sql  # type: ignore[method-assign]


def _note_what_was_meant(spark: SparkSession, text: str, error: AnalysisException) -> None:
    no_table = error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    if not (no_table or isinstance(error, ParseException)) or not _takes_part(spark):
        return
    meant = nearly_ours(text)
    if meant is not None:
        error.add_note(f"did you mean {meant}?")
    elif no_table and is_enabled(spark):
        named = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
        known = _of(spark).session.feed.registry.spelled
        current = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
        cache = known(hinted_name(named, *current, known))
        if cache is not None:
            error.add_note(
                f"{cache} is a relational cache, and queries do not name caches: ask its base "
                f"tables (DESCRIBE RELATIONAL CACHE EXTENDED {cache} shows its definition)"
            )


def _takes_part(spark: SparkSession) -> bool:
    if getattr(spark, "_jsparkSession", None) is None:
        return False
    return is_enabled(spark) or _asks(spark)


def _asks(spark: SparkSession) -> bool:
    """Whether the session's own configuration asks for relational caches."""
    return str(spark.conf.get(ENABLED, "false")).strip().lower() == "true"


@atexit.register
def _close_all() -> None:
    with _lock:
        found = list(_enabled.values())
        _enabled.clear()
    for enabled in found:
        release_feed(enabled.session.feed)


__all__ = [
    "Explanation",
    "configure_spark_with_cachemgr",
    "counters",
    "disable",
    "enable",
    "explain",
    "is_enabled",
    "would_answer",
]
