"""Errors as clients see them: one envelope, a stable type, never a stack trace."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from cachemgr.errors import (
    NO_SPARK,
    AlreadyExistsError,
    CacheManagerError,
    ConflictError,
    ErrorCode,
    MetastoreError,
    NotFoundError,
    TooManyError,
)
from cachemgr.printable import printable
from cachemgr.secrets import masked

_log = logging.getLogger("cachemgr.api")
RETRY_SECONDS: Final = 5
# of a path that is not ours, where it is shown
LONGEST_PATH: Final = 200
_NAMES: Final = {
    401: ErrorCode.UNAUTHENTICATED,
    403: ErrorCode.FORBIDDEN,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    413: ErrorCode.REQUEST_TOO_LARGE,
    429: ErrorCode.TOO_MANY_REQUESTS,
}


class ApiError(Exception):
    """An error of the door itself.

    Args:
        status: The HTTP status.
        kind: Stable identifier in UPPER_SNAKE.
        message: What happened, and what to do next.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message


def status_of(error: CacheManagerError) -> int:
    """The HTTP status of one of our errors."""
    if isinstance(error, NotFoundError):
        return 404
    if isinstance(error, AlreadyExistsError | ConflictError):
        return 409
    if isinstance(error, TooManyError):
        return 429
    # whatever is wrong with the metastore or Spark, the request was not: it may be sent again
    if isinstance(error, MetastoreError) or error.code in NO_SPARK:
        return 503
    if error.code == ErrorCode.RESULT_OF_ANOTHER_RELEASE:  # which another replica may be of
        return 503
    return 500 if error.code == ErrorCode.RESULT_DAMAGED else 400


def envelope(request: Request, status: int, kind: str, message: str) -> JSONResponse:
    """The one body of all errors."""
    body: dict[str, Any] = {
        "error": {
            "type": kind,
            "message": masked(message),
            "code": status,
            "requestId": getattr(request.state, "request_id", None),
        }
    }
    headers = {}
    if status == 503:
        headers["Retry-After"] = str(RETRY_SECONDS)
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="cachemgr"'
    return JSONResponse(body, status_code=status, headers=headers)


def answer_of(request: Request, error: Exception) -> JSONResponse:
    """What is answered where an error ended a request."""
    if isinstance(error, CacheManagerError):
        return envelope(request, status_of(error), error.code, error.message)
    if isinstance(error, ApiError):
        return envelope(request, error.status, error.kind, error.message)
    return unexpected(request, error)


def install(app: FastAPI) -> None:
    """Answer every error of `app` in the envelope."""
    app.add_exception_handler(CacheManagerError, _ours)
    app.add_exception_handler(ApiError, _ours)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)


async def _ours(request: Request, error: Exception) -> JSONResponse:
    return answer_of(request, error)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 400 and error.__cause__ is not None:  # while reading the body
        return envelope(request, 400, ErrorCode.INVALID_REQUEST, _unread(error.__cause__))
    kind = _NAMES.get(error.status_code, ErrorCode.HTTP_ERROR)
    told = _no_path(request) if error.status_code == 404 else str(error.detail)
    answer = envelope(request, error.status_code, kind, told)
    answer.headers.update(error.headers or {})
    if error.status_code == 405:
        answer.headers["Allow"] = _allowed(request) or answer.headers.get("Allow", "")
    return answer


def _no_path(request: Request) -> str:
    """What is said of a path that no route has; all else that is not found has its own error."""
    path = str(request.scope["path"])
    shown = path if len(path) <= LONGEST_PATH else f"{path[:LONGEST_PATH]}…"
    return (
        f"there is no {printable(shown, one_line=True)}: paths begin with /api/v1, and "
        f"GET {request.app.openapi_url} lists them"
    )


def _unread(cause: BaseException) -> str:
    """Why a body could not even be taken for JSON with a mistake in it."""
    if isinstance(cause, RecursionError):
        return "the body's JSON is nested too deeply"
    if isinstance(cause, UnicodeDecodeError):
        return f"the body is to be JSON in UTF-8, and byte {cause.start} of it is not UTF-8"
    if isinstance(cause, ValueError) and "digits" in str(cause):
        most = sys.get_int_max_str_digits()
        return f"the body has a number of more than {most:,} digits: no field takes such a number"
    return "the body cannot be read as JSON"


def _allowed(request: Request) -> str:
    """All methods of a path: the router names those of the first route that it finds alone."""
    route = request.scope.get("route")
    methods = request.app.openapi()["paths"].get(getattr(route, "path_format", None), {})
    return ", ".join(sorted(method.upper() for method in methods))


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    parts = []
    kind = request.headers.get("content-type", "")
    if isinstance(error.body, str | bytes) and "json" not in kind.lower():
        said = f"its Content-Type is {kind}" if kind else "it has no Content-Type"
        text = f"the body is to be JSON, and {said}: send Content-Type: application/json"
        return envelope(request, 422, ErrorCode.INVALID_REQUEST, text)
    for found in error.errors()[:5]:
        if found.get("type") == "json_invalid":
            return envelope(request, 422, ErrorCode.INVALID_REQUEST, _mistake(found))
        where = ".".join(str(part) for part in found.get("loc", ()) if part != "body")
        parts.append(f"{where or 'the body'}: {found.get('msg', 'is not accepted')}")
    return envelope(request, 422, ErrorCode.INVALID_REQUEST, "; ".join(parts))


def _mistake(found: dict[str, Any]) -> str:
    """What is wrong with a body's JSON, and where."""
    at, what = found["loc"][-1], str(found.get("ctx", {}).get("error", "")).lower()
    return f"the body is not valid JSON: {what or 'a mistake'} at character {at}"


def unexpected(request: Request, error: Exception) -> JSONResponse:
    """A bug of ours: the client learns the request id, the log the rest."""
    request_id = getattr(request.state, "request_id", None)
    _log.error("request %s failed", request_id, exc_info=error)
    return envelope(
        request,
        500,
        ErrorCode.INTERNAL_ERROR,
        f"an unexpected error; the service's log has it under request {request_id}",
    )
