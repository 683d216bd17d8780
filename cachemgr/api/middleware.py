"""Around every request: its id, its size, its repetition, and how long it took."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from cachemgr.api.dependencies import ApiState, digest_of
from cachemgr.api.errors import LONGEST_PATH, RETRY_SECONDS, answer_of, envelope
from cachemgr.api.guards import (
    BodyLimit,
    Limits,
    holds_half_character,
    holds_nul,
    is_foreign,
    is_protected,
    is_too_large,
    repeated_parameter,
)
from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.metastore.idempotency import KEY_ABANDONED_SECONDS
from cachemgr.metastore.records import Repeated

MAX_BODY: Final = 2 * 1024 * 1024
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
# Asked for each second by whoever watches or waits.
_PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
# The statement of a key is told of as it stands, and not as it stood when it was submitted.
_KNOWS_ITS_KEYS: Final = "/api/v1/statements"
_log = logging.getLogger("cachemgr.api")
Next = Callable[[Request], Awaitable[Response]]


def install(app: FastAPI, metrics: CollectorRegistry, limits: Limits) -> None:
    """Put everything around the requests of `app`.

    It is one layer for Starlette: each costs a task and a queue of its own for every request.
    """
    app.middleware("http")(_Around(metrics, limits).observed)
    app.add_middleware(BodyLimit, most=MAX_BODY)


class _Around:
    """What is done around a request, from the outside inwards: observed, bounded, repeated.

    Args:
        metrics: Where requests are counted.
        limits: How many a client may send.
    """

    def __init__(self, metrics: CollectorRegistry, limits: Limits) -> None:
        self._limits = limits
        self._requests = Counter(
            "cachemgr_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=metrics,
        )
        self._seconds = Histogram(
            "cachemgr_request_seconds", "How long requests took.", ("route",), registry=metrics
        )

    async def observed(self, request: Request, call_next: Next) -> Response:
        """Give it an id, count it, log it, and answer whatever went wrong."""
        request_id, started = self.begin(request.headers.get("X-Request-Id", ""))
        request.state.request_id = request_id
        try:
            response = await self._bounded(request, call_next)
        except ClientDisconnect:  # in the middle of what it sent; nobody reads this
            response = envelope(request, 400, ErrorCode.CLIENT_GONE, "the request ended too early")
        except Exception as error:
            response = answer_of(request, error)
        body = getattr(response, "body_iterator", None)
        if body is not None:
            response.body_iterator = _to_its_end(request, body)  # type: ignore[attr-defined]
        path = getattr(request.scope.get("route"), "path", "unknown")
        asked_for = request.url.path[:LONGEST_PATH] if path == "unknown" else ""
        self.noted(request.method, path, response.status_code, started, request_id, asked_for)
        response.headers["X-Request-Id"] = request_id
        return response

    def begin(self, given: str) -> tuple[str, float]:
        """The id of a request that may have `given` one, and the moment that it begins."""
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        return request_id, time.perf_counter()

    def noted(
        self,
        method: str,
        path: str,
        status: int,
        started: float,
        request_id: str,
        asked_for: str = "",
    ) -> None:
        """Count and log a request that was answered; `asked_for` is the path of one that no route
        has, which is logged and no label of a metric."""
        took = time.perf_counter() - started
        self._requests.labels(path, method, str(status)).inc()
        self._seconds.labels(path).observe(took)
        level = logging.DEBUG if path in _PROBES and status < 400 else logging.INFO
        shown = asked_for or path
        _log.log(level, "%s %s %s %.0f ms [%s]", method, shown, status, took * 1000, request_id)

    async def _bounded(self, request: Request, call_next: Next) -> Response:
        """Refuse what is too much, or cannot be meant."""
        host = request.client.host if request.client else ""
        token = request.headers.get("Authorization", "")
        wait = self._limits.seconds_to_wait(host, token)
        if wait > 0:
            answer = envelope(
                request,
                429,
                ErrorCode.TOO_MANY_REQUESTS,
                f"too many requests: try again in {wait} s",
            )
            answer.headers["Retry-After"] = str(wait)
            return answer
        refusal = await _refusal(request)
        if refusal is not None:
            return refusal
        response = await _repeated(request, call_next)
        if response.status_code == 401:
            self._limits.refused(host, token)
        elif response.status_code < 400 and is_protected(request):
            self._limits.accepted(host, token)
        return response


class BrokenOffError(Exception):
    """The rest of an answer cannot be had."""


async def _to_its_end(request: Request, body: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """An answer that its endpoint sends piece by piece. Starlette ends one that fails half-way like
    any other, and its reader would take the half for the whole; now the connection breaks."""
    async for piece in body:
        yield piece
    if getattr(request.state, "is_broken_off", False):
        raise BrokenOffError("an answer was broken off; the log says why")


async def _refusal(request: Request) -> Response | None:
    """Why a request is not looked at further; None if it is."""
    size = request.headers.get("Content-Length", "0")
    said = size.isascii() and size.isdigit() and len(size) < 20 and int(size) <= MAX_BODY
    if said:
        await request.body()
    if not said or is_too_large(request):
        return envelope(
            request, 413, ErrorCode.REQUEST_TOO_LARGE, f"a request has at most {MAX_BODY} bytes"
        )
    if await _holds_nul(request):
        return envelope(
            request, 400, ErrorCode.NUL_CHARACTER, "a request holds no NUL character: take it out"
        )
    if holds_half_character(await request.body()):
        return envelope(
            request,
            400,
            ErrorCode.HALF_CHARACTER,
            "a request holds one half of a surrogate pair (\\ud800 to \\udfff) alone: write both "
            "halves, or the character itself",
        )
    repeated = repeated_parameter(request)
    if repeated is not None:
        return envelope(
            request,
            400,
            ErrorCode.REPEATED_PARAMETER,
            f"{repeated} is given more than once: give one",
        )
    if is_foreign(request) and await to_thread.run_sync(request.app.state.cachemgr.open_to_all):
        return envelope(
            request,
            403,
            ErrorCode.FOREIGN_SITE,
            "without tokens this service answers requests of this machine alone, and this one "
            "comes from a page of another site, or asks for this machine by another name: "
            "make a token with `cachemgr token create`",
        )
    return None


async def _repeated(request: Request, call_next: Next) -> Response:
    """Carry a POST with an Idempotency-Key out once."""
    key = request.headers.get("Idempotency-Key")
    if key is None or request.method != "POST" or request.url.path == _KNOWS_ITS_KEYS:
        return await call_next(request)
    if _KEY.fullmatch(key) is None:
        return envelope(
            request,
            400,
            ErrorCode.IDEMPOTENCY_KEY,
            "Idempotency-Key is 1 to 128 printable characters without spaces",
        )
    return await _once(request, call_next, key)


async def _holds_nul(request: Request) -> bool:
    asked = f"{request.url.path}?{unquote(request.url.query)}"
    return "\0" in asked or holds_nul(await request.body())


async def _once(request: Request, call_next: Next, key: str) -> Response:
    """A POST that is carried out once, however often it is sent."""
    state: ApiState = request.app.state.cachemgr
    # a token stands for its principal: two tokens of one principal may share keys
    sender = await to_thread.run_sync(_sender, state, request.headers.get("Authorization", ""))
    if sender is None:  # it will be refused, and is not worth remembering
        return await call_next(request)
    asked = digest_of(request.url.path.encode(), request.url.query.encode(), await request.body())
    known = await to_thread.run_sync(state.metastore.idempotency.begin, sender, key, asked)
    if not known.is_new:
        return _sent_before(request, known)
    request.state.again = known.again
    status: int | None = None
    content: dict[str, Any] | None = None
    keeping = asyncio.create_task(_keep(state, sender, key))
    try:
        response = await call_next(request)
        body = b"".join([part async for part in response.body_iterator])  # type: ignore[attr-defined]
        # what failed for want of a token, of time or of a database may be tried again
        if response.status_code < 500 and response.status_code not in (401, 403, 429):
            status = response.status_code
            location = response.headers.get("Location")
            content = {
                "body": json.loads(body) if body else None,
                "headers": {} if location is None else {"Location": location},
            }
        return Response(body, response.status_code, dict(response.headers))
    finally:
        keeping.cancel()
        await to_thread.run_sync(state.metastore.idempotency.end, sender, key, status, content)


def _sent_before(request: Request, known: Repeated) -> Response:
    """The answer to a request whose key was sent before: the kept one, or why there is none."""
    if not known.same:
        return envelope(
            request,
            422,
            ErrorCode.IDEMPOTENCY_KEY_REUSED,
            "this Idempotency-Key was sent with another request: take a new one",
        )
    if known.status is None:
        answer = envelope(
            request,
            409,
            ErrorCode.IDEMPOTENCY_IN_PROGRESS,
            "the first request is still being carried out",
        )
        answer.headers["Retry-After"] = str(RETRY_SECONDS)
        return answer
    kept = dict(known.body or {})
    return JSONResponse(
        kept.get("body"),
        status_code=known.status,
        headers={**kept.get("headers", {}), "Idempotency-Replayed": "true"},
    )


async def _keep(state: ApiState, sender: str, key: str) -> None:
    """While a request is carried out, nobody else may take it for abandoned."""
    while True:
        await asyncio.sleep(KEY_ABANDONED_SECONDS / 3)
        with suppress(CacheManagerError):  # the database is away: the next time will do
            await to_thread.run_sync(state.metastore.idempotency.keep, sender, key)


def _sender(state: ApiState, authorization: str) -> str | None:
    """Whose keys these are; None for nobody."""
    token = authorization.removeprefix("Bearer ").strip()
    if not token:
        return "" if state.open_to_all() else None
    found = state.metastore.tokens.bearer(token)
    return None if found is None else found.principal
