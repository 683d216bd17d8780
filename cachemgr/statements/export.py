"""All definitions as one document: every clause of every cache, the joins and the grants; no state.

The order is by name, so that two exports of the same definitions are the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from cachemgr.cache_spec import SPEC_FIELDS, CacheSpec
from cachemgr.config.result_settings import result_settings
from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG
from cachemgr.ddl.render_parts import render_name
from cachemgr.ddl.single_clauses import spec_as_data, spec_of_data
from cachemgr.metastore.masked import masked_join
from cachemgr.metastore.records import CacheRecord, JoinRecord
from cachemgr.metastore.store import Metastore
from cachemgr.secrets import masked_properties, masked_sql
from cachemgr.statements.convert import create_statement


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
        spec: Its clauses.
        paused: Whether its trigger is off.
        grants: Who may use it; None for everybody who may read the base tables.
        catalog: The catalog that the definition's names are looked up in.
        schema: The schema likewise.
        settings: The `spark.sql.*` settings that it is computed under; None for the service's.
    """

    name: str
    definition: str
    spec: CacheSpec = field(default_factory=CacheSpec)
    paused: bool = False
    grants: tuple[str, ...] | None = None
    catalog: str = SESSION_CATALOG
    schema: str = DEFAULT_NAMESPACE
    settings: Mapping[str, str] | None = None


def as_data(cache: CacheDefinition) -> dict[str, Any]:
    """A definition by the fields of the document, which holds the clauses beside the others.

    Args:
        cache: The definition.

    >>> list(as_data(CacheDefinition("s.c", "SELECT 1")))[:4]
    ['name', 'definition', 'comment', 'partitioned_by']
    """
    found: dict[str, Any] = {}
    for f in fields(cache):
        value = getattr(cache, f.name)
        found |= spec_as_data(value) if f.name == "spec" else {f.name: value}
    return found


def of_data(data: Mapping[str, Any]) -> CacheDefinition:
    """The inverse of `as_data`.

    Args:
        data: The fields.

    Raises:
        CacheManagerError: A clause cannot be read.
    """
    beside = {k: v for k, v in data.items() if k not in SPEC_FIELDS}
    return CacheDefinition(spec=spec_of_data(data), **beside)


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
        spec=cache.spec,
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
        spec=cache.spec.masked(),
        settings=None if cache.settings is None else masked_properties(cache.settings),
    )


def join_definition(join: JoinRecord) -> JoinDefinition:
    """One join as it would be written down, without credentials."""
    join = masked_join(join)
    return JoinDefinition(join.name, join.definition)
