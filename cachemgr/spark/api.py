"""What a user calls: enable, disable, is_enabled, explain; and our statements inside `spark.sql`.

`spark.sql` is wrapped once, on the class. The wrapper looks at the first words of a text and passes
everything that is not ours to Spark as it is; sessions that never enabled us are untouched.
"""

from __future__ import annotations

import atexit
import functools
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from cachemgr.access import keys_of
from cachemgr.ddl import looks_like_ours, parse
from cachemgr.ddl.statements import CreateRelationalCache, Statement
from cachemgr.errors import ConfigurationError
from cachemgr.metastore import Metastore
from cachemgr.metastore.records import Freshness, JoinState
from cachemgr.results import ResultRows
from cachemgr.service import CacheService, utc_now
from cachemgr.settings import PREFIX, Settings, unknown_keys
from cachemgr.spark import hook
from cachemgr.spark.analysis import analyse_definition
from cachemgr.spark.conf import explicit_settings
from cachemgr.spark.configure import configure_builder
from cachemgr.spark.decider import examine, match_options
from cachemgr.spark.eligibility import Checks, QueryState
from cachemgr.spark.engine import SparkEngine
from cachemgr.spark.explain import Explanation, explanation_of
from cachemgr.spark.feed import acquire_feed_of, release_feed
from cachemgr.spark.following import source_of
from cachemgr.spark.frames import to_frame
from cachemgr.spark.freshness import by_location
from cachemgr.spark.hadoop_files import HadoopFiles
from cachemgr.spark.hints import Hints, install_dataframe_hint, read_hints
from cachemgr.spark.plans import CapturedPlan, capture_query
from cachemgr.spark.remote_statements import RemoteStatements
from cachemgr.spark.served import ServedCache
from cachemgr.spark.session import CacheSession
from cachemgr.spark.sources import MetastoreSource
from cachemgr.telemetry import Telemetry, logger
from matcher.from_spark_templates import PlanDocument
from matcher.ir import CachePlan, RecordPreservingJoin
from matcher.registry import Registry

_ENABLED = PREFIX + "enabled"
# Long enough for a small registry, short enough that no first query waits for a large one.
_LOAD_PATIENCE_SECONDS = 0.5


@dataclass(frozen=True)
class Enabled:
    """A session that takes part."""

    session: CacheSession
    statements: Statements
    shared: bool


class Statements(Protocol):
    """What carries our statements out for a session."""

    def execute(self, statement: Statement, *, principal: str | None = None) -> ResultRows:
        """Carry a statement out; raises CacheManagerError."""
        ...


