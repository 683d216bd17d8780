"""/api/v1/catalog and the decisions that come back: what sessions with the remote hook ask.

A session asks for everything once, and then for the changes since the revision where it stands;
`waitSeconds` lets it hear of a change when it happens. It is sent what its principal may use, and a
digest of that, by which it knows that nothing was missed: else it asks for everything again.
"""

from __future__ import annotations

import gzip
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response

from cachemgr.api import catalog_models as models
from cachemgr.api.believing import believed
from cachemgr.api.catalog_pages import Begin, Pages, list_name
from cachemgr.api.dependencies import Credentials, State, Viewer, digest_of, identify
from cachemgr.api.errors import ApiError
from cachemgr.api.long_poll import watches_of
from cachemgr.api.paging import MAX_PAGE, PageToken, foreign_token, read_token
from cachemgr.errors import ErrorCode
from cachemgr.metastore.registry_records import RegistryMark
from cachemgr.serving.wire import CATALOG_VERSION

router = APIRouter(prefix="/api/v1", tags=["sessions"])


@router.get(
    "/catalog",
    operation_id="getCatalog",
    response_model=models.Catalog,
    description="What the token's principal may use: everything, or what changed since a revision.",
)
async def get_catalog(
    request: Request,
    state: State,
    viewer: Viewer,
    credentials: Credentials,
    catalog_version: Annotated[
        str | None,
        Query(
            alias="catalogVersion",
            max_length=32,
            description=f"The form that the session reads; this service writes {CATALOG_VERSION}.",
        ),
    ] = None,
    epoch: Annotated[str, Query(max_length=64, description="The epoch of the answer before.")] = "",
    since: Annotated[
        int, Query(ge=0, le=2**62, description="The revision where the session stands.")
    ] = 0,
    wait_seconds: Annotated[
        float,
        Query(alias="waitSeconds", ge=0, le=60, description="Wait so long for a change."),
    ] = 0,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=MAX_PAGE)] = 500,
    page_token: PageToken = None,
) -> Response:
    """One page of the catalog."""
    if catalog_version not in (None, CATALOG_VERSION):
        raise ApiError(
            409,
            ErrorCode.CATALOG_VERSION,
            f"the session reads catalogs of version {catalog_version}, this service writes "
            f"{CATALOG_VERSION}: install the same release of cachemgr on both",
        )
    mark = await to_thread.run_sync(state.metastore.registry.mark)
    known = RegistryMark(epoch, since)
    if page_token is None and known == mark and wait_seconds > 0:
        await watches_of(request).registry.wait(known, wait_seconds)
        # the token may have been revoked meanwhile
        viewer = await to_thread.run_sync(identify, state, credentials)
        mark = await to_thread.run_sync(state.metastore.registry.mark)
    begin: Begin = (0, None)
    if page_token is not None:
        begin = _begin(page_token, list_name(mark.epoch, viewer.name))
    elif epoch == mark.epoch and since <= mark.revision:
        begin = (since, None)
    pages: Pages = request.app.state.pages
    body = await to_thread.run_sync(pages.page, viewer.name, mark, begin, page_size)
    return await to_thread.run_sync(_answer, request, body)


def _begin(token: str, name: str) -> Begin:
    parts = read_token(token, name)
    if len(parts) != 2 or not parts[0].isdecimal() or len(parts[0]) > 19:
        raise foreign_token()
    return int(parts[0]), parts[1]


def _answer(request: Request, body: bytes) -> Response:
    headers = {"Vary": "Accept-Encoding", "Cache-Control": "no-store"}
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        body = gzip.decompress(body)
    return Response(body, media_type="application/json", headers=headers)


@router.post("/decisions", operation_id="logDecisions")
def log_decisions(
    state: State, viewer: Viewer, body: models.DecisionBatch
) -> models.DecisionsLogged:
    """Note what a session decided about its queries; a batch sent again is noted once. Whose the
    decisions are, the token says; hits on caches that the principal could not use are left out."""
    now = state.metastore.clock.now()
    records = believed(
        state.metastore, viewer.name, [d.record(viewer.name, now) for d in body.decisions]
    )
    batch = digest_of(viewer.name.encode(), body.batch_id.encode())
    stored = state.metastore.decisions.log(records, batch_id=batch)
    return models.DecisionsLogged(stored=len(records) if stored else 0, repeated=not stored)
