"""/api/v1/refreshes: asked for here, carried out by a worker."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request, Response

from cachemgr.access.grants import hashed_id
from cachemgr.access.redaction import Discretion
from cachemgr.api import models, responses
from cachemgr.api.caches import CacheName, find
from cachemgr.api.dependencies import ApiState, Operator, Principal, State, Viewer
from cachemgr.api.errors import ApiError
from cachemgr.api.long_poll import watches_of
from cachemgr.api.paging import PageSize, PageToken, page
from cachemgr.errors import ErrorCode
from cachemgr.metastore.writes import no_refresh

router = APIRouter(prefix="/api/v1", tags=["refreshes"])
_OVER = frozenset({"PUBLISHED", "UNCHANGED", "FAILED", "SUPERSEDED", "CANCELLED"})
_MAX_RUNS = 10_000
_FAR = 10**19
RefreshId = Annotated[str, Path(max_length=64)]


@router.post("/caches/{name}/refreshes", status_code=202, operation_id="startRefresh")
def start_refresh(
    state: State,
    operator: Operator,
    name: CacheName,
    response: Response,
    body: models.NewRefresh | None = None,
) -> models.Refresh:
    """Ask for a refresh. While one waits for that cache, this is the answer."""
    cache = find(state, name)
    asked = state.metastore.queue.request(
        cache.id,
        why=f"asked for by {operator.name}",
        mode=None if body is None else body.mode,
        requested_by=operator.name,
    )
    assert asked is not None
    response.headers["Location"] = f"{router.prefix}/refreshes/{asked.id}"
    return responses.waiting(asked, cache.qualified_name)


@router.get("/caches/{name}/refreshes", operation_id="listRefreshes")
def list_refreshes(
    state: State,
    viewer: Viewer,
    name: CacheName,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> models.RefreshList:
    """A cache's refreshes, newest first."""
    cache = find(state, name)
    found = [
        responses.waiting(r, cache.qualified_name)
        for r in state.metastore.queue.waiting()
        if r.cache_id == cache.id
    ]
    runs = state.metastore.refreshes.of(cache.id, limit=_MAX_RUNS)
    discretion = Discretion(state.metastore, viewer.name)
    runs = tuple(discretion.run(run, cache) for run in runs)
    found += [responses.refresh(run, cache.qualified_name) for run in runs]
    found.sort(key=_newest_first)
    # whoever is given a token can read it
    name = f"refreshes of {hashed_id(cache.id)}"
    shown, token = page(found, _newest_first, name, page_size, page_token)
    return models.RefreshList(refreshes=shown, next_page_token=token)


def _newest_first(found: models.Refresh) -> tuple[str, str]:
    moment = found.started_at or found.requested_at
    micros = 0 if moment is None else int(moment.timestamp() * 1e6)
    return f"{_FAR - micros:020d}", found.id


@router.get("/refreshes/{refresh_id}", operation_id="getRefresh")
async def get_refresh(
    request: Request,
    state: State,
    viewer: Viewer,
    refresh_id: RefreshId,
    wait_seconds: Annotated[
        float,
        Query(alias="waitSeconds", ge=0, le=60, description="Answer later, once it is over."),
    ] = 0,
) -> models.Refresh:
    """One refresh; with waitSeconds the answer comes when it is over, or the time is."""
    found = await to_thread.run_sync(_refresh, state, viewer, refresh_id)
    if found.state in _OVER or wait_seconds <= 0:
        return found
    await watches_of(request).refreshes.wait(refresh_id, wait_seconds)
    return await to_thread.run_sync(_refresh, state, viewer, refresh_id)


@router.post("/refreshes/{refresh_id}/cancel", operation_id="cancelRefresh")
def cancel_refresh(state: State, operator: Operator, refresh_id: RefreshId) -> models.Refresh:
    """Cancel a refresh: over at once if it waits, else its worker is told to stop."""
    state.metastore.queue.cancel(refresh_id, by=operator.name)
    return _refresh(state, operator, refresh_id)


@router.post("/refreshes/{refresh_id}/retry", status_code=202, operation_id="retryRefresh")
def retry_refresh(state: State, operator: Operator, refresh_id: RefreshId) -> models.Refresh:
    """Ask for a refresh that failed, was cancelled or superseded again, in the mode that was asked
    for then, else the cache's own."""
    run = state.metastore.refreshes.get(refresh_id)
    if run is None:
        raise no_refresh(refresh_id)
    if run.state.value not in ("FAILED", "CANCELLED", "SUPERSEDED"):
        raise ApiError(
            409,
            ErrorCode.REFRESH_NOT_FAILED,
            f"the refresh {refresh_id} is {run.state.value}: start one",
        )
    asked = state.metastore.queue.request(
        run.cache_id,
        why=f"retry of {refresh_id} by {operator.name}",
        mode=run.asked_mode,
        requested_by=operator.name,
    )
    assert asked is not None
    return _refresh(state, operator, asked.id)


def _refresh(state: ApiState, principal: Principal, refresh_id: str) -> models.Refresh:
    # A request that a worker takes between two looks is a run at the second one.
    request = state.metastore.queue.get(refresh_id)
    run = None if request is not None else state.metastore.refreshes.get(refresh_id)
    cache_id = request.cache_id if request is not None else run.cache_id if run else None
    cache = None if cache_id is None else state.metastore.caches.get(cache_id)
    if cache is None:
        raise no_refresh(refresh_id)
    if request is not None:
        return responses.waiting(request, cache.qualified_name)
    assert run is not None
    told = Discretion(state.metastore, principal.name).run(run, cache)
    return responses.refresh(told, cache.qualified_name)
