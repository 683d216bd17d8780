"""/api/v1/statements: queries whose rows are computed once, into files, and read from there.

What a principal reads of a result is asked for anew with each piece of it: his token, and whether
he may still read every table that its rows came from.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Final

from anyio import to_thread
from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials

from cachemgr.api import statement_models as models
from cachemgr.api.dependencies import (
    ApiState,
    Credentials,
    Principal,
    State,
    Viewer,
    digest_of,
    identify,
)
from cachemgr.api.errors import ApiError
from cachemgr.api.long_poll import watches_of
from cachemgr.api.paging import PageSize, PageToken, foreign_token, read_token, write_token
from cachemgr.config.result_settings import result_settings
from cachemgr.config.write_settings import write_settings
from cachemgr.errors import CacheManagerError, ErrorCode, NotFoundError
from cachemgr.metastore.statement_records import StatementRecord, StatementRequest
from cachemgr.results.kinds import ResultFormat
from cachemgr.results.manifest import damaged
from cachemgr.results.positions import FIRST, Position, Signer
from cachemgr.roles import Role
from cachemgr.vocabulary import StatementState

if TYPE_CHECKING:  # they need pyarrow, which a service without results may lack
    from cachemgr.results.formats import Marked
    from cachemgr.results.reader import Result

router = APIRouter(prefix="/api/v1", tags=["statements"])
_log = logging.getLogger("cachemgr.api")
StatementId = Annotated[str, Path(max_length=64)]
NEXT: Final = "Cachemgr-Next-Page-Token"
_MOST_ROWS: Final = 1_000_000
_MOST_BYTES: Final = 32 << 20
_LIST: Final = "statements"
# A reader that leaves keeps a result for so long at most; whoever reads on says so all the while.
_READING_SECONDS: Final = 120.0
_LOOK_AGAIN_SECONDS: Final = 1.0
Wait = Annotated[
    float, Query(alias="waitSeconds", ge=0, le=60, description="Answer later, once it is over.")
]


@router.post("/statements", status_code=202, operation_id="submitStatement")
async def submit(
    request: Request,
    response: Response,
    state: State,
    viewer: Viewer,
    body: models.NewStatement,
    key: Annotated[
        str | None, Header(alias="Idempotency-Key", min_length=1, max_length=128)
    ] = None,
) -> models.Statement:
    """Have the rows of a query computed, or, for those whom `statement_writers` names, rows of a
    table changed. It reads and writes those tables alone that an admin has granted."""
    submitted = await to_thread.run_sync(_submit, state, viewer, body, key)
    response.headers["Location"] = f"{router.prefix}/statements/{submitted.id}"
    if body.wait_seconds > 0 and not submitted.state.is_over:
        await watches_of(request).statements.wait(submitted.id, body.wait_seconds)
        submitted = await to_thread.run_sync(_shown_to, state, viewer, submitted.id)
    if submitted.state.is_over:
        response.status_code = 200
    return models.Statement.of(submitted, viewer.name)


@router.get("/statements", operation_id="listStatements")
def list_statements(
    state: State,
    viewer: Viewer,
    statement_state: Annotated[StatementState | None, Query(alias="state")] = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> models.StatementList:
    """Statements, newest first: a viewer's own, and those of everybody for operators."""
    found = state.metastore.statements.of(
        None if viewer.role.covers(Role.OPERATOR) else viewer.name,
        state=statement_state,
        limit=page_size + 1,
        before=None if page_token is None else _before(read_token(page_token, _LIST)),
    )
    shown = found[:page_size]
    more = len(found) > page_size
    after = write_token(_LIST, (shown[-1].created_at.isoformat(), shown[-1].id)) if more else None
    return models.StatementList(
        statements=[models.Statement.of(each, viewer.name) for each in shown], next_page_token=after
    )


@router.get("/statements/{statement_id}", operation_id="getStatement")
async def get_statement(
    request: Request, state: State, viewer: Viewer, statement_id: StatementId, wait: Wait = 0
) -> models.Statement:
    """One statement; with waitSeconds the answer comes when it is over, or the time is."""
    found = await to_thread.run_sync(_shown_to, state, viewer, statement_id)
    if wait > 0 and not found.state.is_over:
        await watches_of(request).statements.wait(statement_id, wait)
        found = await to_thread.run_sync(_shown_to, state, viewer, statement_id)
    return models.Statement.of(found, viewer.name)


@router.post("/statements/{statement_id}/cancel", operation_id="cancelStatement")
def cancel_statement(state: State, viewer: Viewer, statement_id: StatementId) -> models.Statement:
    """Cancel a statement: over at once if it waits, else its process is told to stop."""
    _shown_to(state, viewer, statement_id)
    cancelled = state.metastore.statements.cancel(statement_id, by=viewer.name)
    return models.Statement.of(cancelled, viewer.name)


