"""Who may be answered from which cache, and which tables the service may read for whom: grants, and
restricted base tables."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from cachemgr.api.caches import CacheName, find
from cachemgr.api.dependencies import Admin, ApiState, State, Viewer
from cachemgr.api.errors import ApiError
from cachemgr.api.models import _Body, _Model
from cachemgr.ddl import parse
from cachemgr.ddl.render import render
from cachemgr.ddl.statements import GrantSelect, QualifiedName, RestrictBaseTable
from cachemgr.errors import ErrorCode, NotFoundError
from cachemgr.metastore.records import CacheRecord
from cachemgr.metastore.statement_records import SelectGrant as SelectGrantRecord
from cachemgr.roles import MAX_PRINCIPAL, Role, check_principal

router = APIRouter(prefix="/api/v1", tags=["access"])
_TABLES = "/tables/restricted"
_SELECT = "/tables/select-grants"
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


class SelectGrant(_Model):
    """A base table that `POST /api/v1/statements` reads for a principal: whatever lies at that
    place, by whatever name."""

    principal: str
    table: str
    location: str
    granted_at: datetime


class SelectGrantList(_Model):
    """Grants by table and principal."""

    grants: list[SelectGrant]


class NewSelectGrant(_Body):
    """For whom statements may read a base table, given by its name in the service's Spark."""

    table: Annotated[str, Field(min_length=1, max_length=512)]
    principal: Annotated[str, Field(min_length=1, max_length=MAX_PRINCIPAL)]


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
    statement = RestrictBaseTable(_table_name(body.table))
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


@router.get(_SELECT, operation_id="listSelectGrants")
def list_select_grants(state: State, viewer: Viewer) -> SelectGrantList:
    """Which base tables statements may read for whom; others than admins see their own."""
    sees_all = viewer.role.covers(Role.ADMIN)
    found = state.metastore.select_grants.all()
    return SelectGrantList(
        grants=[_shown(each) for each in found if sees_all or each.principal == viewer.name]
    )


@router.post(_SELECT, status_code=201, operation_id="grantSelect")
def grant_select(state: State, admin: Admin, body: NewSelectGrant) -> SelectGrant:
    """Let statements read a base table for a principal. It is granted by its place; one that was
    granted to him before stays as it was."""
    principal = check_principal(body.principal)
    statement = GrantSelect(_table_name(body.table), principal)
    with state.spark_lock:
        answer = state.statements.execute(render(statement), admin.name)
    key = (str(answer.rows[0][-1]), principal)
    found = state.metastore.select_grants.all()
    granted = next((each for each in found if (each.place, each.principal) == key), None)
    if granted is None:
        raise _not_granted(*key)  # somebody has just taken it back
    return _shown(granted)


@router.delete(_SELECT, status_code=204, operation_id="revokeSelect")
def revoke_select(
    state: State,
    admin: Admin,
    location: Annotated[str, Query(max_length=4096, description="As the list of grants has it.")],
    principal: Annotated[str, Query(max_length=MAX_PRINCIPAL)],
) -> None:
    """Take a grant back. His next statement is refused, and so is the next piece that he asks for
    of a result whose rows came from there."""
    if not state.metastore.select_grants.remove(location, principal):
        raise _not_granted(location, principal)


def _shown(grant: SelectGrantRecord) -> SelectGrant:
    return SelectGrant(
        principal=grant.principal,
        table=grant.table_name,
        location=grant.place,
        granted_at=grant.granted_at,
    )


def _not_granted(location: str, principal: str) -> NotFoundError:
    return NotFoundError(
        ErrorCode.GRANT_NOT_FOUND,
        f"{principal} was not granted SELECT on a table at {location}: GET /api/v1{_SELECT} lists "
        "what was granted",
    )


def _table_name(text: str) -> QualifiedName:
    """The name that a text is, and nothing beside it."""
    statement = parse(f"RESTRICT BASE TABLE {text}")
    if not isinstance(statement, RestrictBaseTable):  # pragma: no cover - the text begins so
        raise ApiError(400, ErrorCode.NOT_A_TABLE, f"{text!r} is not the name of a table")
    return statement.name