_enabled: dict[str, Enabled] = {}
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
        spark: A classic session. Enabling it again changes nothing.

    Raises:
        ConfigurationError: A Spark Connect session, or a setting that is not accepted.
        MetastoreError: The metastore cannot be opened; says what to do.
    """
    _enable(spark, shared=False)


def _enable(spark: SparkSession, *, shared: bool) -> Enabled:
    key = _key(spark)
    with _lock:
        found = _enabled.get(key)
        if found is not None:
            return found
        explicit = explicit_settings(spark)
        settings = Settings.from_mapping(explicit)
        for unknown in unknown_keys(explicit):
            logger.warning("%s is no setting of relational caches, most likely misspelt", unknown)
        feed = acquire_feed_of(source_of(settings, explicit))
        session = CacheSession(spark, feed, Telemetry(), settings.pin_max_bytes)
        found = Enabled(session, _statements(session), shared)
        try:
            hook.install(spark, session)
            if shared:
                hook.install_shared(spark, session)
            if isinstance(feed.source, MetastoreSource):
                feed.source.keep_journal(settings.location, lambda: HadoopFiles(spark))
        except BaseException:
            session.close()
            release_feed(feed)
            raise
        if not settings.enabled:
            spark.conf.set(_ENABLED, "true")
        _enabled[key] = found
        _wrap_sql()
        install_dataframe_hint()
    feed.wait_loaded(_LOAD_PATIENCE_SECONDS)
    feed.listen(_push_locations)
    _push_locations()
    return found


def _statements(session: CacheSession) -> Statements:
    source = session.feed.source
    if not isinstance(source, MetastoreSource):
        return RemoteStatements(source.name, lambda text: _explain(session, text))
    return CacheService(
        source.metastore,
        _engine(session, source.metastore),
        lambda: session.settings(explicit_settings(session.spark)),
        changed=session.feed.sync,
    )


def _engine(session: CacheSession, metastore: Metastore) -> SparkEngine:
    return SparkEngine(session, metastore, lambda text: _explain(session, text), utc_now)


def _plan_of(session: CacheSession, statement: CreateRelationalCache) -> CachePlan:
    name, source = str(statement.name), session.feed.source
    if isinstance(source, MetastoreSource):
        return _engine(session, source.metastore).define(name, statement.select).plan
    return analyse_definition(session.spark, name, statement.select).plan


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
            spark.conf.set(_ENABLED, "false")
        if found is None:
            return
        if found.shared:
            hook.uninstall_shared(spark)
        found.session.close()
        feed = found.session.feed
        if all(other.session.feed is not feed for other in _enabled.values()):
            feed.unlisten(_push_locations)
    release_feed(feed)
    _push_locations()


def is_enabled(spark: SparkSession) -> bool:
    """Whether a session was enabled and not disabled since."""
    return _key(spark) in _enabled


def explain(spark: SparkSession, query: str | DataFrame) -> Explanation:
    """Which cache would answer a query now, which grouping set, or why not. Runs no job.

    Args:
        spark: An enabled session.
        query: One SELECT, or a DataFrame.

    Raises:
        ConfigurationError: The session is not enabled.
        pyspark.errors.AnalysisException: The query does not analyse.
    """
    return _explain(_of(spark).session, query)


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
    return _of(spark).statements.execute(parse(text), principal=principal)


def counters(spark: SparkSession) -> dict[str, int]:
    """Hits, misses, errors and pins of an enabled session since it was enabled."""
    return dict(_of(spark).session.telemetry.counters())


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
    statement = parse(create_text)
    if not isinstance(statement, CreateRelationalCache):
        raise ConfigurationError(
            "NOT_A_CREATE", "would_answer takes a CREATE RELATIONAL CACHE statement"
        )
    unbuilt = _plan_of(session, statement)
    explicit = explicit_settings(spark)
    settings = session.settings(explicit)
    fingerprint = session.comparer.fingerprint(explicit)
    places = {relation.key for relation in unbuilt.relations}
    joins = tuple(
        RecordPreservingJoin(
            j.name, j.left.location, j.right.location, j.keys, j.state is JoinState.VALID
        )
        for j in session.feed.joins()
        if j.state is not JoinState.BROKEN and {j.left.location, j.right.location} <= places
    )
    plan = replace(unbuilt, joins=joins)
    registry = Registry()
    registry.put(plan)
    explanations = []
    for text in queries:
        captured = capture_query(spark, text)
        seen = by_location(captured.tables)
        cache = ServedCache(
            id="",
            name=plan.name,
            plan=plan,
            location="",
            version=0,
            snapshot={place: tables[0].state for place, tables in seen.items()},
            freshness=Freshness.UNLIMITED,
            max_staleness_seconds=None,
            rewrite_enabled=True,
            settings=fingerprint,
            principals=None,
            unvalidated=frozenset(),
            reads=frozenset().union(*map(keys_of, places)),
        )
        checks = Checks(
            {plan.name: cache}.get, session.comparer, session.histories, session.feed.restricted
        )
        query = QueryState(seen, fingerprint, session.principal, 0, 0)
        options = match_options(settings, explicit)
        found = examine(
            PlanDocument(captured.document), registry, checks, query, options, explain=True
        )
        explanations.append(explanation_of(found, {plan.name: plan}))
    return tuple(explanations)


def _explain(session: CacheSession, query: str | DataFrame) -> Explanation:
    with hook.suspended(session.spark):
        captured: CapturedPlan = capture_query(session.spark, query)
    hints = read_hints([query]) if isinstance(query, str) else Hints()
    context = session.context_of(captured.tables, hints)
    settings = session.settings(context.settings)
    found = session.examine(PlanDocument(captured.document), context, settings, explain=True)
    plans = {hit.cache.name: hit.cache.plan for hit in found.hits}
    unvalidated = {name for hit in found.hits for name in hit.cache.unvalidated}
    return explanation_of(found, plans, unvalidated)


def _of(spark: SparkSession) -> Enabled:
    found = _enabled.get(_key(spark))
    if found is not None:
        return found
    if _asks(spark):
        return _enable(spark, shared=False)
    raise ConfigurationError(
        "NOT_ENABLED", "this session has no relational caches: call cachemgr.enable(spark) first"
    )


def _key(spark: SparkSession) -> str:
    remote = not isinstance(spark, SparkSession) or getattr(spark, "_jsparkSession", None) is None
    if remote:
        raise ConfigurationError(
            "SPARK_CONNECT",
            f"{type(spark).__module__}.{type(spark).__name__} is a Spark Connect session, whose "
            "plans are made on the server: enable relational caches in the server's own session",
        )
    key: str = spark._jsparkSession.sessionUUID()
    return key


def _push_locations() -> None:
    """Tell Java which base tables are known to any session of this application."""
    with _lock:
        found = list(_enabled.values())
    places = frozenset(p for e in found for p in e.session.known_locations())
    for enabled in found:
        try:
            hook.set_known_locations(enabled.session.spark, places)
            return
        except Exception as error:  # a stopped application must not end the feed's thread
            logger.debug("known tables were not told to Spark: %s", error)


def _wrap_sql() -> None:
    original = SparkSession.sql
    if getattr(original, "_cachemgr", False):
        return

    @functools.wraps(original)
    def sql(self: SparkSession, sqlQuery: str, *args: Any, **kwargs: Any) -> DataFrame:
        if not isinstance(sqlQuery, str) or not looks_like_ours(sqlQuery) or not _takes_part(self):
            return original(self, sqlQuery, *args, **kwargs)
        statement = parse(sqlQuery)
        return to_frame(self, _of(self).statements.execute(statement))

    sql._cachemgr = True  # type: ignore[attr-defined]
    SparkSession.sql = sql  # type: ignore[method-assign]


def _takes_part(spark: SparkSession) -> bool:
    if getattr(spark, "_jsparkSession", None) is None:
        return False
    return is_enabled(spark) or _asks(spark)


def _asks(spark: SparkSession) -> bool:
    """Whether the session's own configuration asks for relational caches."""
    return str(spark.conf.get(_ENABLED, "false")).strip().lower() == "true"


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