@router.delete("/statements/{statement_id}/result", status_code=204, operation_id="deleteResult")
def delete_result(state: State, viewer: Viewer, statement_id: StatementId) -> None:
    """Delete a result before its time."""
    _shown_to(state, viewer, statement_id)
    state.metastore.statements.discard(statement_id)


@router.get("/statements/{statement_id}/rows", operation_id="readRows", response_class=Response)
def read_rows(
    state: State,
    viewer: Viewer,
    statement_id: StatementId,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=_MOST_ROWS)] = 10_000,
    page_token: PageToken = None,
) -> Response:
    """A page of a result, as an Arrow IPC stream; one of wide rows may have fewer. The next page is
    asked for with what the header Cachemgr-Next-Page-Token says, which the last one has not."""
    from cachemgr.results.formats import encoded

    found, result = _readable(state, viewer, statement_id)
    signer = Signer(found.id, viewer.name, found.secret)
    start = FIRST if page_token is None else signer.position(page_token)
    pieces, size = [], 0
    for piece in result.pieces(start, page_size):
        pieces.append(piece)
        size += piece.batch.nbytes
        if size >= _MOST_BYTES:
            break
    after = pieces[-1].after if pieces else None
    marked = [(piece.batch, "") for piece in pieces]
    content = b"".join(encoded(ResultFormat.ARROW, result.schema(), marked))
    headers = {} if after is None else {NEXT: signer.token(after)}
    return Response(content, media_type=ResultFormat.ARROW.media_type, headers=headers)


@router.get("/statements/{statement_id}/result", operation_id="readResult", response_class=Response)
def read_result(
    state: State,
    viewer: Viewer,
    statement_id: StatementId,
    request: Request,
    credentials: Credentials,
    kind: Annotated[ResultFormat, Query(alias="format")] = ResultFormat.ARROW,
    page_token: PageToken = None,
) -> Response:
    """All rows of a result, or those from a page on, in one stream. In Arrow's the metadata of each
    batch say, as `next`, with which pageToken somebody goes on who was cut off behind it."""
    from cachemgr.results.formats import encoded

    found, result = _readable(state, viewer, statement_id)
    signer = Signer(found.id, viewer.name, found.secret)
    start = FIRST if page_token is None else signer.position(page_token)
    schema, rows = result.schema(), _watched(state, credentials, result, signer, start)
    content = encoded(kind, schema, rows)
    first = next(content, b"")  # what fails at once is told as any error is
    pieces = _to_its_end(request, chain([first], content))
    return StreamingResponse(pieces, media_type=kind.media_type)


@router.get("/statements/{statement_id}/files", operation_id="listFiles")
def list_files(state: State, viewer: Viewer, statement_id: StatementId) -> models.StatementFiles:
    """The Parquet files of a result in the order of its rows, to be read as they are."""
    _, result = _readable(state, viewer, statement_id)
    manifest = result.manifest
    return models.StatementFiles.model_validate(
        {
            "columns": [{"name": c.name, "type": c.type} for c in manifest.columns],
            "files": [
                {
                    "number": number,
                    "rows": file.rows,
                    "bytes": file.bytes,
                    "href": f"{router.prefix}/statements/{statement_id}/files/{number}",
                }
                for number, file in enumerate(manifest.files)
            ],
        }
    )


@router.get(
    "/statements/{statement_id}/files/{number}", operation_id="readFile", response_class=Response
)
def read_file(
    state: State,
    viewer: Viewer,
    statement_id: StatementId,
    number: Annotated[int, Path(ge=0, le=10**9)],
) -> Response:
    """One of these files, whole or in ranges."""
    found, result = _readable(state, viewer, statement_id)
    files = result.manifest.files
    if number >= len(files):
        raise NotFoundError(
            ErrorCode.NOT_FOUND,
            f"the result of statement {statement_id} has {len(files)} files: the last of them is "
            f"{len(files) - 1}",
        )
    assert state.results is not None
    file, folder = files[number], state.results.folder(found.id, _run(found))
    try:
        is_whole = folder.size(file.name) == file.bytes
    except OSError:
        is_whole = False
    if not is_whole:
        raise damaged(f"{file.name} is another file than was written")
    media = ResultFormat.PARQUET.media_type
    etag = f'"{found.id}-{_run(found)}-{number}"'
    if state.results.is_local:
        path = f"{folder.path}/{file.name}"
        return FileResponse(path, media_type=media, headers={"etag": etag})
    headers = {"etag": etag, "content-length": str(file.bytes)}
    return StreamingResponse(_content(folder.open(file.name)), media_type=media, headers=headers)


