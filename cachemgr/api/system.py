"""What machines ask: whether the process lives, whether it can serve, and how it does."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from cachemgr import __version__
from cachemgr.api import models
from cachemgr.api.dependencies import NO_TOKEN, State, Viewer
from cachemgr.api.errors import RETRY_SECONDS
from cachemgr.errors import CacheManagerError
from cachemgr.metastore import migrate

OPEN: Final = "open: no token is asked for, everybody on this machine is an admin"

FAILED: Final = "Spark did not start: the log of this process and `cachemgr doctor` say why"


def make_router(metrics: CollectorRegistry) -> APIRouter:
    """The endpoints, over one process's metrics.

    Args:
        metrics: What /metrics shows.
    """
    router = APIRouter(tags=["system"])

    @router.get("/healthz", operation_id="healthz")
    def healthz() -> models.Health:
        """The process lives."""
        return models.Health(status="ok")

    @router.get("/readyz", operation_id="readyz", responses={503: {"model": models.Health}})
    def readyz(state: State, response: Response) -> models.Health:
        """The metastore answers. The detail says so where no token is asked for; `spark` says
        whether the Spark of this process runs, which the first request or refresh that needs it
        starts, and the detail where the last start failed. No statement is quoted."""
        try:
            state.metastore.registry.revision()
            is_open = state.open_to_all()
        except CacheManagerError as error:
            response.status_code = 503
            response.headers["Retry-After"] = str(RETRY_SECONDS)
            return models.Health(status="unavailable", detail=error.code, spark=state.spark())
        spark = state.spark()
        failed = [state.trouble() or FAILED] if spark == "failed" else []
        told = [*([OPEN] if is_open else []), *failed]
        if not is_open and not state.metastore.tokens.had_any():
            told.append(NO_TOKEN)
        return models.Health(status="ok", detail="; ".join(told) or None, spark=spark)

    @router.get("/metrics", operation_id="metrics", include_in_schema=False)
    def show_metrics() -> Response:
        """Prometheus text; no label holds SQL or a user."""
        return Response(generate_latest(metrics), media_type=CONTENT_TYPE_LATEST)

    @router.get("/api/v1/info", operation_id="getInfo")
    def info(state: State, viewer: Viewer) -> models.Info:
        """What answers here, and the revision of its registry."""
        return models.Info(
            version=__version__,
            schema_version=migrate.expected(),
            revision=state.metastore.registry.revision(),
        )

    return router
