"""All definitions on the wire, as one document; see `cachemgr.api.document`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from cachemgr.api.models import MAX_SQL, _Body, _Model
from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG


class CacheDefinition(_Body):
    """A cache with every clause, as export writes it and apply reads it."""

    name: Annotated[str, Field(min_length=1, max_length=512)]
    definition: Annotated[str, Field(min_length=1, max_length=MAX_SQL)]
    comment: str | None = None
    partitioned_by: list[str] = Field(default=[])
    cluster_by: list[str] = Field(default=[])
    location: str | None = None
    properties: dict[str, str] = Field(default={})
    refresh: Annotated[str, Field(max_length=500)] = "ON DEMAND AUTO"
    freshness: Annotated[str, Field(max_length=200)] = "STRICT"
    rewrite_enabled: bool = True
    paused: bool = False
    grants: Annotated[
        list[str] | None,
        Field(description="Who may use it; null leaves that as it is, at first to everybody."),
    ] = None
    catalog: str = SESSION_CATALOG
    catalog_schema: Annotated[str, Field(alias="schema")] = DEFAULT_NAMESPACE
    settings: Annotated[
        dict[str, str] | None,
        Field(description="spark.sql.* settings that it is computed under; null for the service's"),
    ] = None


class JoinDefinition(_Body):
    """A record-preserving join by its DDL."""

    name: Annotated[str, Field(min_length=1, max_length=512)]
    ddl: Annotated[str, Field(min_length=1, max_length=MAX_SQL)]


class Definitions(_Body):
    """All definitions, without any state."""

    version: Literal[1] = 1
    caches: Annotated[list[CacheDefinition], Field(max_length=10_000)] = Field(default=[])
    joins: Annotated[list[JoinDefinition], Field(max_length=10_000)] = Field(default=[])


class Wanted(_Body):
    """Definitions to apply."""

    definitions: Definitions
    prune: Annotated[bool, Field(description="Also drop what the document does not name.")] = False


class FieldChange(_Model):
    """One field of a definition."""

    field: str
    before: Any
    after: Any


class Change(_Model):
    """One thing that would change, or was changed."""

    kind: Literal["cache", "join"]
    name: str
    action: Literal["CREATE", "CHANGE", "REPLACE", "DROP"]
    fields: list[FieldChange]
    outcome: Literal["PLANNED", "DONE", "FAILED", "NOT_TRIED"]
    message: str | None


class ChangeList(_Model):
    """Changes in their order; none if the definitions are true already."""

    changes: list[Change]
