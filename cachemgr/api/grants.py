"""Who may be answered from which cache: grants, and restricted base tables."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from cachemgr.api.caches import CacheName, find
from cachemgr.api.dependencies import Admin, ApiState, State, Viewer
from cachemgr.api.errors import ApiError
from cachemgr.api.models import _Body, _Model
from cachemgr.ddl import parse
from cachemgr.ddl.render import render
from cachemgr.ddl.statements import RestrictBaseTable
from cachemgr.errors import ErrorCode
from cachemgr.metastore.records import CacheRecord

router = APIRouter(prefix="/api/v1", tags=["access"])
_TABLES = "/tables/restricted"
PrincipalName = Annotated[
    str, Path(max_length=256, description="As tokens name it, or `sparkUser` in sessions.")
]
MarkId = Annotated[str, Path(max_length=64)]


class Grants(_Model):
    """Who may be answered from a cache. If it is not narrowed, whoever may read its base tables
    (restricted ones excepted); if it is, the principals and nobody else."""

    narrowed: bool
    principals: list[str]


class RestrictedTable(_Model):
    """A base table that no cache answers for anyone not granted on it."""

    id: str
    name: str
    location: str
    table_id: str | None
    restricted_by: str
    restricted_at: datetime


class RestrictedTableList(_Model):
    """All restricted base tables by name."""

    tables: list[RestrictedTable]


class NewRestriction(_Body):
    """A base table to restrict, by its name in the service's Spark."""

    table: Annotated[str, Field(min_length=1, max_length=512)]


def _grants(state: ApiState, cache: CacheRecord) -> Grants:
    found = state.metastore.caches.get(cache.id) or cache
    principals = list(state.metastore.grants.of(cache.id))
    return Grants(narrowed=found.narrowed, principals=principals)


@router.get("/caches/{name}/grants", operation_id="listGrants")
def list_grants(state: State, admin: Admin, name: CacheName) -> Grants:
    """Who was granted USE on a cache."""
    return _grants(state, find(state, name))


@router.put("/caches/{name}/grants/{principal:path}", operation_id="grantUse")
def grant_use(state: State, admin: Admin, name: CacheName, principal: PrincipalName) -> Grants:
    """Let a principal be answered from a cache. The first grant shuts everybody else out."""
    cache = find(state, name)
    state.metastore.grants.add(cache.id, principal)
    return _grants(state, cache)


@router.delete("/caches/{name}/grants/{principal:path}", operation_id="revokeUse")
def revoke_use(state: State, admin: Admin, name: CacheName, principal: PrincipalName) -> Grants:
    """Take a grant back; with the last one gone the cache answers nobody."""
    cache = find(state, name)
    state.metastore.grants.revoke(cache.id, principal)
    return _grants(state, cache)


@router.get(_TABLES, operation_id="listRestrictedTables")
def list_restricted(state: State, viewer: Viewer) -> RestrictedTableList:
    """All restricted base tables by name."""
    found = state.metastore.tables.restricted()
    return RestrictedTableList(tables=[RestrictedTable.model_validate(mark) for mark in found])


@router.post(_TABLES, status_code=201, operation_id="restrictTable")
def restrict_table(
    state: State, admin: Admin, body: NewRestriction, response: Response
) -> RestrictedTable:
    """Answer for a base table from no cache any more, but for those granted on it. The table is
    marked, not its name."""
    statement = parse(f"RESTRICT BASE TABLE {body.table}")
    if not isinstance(statement, RestrictBaseTable):  # pragma: no cover - the text begins so
        raise ApiError(400, ErrorCode.NOT_A_TABLE, f"{body.table!r} is not the name of a table")
    with state.spark_lock:
        answer = state.statements.execute(render(statement), admin.name)
    name = str(answer.rows[0][0])
    marks = [m for m in state.metastore.tables.restricted() if m.name == name]
    newest = RestrictedTable.model_validate(max(marks, key=lambda m: m.restricted_at))
    response.headers["Location"] = f"{router.prefix}{_TABLES}/{newest.id}"
    return newest


@router.delete(_TABLES + "/{mark_id}", status_code=204, operation_id="unrestrictTable")
def unrestrict_table(state: State, admin: Admin, mark_id: MarkId) -> None:
    """Take a mark away."""
    state.metastore.tables.unrestrict(mark_id)
