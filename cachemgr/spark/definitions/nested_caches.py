"""Caches named in a definition, put in place of their names as views are: B over A reads what A's
SELECT reads.

A name that Spark itself knows is that table or view, whatever caches there are. So an expanded
definition holds base tables alone, and all that is proven about it is proven about them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG, namespace_of, shown_name
from cachemgr.ddl.statements import QualifiedName
from cachemgr.delta.own_session import session_for_definitions
from cachemgr.delta.tables import logical_plan
from cachemgr.errors import CacheManagerError, DefinitionError, ErrorCode
from cachemgr.jvm.classes import java_map
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.jvm.session_conf import unnoticed
from cachemgr.metastore.dependants import cycle
from cachemgr.metastore.records import CacheRecord
from cachemgr.serving.served_cache import matcher_name
from cachemgr.spark.texts import analysed_text, named_in, refuse_reach
from matcher.model.codec import decode_plan
from matcher.render.select import quote

_MAX_PARTS: Final = 3
Place = Callable[[int | None, int | None], str]
FindCache = Callable[[str, str], CacheRecord | None]
# What stands for a name, if not what the session knows by it: a plan, or None.
Stands = Callable[[SparkSession, list[str]], DataFrame | None]
AS_KNOWN: Final[Stands] = lambda spark, parts: None  # noqa: E731


@dataclass(frozen=True)
class Expanded:
    """A definition with the caches that it names put in.

    Args:
        query: Its text, if it names none; else what the text stands for.
        reads: The caches that it names, in the order of its text.
    """

    query: str | DataFrame
    reads: tuple[CacheRecord, ...] = ()


def expand(
    spark: SparkSession,
    text: str,
    find: FindCache,
    path: tuple[str, ...],
    accepts: Callable[[CacheRecord], None] = lambda cache: None,
    place: Place = lambda line, col: "",
    stands: Stands = AS_KNOWN,
) -> Expanded:
    """Put the definitions of caches in place of their names.

    Args:
        spark: The session whose current catalog and schema hold.
        text: One SELECT.
        find: The live cache of a namespace and a name.
        path: Names of the caches that are being expanded, the outermost first.
        accepts: Called with each cache that the text itself names; raises if it may not be named.
        place: Says where a line and a column of the text are.
        stands: What is put in place of a table's name, in the text itself and not in the
            definitions of the caches that it names.

    Raises:
        DefinitionError: It reaches outside of tables; or a cache that is named may not be, or
            depends on the one that names it.
        PySparkException: The text or a definition does not analyse.
    """
    nested = java_class(spark, "Nested")
    catalog = spark.catalog

    def named_cache(parts: list[str]) -> CacheRecord | None:
        name = QualifiedName(tuple(parts))
        namespace = namespace_of(name, catalog.currentCatalog(), catalog.currentDatabase())
        return find(namespace, name.last)

    plans: dict[str, Any] = {}
    names = json.loads(nested.names(session_of(spark), text))
    for parts in names:
        given = stands(spark, parts)
        if given is not None:
            plans[_key(parts)] = logical_plan(spark, given)
    refuse_reach(
        f"cache {path[-1]}",
        named_in(spark, text),
        lambda parts: (
            _key(parts) in plans or is_known(spark, parts) or named_cache(parts) is not None
        ),
        place,
    )
    found: dict[str, CacheRecord] = {}
    for parts in names:
        key = _key(parts)
        if key in found or key in plans or len(parts) > _MAX_PARTS or is_known(spark, parts):
            continue
        name = QualifiedName(tuple(parts))
        namespace = namespace_of(name, catalog.currentCatalog(), catalog.currentDatabase())
        _refuse_circle(shown_name(namespace, name.last), path)
        cache = named_cache(parts)
        if cache is not None:
            found[key] = cache
    if not found and not plans:
        return Expanded(text)
    for key, cache in found.items():
        _refuse_nesting(cache, path)
        accepts(cache)
        plans[key] = logical_plan(spark, _analysed(spark, cache, find, path))
    with unnoticed():
        query = DataFrame(
            nested.select(session_of(spark), text, java_map(spark._jvm, plans)), spark
        )
    return Expanded(query, tuple({c.id: c for c in found.values()}.values()))


def _key(parts: list[str]) -> str:
    return "\0".join(parts)


def is_known(spark: SparkSession, parts: list[str]) -> bool:
    """Whether a session has a table or view of a name.

    Args:
        spark: The session.
        parts: The name.
    """
    try:
        return spark.catalog.tableExists(".".join(map(quote, parts)))
    except PySparkException:  # no such catalog or schema: there is no table in it
        return False


def _refuse_circle(shown: str, path: tuple[str, ...]) -> None:
    names = [name.lower() for name in path]
    if shown.lower() in names:
        raise cycle([*path[names.index(shown.lower()) :], shown])


def _refuse_nesting(cache: CacheRecord, path: tuple[str, ...]) -> None:
    shown = matcher_name(cache)
    plan = None if cache.plan is None else decode_plan(dict(cache.plan))
    if plan is not None and plan.is_cube:
        raise DefinitionError(
            ErrorCode.CACHE_IS_CUBE,
            f"cache {path[-1]} names cache {shown}, whose rows are of several grouping sets: "
            "define it over the base tables; its refresh reads no more for that",
        )
    if plan is not None and plan.having:
        raise DefinitionError(
            ErrorCode.CACHE_HAS_HAVING,
            f"cache {path[-1]} names cache {shown}, which holds only the groups that passed its "
            "HAVING: define it over the base tables",
        )
    if plan is not None and plan.limit is not None:
        raise DefinitionError(
            ErrorCode.CACHE_IS_TOP_K,
            f"cache {path[-1]} names cache {shown}, which holds its first {plan.limit} rows alone: "
            "define it over the base tables",
        )


def _analysed(
    spark: SparkSession, cache: CacheRecord, find: FindCache, path: tuple[str, ...]
) -> DataFrame:
    """What a cache's own definition stands for, where its own names resolve."""
    session = definition_session(spark, cache)
    shown = matcher_name(cache)
    try:
        inner = expand(session, cache.definition, find, (*path, shown))
        with unnoticed():
            query = inner.query
            if not isinstance(query, DataFrame):
                query = DataFrame(analysed_text(session, query), session)
            return _as_created(query, cache)
    except PySparkException as error:
        said = str(error).splitlines()[0]
        raise CacheManagerError(
            ErrorCode.DEFINITION_BROKEN,
            f"cache {path[-1]} names cache {shown}, whose definition does not resolve any more: "
            f"{said}; restore what it names, or define {path[-1]} over other tables",
        ) from error


def _as_created(query: DataFrame, cache: CacheRecord) -> DataFrame:
    """A definition without columns that its SELECT * did not stand for when it was created."""
    names = [column.name for column in cache.columns]
    if len(query.columns) <= len(names) or not set(names) <= set(query.columns):
        return query
    if not are_apart(names):
        return query
    return query.select([quote(name) for name in names])


def are_apart(names: Sequence[str]) -> bool:
    """Whether each column can be told from the others by its name.

    Args:
        names: The names of all columns.

    >>> are_apart(["k", "K"])
    False
    """
    return len({name.lower() for name in names}) == len(names)


def definition_session(spark: SparkSession, cache: CacheRecord) -> SparkSession:
    """A session of ours in which a cache's definition means what it meant at its creation.

    Args:
        spark: Any session of the application.
        cache: The cache.
    """
    session = session_for_definitions(spark, cache.settings)
    session.catalog.setCurrentCatalog(str(cache.context.get("catalog", SESSION_CATALOG)))
    session.catalog.setCurrentDatabase(str(cache.context.get("schema", DEFAULT_NAMESPACE)))
    return session
