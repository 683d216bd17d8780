"""Our statements carried out for a session: on its metastore, or by the service it follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyspark.sql import SparkSession

from cachemgr.access.asker import OWN_USER, Asker
from cachemgr.access.visitor import Visitor, visitor_of
from cachemgr.ddl.statements import CreateRelationalCache, Statement
from cachemgr.jvm.session_conf import explicit_settings
from cachemgr.metastore import Metastore
from cachemgr.serving.explain import Explanation
from cachemgr.serving.sources import MetastoreSource
from cachemgr.spark.definitions.analysis import analyse_definition
from cachemgr.spark.engine import SparkEngine
from cachemgr.spark.explaining import explain_query
from cachemgr.spark.remote_statements import RemoteStatements
from cachemgr.spark.session import CacheSession
from cachemgr.statements.results import ResultRows
from cachemgr.statements.service import CacheService, utc_now
from matcher.model.ir import CachePlan


class Statements(Protocol):
    """What carries our statements out for a session."""

    def execute(
        self,
        statement: Statement,
        *,
        principal: str | None = None,
        vouched: bool = True,
        visitor: Visitor | None = None,
    ) -> ResultRows:
        """Carry a statement out; raises CacheManagerError."""
        ...


def statements_of(
    spark: SparkSession, session: CacheSession, asker: Asker = OWN_USER
) -> Statements:
    """What carries statements out: our own service on a metastore, or one that is followed.

    Args:
        spark: Whose catalog, schema and settings hold.
        session: What decides there.
        asker: Who asks.
    """
    source = session.feed.source
    if not isinstance(source, MetastoreSource):
        return RemoteStatements(source.name, _explaining(spark, session, asker))
    return CacheService(
        source.metastore,
        _engine(spark, session, source.metastore, asker),
        lambda: session.settings(explicit_settings(spark)),
        changed=session.feed.sync,
    )


def execute_for(
    spark: SparkSession, session: CacheSession, statement: Statement, asker: Asker
) -> ResultRows:
    """Carry out one of our statements for a user of a server, in his session.

    Args:
        spark: His session, whose catalog, schema and settings hold.
        session: What decides in the server.
        statement: The statement.
        asker: Who he is.

    Returns:
        The rows that answer it.

    Raises:
        CacheManagerError: What is wrong, with what, and what to do.
    """
    settings = session.settings(explicit_settings(spark))
    believed = asker.believed(settings.trust_user_names)
    return statements_of(spark, session, asker).execute(
        statement,
        principal=asker.principal(session.principal),
        vouched=believed.vouched,
        visitor=visitor_of(asker, settings),
    )


def plan_of(
    spark: SparkSession, session: CacheSession, statement: CreateRelationalCache
) -> CachePlan:
    """The plan of a cache that is not made.

    Raises:
        CacheManagerError: Its SELECT is not right.
    """
    name, source = str(statement.name), session.feed.source
    if isinstance(source, MetastoreSource):
        return _engine(spark, session, source.metastore).define(name, statement.select).plan
    return analyse_definition(spark, name, statement.select).plan


def _engine(
    spark: SparkSession, session: CacheSession, metastore: Metastore, asker: Asker = OWN_USER
) -> SparkEngine:
    return SparkEngine(spark, session, metastore, _explaining(spark, session, asker), utc_now)


def _explaining(
    spark: SparkSession, session: CacheSession, asker: Asker
) -> Callable[[str, bool], Explanation]:
    return lambda text, files: explain_query(spark, session, text, asker, files=files)
