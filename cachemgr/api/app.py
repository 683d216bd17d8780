"""The application: routes, errors, and what stands around each request."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry

from cachemgr import __version__
from cachemgr.api import (
    caches,
    catalog,
    document,
    errors,
    grants,
    joins,
    layouts,
    middleware,
    models,
    queries,
    refreshes,
    statements,
    system,
)
from cachemgr.api.catalog_pages import Pages
from cachemgr.api.dependencies import ApiState
from cachemgr.api.guards import Limits, known_parameters
from cachemgr.api.long_poll import Watches

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": models.Error} for status in (400, 401, 403, 404, 405, 409, 413, 422, 429, 503)
}


def create_app(
    state: ApiState,
    *,
    metrics: CollectorRegistry | None = None,
    requests_a_second: float = 0,
) -> FastAPI:
    """The REST application.

    Args:
        state: What the endpoints work on.
        metrics: What /metrics shows; the process's own counters may be among them.
        requests_a_second: How many requests a client may send; 0 does not limit.
    """
    app = FastAPI(
        title="Relational Cache",
        version=__version__,
        description="Relational caches for Spark over Delta tables.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=_ERRORS,
    )
    app.state.cachemgr = state
    # looked up when a request comes: the document is made without a metastore
    app.state.watches = Watches(
        lambda: state.metastore.registry.mark(),
        lambda ids: state.metastore.queue.still_open(ids),
        lambda ids: state.metastore.statements.unfinished(ids),
    )
    app.state.pages = Pages(lambda: state.metastore.registry, lambda: state.metastore.tables)
    registry = metrics if metrics is not None else CollectorRegistry()
    # routes are tried in this order, and queries are asked for far more often than all else
    modules = (
        *(queries, caches, layouts, refreshes, joins),
        *(catalog, grants, document, statements),
    )
    for router in (*(module.router for module in modules), system.make_router(registry)):
        _tell_roles(router)
        app.include_router(router, dependencies=[Depends(known_parameters)])
    errors.install(app)
    middleware.install(app, registry, Limits(requests_a_second))
    return app


def _tell_roles(router: APIRouter) -> None:
    """Each operation's least role, for the document: `none` needs no token."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            found = [getattr(d.call, "least_role", None) for d in route.dependant.dependencies]
            role = next((r.value for r in found if r is not None), "none")
            route.openapi_extra = {**(route.openapi_extra or {}), "x-least-role": role}
