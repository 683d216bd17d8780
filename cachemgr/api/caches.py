"""/api/v1/caches: what exists, and how it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response

from cachemgr.access.grants import role_needed
from cachemgr.api import models, responses
from cachemgr.api.dependencies import ApiState, Operator, Principal, State, Viewer, require
from cachemgr.api.errors import ApiError
from cachemgr.api.paging import PageSize, PageToken, page
from cachemgr.api.responses import path_of
from cachemgr.ddl import parse
from cachemgr.ddl.names import DEFAULT_NAMESPACE, no_cache
from cachemgr.ddl.single_clauses import read_freshness, read_refresh
from cachemgr.ddl.statements import CreateRelationalCache
from cachemgr.errors import AlreadyExistsError, ErrorCode
from cachemgr.metastore.records import CacheRecord

router = APIRouter(prefix="/api/v1/caches", tags=["caches"])
_FORM: Final = "CREATE [OR REPLACE] RELATIONAL CACHE …"
CacheName = Annotated[
    str,
    Path(
        max_length=1024,
        description="The cache's name, with its namespace before a dot unless that is `default`.",
    ),
]


def find(state: ApiState, name: str) -> CacheRecord:
    """The live cache of a name.

    Raises:
        NotFoundError: There is none.
    """
    namespace, _, last = name.rpartition(".")
    found = state.metastore.caches.named(namespace or DEFAULT_NAMESPACE, last)
    if found is None:
        lists = "`cachemgr cache list` or GET /api/v1/caches"
        raise no_cache(name, state.metastore.caches.live_names(), lists)
    return found


def _one(state: ApiState, cache: CacheRecord, reader: Principal) -> models.Cache:
    return responses.caches(state.metastore, state.logs, [cache], reader)[0]


@router.get("", operation_id="listCaches")
def list_caches(
    state: State,
    viewer: Viewer,
    like: Annotated[str | None, Query(max_length=512, description="As in SHOW … LIKE.")] = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> models.CacheList:
    """All caches by namespace and name."""
    found = state.metastore.caches.matching(like)
    shown, token = page(
        found, lambda c: (c.namespace.lower(), c.name.lower()), "caches", page_size, page_token
    )
    caches = responses.caches(state.metastore, state.logs, shown, viewer)
    return models.CacheList(caches=caches, next_page_token=token)


@router.post("", status_code=201, operation_id="createCache")
def create_cache(
    state: State,
    operator: Operator,
    body: models.NewCache,
    request: Request,
    response: Response,
) -> models.Cache:
    """Create a cache by its CREATE RELATIONAL CACHE statement. It is refreshed by its trigger, or
    by POST …/refreshes."""
    statement = parse(body.ddl, _FORM)
    if not isinstance(statement, CreateRelationalCache):
        raise ApiError(400, ErrorCode.NOT_A_CREATE, f"ddl is another statement: expected {_FORM}")
    require(operator, role_needed(statement))
    name = statement.name
    namespace = ".".join(name.namespace) or DEFAULT_NAMESPACE
    try:
        with state.spark_lock:
            state.statements.execute(body.ddl, operator.name)
        cache = find(state, f"{namespace}.{name.last}")
    except AlreadyExistsError:
        cache = find(state, f"{namespace}.{name.last}")
        # cut off after it was made and before the answer: this is the answer
        made = (cache.owner, cache.definition) == (operator.name, statement.select.text)
        if not made or not getattr(request.state, "again", False):
            raise
    response.headers["Location"] = path_of(router.prefix, f"{namespace}.{name.last}")
    return _one(state, cache, operator)


@router.get("/{name}", operation_id="getCache")
def get_cache(state: State, viewer: Viewer, name: CacheName) -> models.Cache:
    """One cache."""
    return _one(state, find(state, name), viewer)


@router.patch("/{name}", operation_id="updateCache")
def update_cache(
    state: State, operator: Operator, name: CacheName, body: models.CacheChange
) -> models.Cache:
    """Change a cache, if it still has the version that the change is based on (409 if not)."""
    cache = find(state, name)
    fields: dict[str, Any] = {}
    if body.rewrite_enabled is not None:
        fields["rewrite_enabled"] = body.rewrite_enabled
    if body.paused is not None:
        fields["paused"] = body.paused
    if body.refresh is not None:
        fields["refresh"] = read_refresh(body.refresh)
    if body.freshness is not None:
        fields["freshness"] = read_freshness(body.freshness)
    if not fields:
        raise ApiError(400, ErrorCode.NOTHING_TO_CHANGE, "name at least one field besides version")
    return _changed(state, operator, cache, body.version, fields)


def _changed(
    state: ApiState,
    operator: Principal,
    cache: CacheRecord,
    version: int,
    fields: Mapping[str, Any],
) -> models.Cache:
    now = state.metastore.clock.now()
    changed = state.metastore.caches.update(cache.id, version, now=now, **fields)
    return _one(state, changed, operator)


def _set(state: ApiState, operator: Principal, name: str, **fields: bool) -> models.Cache:
    """Change a cache whatever version it has."""
    cache = find(state, name)
    return _changed(state, operator, cache, cache.version, fields)


@router.post("/{name}/enable", operation_id="enableCache")
def enable_cache(state: State, operator: Operator, name: CacheName) -> models.Cache:
    """Let queries be answered from it."""
    return _set(state, operator, name, rewrite_enabled=True)


@router.post("/{name}/disable", operation_id="disableCache")
def disable_cache(state: State, operator: Operator, name: CacheName) -> models.Cache:
    """Answer no query from it any more; it goes on being refreshed."""
    return _set(state, operator, name, rewrite_enabled=False)


@router.post("/{name}/pause", operation_id="pauseCache")
def pause_cache(state: State, operator: Operator, name: CacheName) -> models.Cache:
    """Pause scheduled refreshes."""
    return _set(state, operator, name, paused=True)


@router.post("/{name}/resume", operation_id="resumeCache")
def resume_cache(state: State, operator: Operator, name: CacheName) -> models.Cache:
    """Refresh it by its trigger again; failures so far count no more."""
    return _set(state, operator, name, paused=False)


@router.delete("/{name}", status_code=204, operation_id="dropCache")
def drop_cache(state: State, operator: Operator, name: CacheName) -> None:
    """Drop a cache; its files stay for the grace that queries already planned need."""
    now = state.metastore.clock.now()
    state.metastore.caches.drop(find(state, name).id, now=now)
