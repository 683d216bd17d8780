"""All definitions as one document: every clause of every cache, the joins and the grants; no state.

The order is by name, so that two exports of the same definitions are the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cachemgr.config.result_settings import result_settings
from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG
from cachemgr.ddl.render import render_freshness, render_name, render_refresh
from cachemgr.metastore.masked import masked_join
from cachemgr.metastore.records import CacheRecord, JoinRecord
from cachemgr.metastore.store import Metastore
from cachemgr.secrets import masked, masked_properties, masked_sql
from cachemgr.statements.convert import LOCATION_GIVEN, create_statement, freshness_of, policy_of


@dataclass(frozen=True)
class JoinDefinition:
    """A record-preserving join by its statement."""

    name: str
    ddl: str


@dataclass(frozen=True)
class CacheDefinition:
    """A cache with every clause.

    Args:
        name: With its namespace, quoted where it must be.
        definition: Its SELECT.
        comment: What it says about itself.
        partitioned_by: Columns of PARTITIONED BY.
        cluster_by: Columns of CLUSTER BY.
        location: The LOCATION given; None for the service's own root.
        properties: Its TBLPROPERTIES.
        refresh: The REFRESH clause, without that word.
        freshness: The freshness clause.
        rewrite_enabled: Whether queries are answered from it.
        paused: Whether its trigger is off.
        grants: Who may use it; None for everybody who may read the base tables.
        catalog: The catalog that the definition's names are looked up in.
        schema: The schema likewise.
        settings: The `spark.sql.*` settings that it is computed under; None for the service's.
    """

    name: str
    definition: str
    comment: str | None = None
    partitioned_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    refresh: str = "ON DEMAND AUTO"
    freshness: str = "STRICT"
    rewrite_enabled: bool = True
    paused: bool = False
    grants: tuple[str, ...] | None = None
    catalog: str = SESSION_CATALOG
    schema: str = DEFAULT_NAMESPACE
    settings: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Definitions:
    """A document of definitions."""

    caches: tuple[CacheDefinition, ...] = ()
    joins: tuple[JoinDefinition, ...] = ()


def export(metastore: Metastore) -> Definitions:
    """All that the metastore defines."""
    caches = [
        cache_definition(cache, metastore.grants.of(cache.id) if cache.narrowed else None)
        for cache in metastore.caches.all()
    ]
    return Definitions(tuple(caches), tuple(join_definition(j) for j in metastore.joins.all()))


def cache_definition(cache: CacheRecord, grants: tuple[str, ...] | None) -> CacheDefinition:
    """One cache as it would be written down, without credentials."""
    definition = CacheDefinition(
        name=render_name(create_statement(cache).name),
        definition=cache.definition,
        comment=cache.comment,
        partitioned_by=cache.partition_by,
        cluster_by=cache.cluster_by,
        location=cache.context.get(LOCATION_GIVEN),
        properties=dict(sorted(cache.properties.items())),
        refresh=render_refresh(policy_of(cache)).removeprefix("REFRESH "),
        freshness=render_freshness(freshness_of(cache)),
        rewrite_enabled=cache.rewrite_enabled,
        paused=cache.paused,
        grants=grants,
        catalog=str(cache.context.get("catalog", SESSION_CATALOG)),
        schema=str(cache.context.get("schema", DEFAULT_NAMESPACE)),
        settings=result_settings(cache.settings),
    )
    return masked_definition(definition)


def masked_definition(cache: CacheDefinition) -> CacheDefinition:
    """A definition as an export would write it: without credentials."""
    return replace(
        cache,
        definition=masked_sql(cache.definition),
        comment=None if cache.comment is None else masked(cache.comment),
        location=None if cache.location is None else masked(cache.location),
        properties=masked_properties(cache.properties),
        settings=None if cache.settings is None else masked_properties(cache.settings),
    )


def join_definition(join: JoinRecord) -> JoinDefinition:
    """One join as it would be written down, without credentials."""
    join = masked_join(join)
    return JoinDefinition(join.name, join.definition)