def _submit(
    state: ApiState, viewer: Principal, body: models.NewStatement, key: str | None
) -> StatementRecord:
    bounds = state.statement_bounds
    if state.results is None or bounds is None:
        raise ApiError(
            404,
            ErrorCode.STATEMENTS_OFF,
            "this service runs no statements: set results_location, and run `cachemgr worker "
            "--statements` beside it",
        )
    known = {key for key in result_settings(body.settings) if key.startswith("spark.sql.")}
    known |= write_settings(body.settings).keys()
    foreign = next((key for key in body.settings if key not in known), None)
    if foreign is not None:
        raise CacheManagerError(
            ErrorCode.SETTING_REFUSED,
            f"{foreign} is not a setting of a statement, which takes those of spark.sql that "
            "change rows, and spark.sql.sources.partitionOverwriteMode (static or dynamic): leave "
            "it out",
        )
    digest = digest_of(body.model_dump_json(exclude={"wait_seconds"}).encode())
    asked = StatementRequest(
        viewer.name,
        digest,
        body.sql,
        min(body.timeout_seconds or bounds.seconds, bounds.seconds),
        min(body.keep_seconds or bounds.keep_seconds, bounds.keep_seconds),
        key,
        body.catalog,
        body.schema_name,
        body.settings,
        {"maxRows": body.max_rows},
    )
    submitted, _ = state.metastore.statements.submit(asked, most_waiting=bounds.waiting_each)
    return submitted


def _before(place: list[str]) -> tuple[datetime, str]:
    try:
        at, last = place
        return datetime.fromisoformat(at), last
    except ValueError:
        raise foreign_token() from None


def _shown_to(state: ApiState, viewer: Principal, statement_id: str) -> StatementRecord:
    """A statement, for its principal and operators."""
    found = state.metastore.statements.get(statement_id)
    its_own = found is not None and found.principal == viewer.name
    if found is None or not (its_own or viewer.role.covers(Role.OPERATOR)):
        raise NotFoundError(
            ErrorCode.STATEMENT_NOT_FOUND,
            f"there is no statement {statement_id} of {viewer.name}: GET /api/v1/statements lists "
            "those that there are",
        )
    return found


def _readable(
    state: ApiState, viewer: Principal, statement_id: str
) -> tuple[StatementRecord, Result]:
    """A statement and its result, for its principal alone, as long as he may read its tables."""
    found = _shown_to(state, viewer, statement_id)
    if found.principal != viewer.name:
        raise ApiError(
            403,
            ErrorCode.FORBIDDEN,
            f"the rows of statement {statement_id} are {found.principal}'s",
        )
    found = _read_on(state, viewer, statement_id)
    assert state.results is not None
    from cachemgr.results.reader import Result

    folder = state.results.folder(found.id, _run(found))
    has_files = (found.result or {}).get("files", 1) > 0
    return found, Result.at(folder) if has_files else Result.without_rows(folder)


def _read_on(state: ApiState, viewer: Principal, statement_id: str) -> StatementRecord:
    """Keep a result for a reader, who may still read what its rows came from."""
    if state.results is None:
        raise ApiError(
            404, ErrorCode.STATEMENTS_OFF, "this service has no results: set results_location"
        )
    until = state.metastore.clock.now() + timedelta(seconds=_READING_SECONDS)
    found = state.metastore.statements.reading(statement_id, until=until)
    granted = state.metastore.select_grants.of(viewer.name)
    if not granted.issuperset((found.result or {})["places"]):
        raise ApiError(
            403,
            ErrorCode.SELECT_NOT_GRANTED,
            f"a table that the rows of statement {statement_id} came from is not granted to "
            f"{viewer.name} any more: ask an admin",
        )
    return found


def _run(found: StatementRecord) -> int:
    return int((found.result or {})["run"])


def _watched(
    state: ApiState,
    credentials: HTTPAuthorizationCredentials | None,
    result: Result,
    signer: Signer,
    start: Position,
) -> Iterator[Marked]:
    """The rows of a result, as long as their reader has a right to them."""
    looked = time.monotonic()
    for piece in result.pieces(start):
        yield piece.batch, "" if piece.after is None else signer.token(piece.after)
        if time.monotonic() - looked > _LOOK_AGAIN_SECONDS:
            looked = time.monotonic()
            _read_on(state, identify(state, credentials), signer.statement)


def _to_its_end(request: Request, content: Iterator[bytes]) -> Iterator[bytes]:
    """What is sent piece by piece; where it fails half-way the connection breaks (`middleware`)."""
    try:
        yield from content
    except Exception as error:
        request.state.is_broken_off = True
        told = error.message if isinstance(error, ApiError | CacheManagerError) else repr(error)
        _log.warning("an answer with rows was broken off: %s", told)


def _content(file: Any) -> Iterator[bytes]:
    with file:
        while piece := file.read(1 << 20):
            yield bytes(piece)
