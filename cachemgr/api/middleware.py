"""Around every request: its id, its size, its repetition, and how long it took."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.responses import JSONResponse

from cachemgr.api.errors import RETRY_SECONDS, envelope, status_of, unexpected
from cachemgr.api.state import ApiState, digest_of
from cachemgr.errors import CacheManagerError
from cachemgr.metastore.access import KEY_ABANDONED_SECONDS

MAX_BODY: Final = 2 * 1024 * 1024
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_log = logging.getLogger("cachemgr.api")
Next = Callable[[Request], Awaitable[Response]]


class RateLimit:
    """A bucket of tokens for each client: so many requests a second, with bursts of twice that.

    Args:
        rate: Requests a second; 0 does not limit.
        clock: Monotonic seconds.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, client: str) -> bool:
        """Whether one more request of a client may pass now."""
        if self._rate <= 0:
            return True
        now = self._clock()
        level, at = self._buckets.pop(client, (2 * self._rate, now))
        level = min(2 * self._rate, level + (now - at) * self._rate)
        passes = level >= 1
        self._buckets[client] = (level - 1 if passes else level, now)
        while len(self._buckets) > 10_000:
            self._buckets.popitem(last=False)
        return passes


def install(app: FastAPI, metrics: CollectorRegistry, limit: RateLimit) -> None:
    """Put everything around the requests of `app`; what stands last here is outermost."""
    requests = Counter(
        "cachemgr_requests",
        "Requests by route, method and status.",
        ("route", "method", "status"),
        registry=metrics,
    )
    seconds = Histogram(
        "cachemgr_request_seconds", "How long requests took.", ("route",), registry=metrics
    )

    @app.middleware("http")
    async def repeat(request: Request, call_next: Next) -> Response:
        key = request.headers.get("Idempotency-Key")
        if key is None or request.method != "POST":
            return await call_next(request)
        if _KEY.fullmatch(key) is None:
            return envelope(
                request,
                400,
                "IDEMPOTENCY_KEY",
                "Idempotency-Key is 1 to 128 printable characters without spaces",
            )
        return await _once(request, call_next, key)

    @app.middleware("http")
    async def bounded(request: Request, call_next: Next) -> Response:
        client = request.headers.get("Authorization") or (
            request.client.host if request.client else ""
        )
        if not limit.allows(digest_of(client.encode())):
            answer = envelope(
                request, 429, "TOO_MANY_REQUESTS", "too many requests: try again in a second"
            )
            answer.headers["Retry-After"] = "1"
            return answer
        size = request.headers.get("Content-Length", "0")
        if not size.isdigit() or int(size) > MAX_BODY or len(await request.body()) > MAX_BODY:
            return envelope(
                request, 413, "REQUEST_TOO_LARGE", f"a request has at most {MAX_BODY} bytes"
            )
        if await _holds_nul(request):
            return envelope(
                request, 400, "NUL_CHARACTER", "a request holds no NUL character: take it out"
            )
        return await call_next(request)

    @app.middleware("http")
    async def observed(request: Request, call_next: Next) -> Response:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        request.state.request_id = request_id
        started = time.perf_counter()
        try:
            response = await call_next(request)
        except CacheManagerError as error:
            response = envelope(request, status_of(error), error.code, error.message)
        except Exception as error:
            response = unexpected(request, error)
        took = time.perf_counter() - started
        route = request.scope.get("route")
        path = getattr(route, "path", "unknown")
        requests.labels(path, request.method, str(response.status_code)).inc()
        seconds.labels(path).observe(took)
        response.headers["X-Request-Id"] = request_id
        _log.info(
            "%s %s %s %.0f ms [%s]",
            request.method,
            path,
            response.status_code,
            took * 1000,
            request_id,
        )
        return response


async def _holds_nul(request: Request) -> bool:
    """No name or text of ours has one, and PostgreSQL stores none."""
    asked = f"{request.url.path}?{unquote(request.url.query)}"
    body = await request.body()
    return "\0" in asked or b"\0" in body or b"\\u0000" in body


async def _once(request: Request, call_next: Next, key: str) -> Response:
    """A POST that is carried out once, however often it is sent."""
    state: ApiState = request.app.state.cachemgr
    # a token stands for its principal: two tokens of one principal may share keys
    sender = await to_thread.run_sync(_sender, state, request.headers.get("Authorization", ""))
    asked = digest_of(request.url.path.encode(), request.url.query.encode(), await request.body())
    writer = state.metastore.writer
    known = await to_thread.run_sync(writer.begin_request, sender, key, asked)
    if not known.is_new and not known.same:
        return envelope(
            request,
            422,
            "IDEMPOTENCY_KEY_REUSED",
            "this Idempotency-Key was sent with another request: take a new one",
        )
    if not known.is_new and known.status is None:
        answer = envelope(
            request, 409, "IDEMPOTENCY_IN_PROGRESS", "the first request is still being carried out"
        )
        answer.headers["Retry-After"] = str(RETRY_SECONDS)
        return answer
    if not known.is_new:
        assert known.status is not None
        kept = dict(known.body or {})
        return JSONResponse(
            kept.get("body"),
            status_code=known.status,
            headers={**kept.get("headers", {}), "Idempotency-Replayed": "true"},
        )
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
        await to_thread.run_sync(writer.end_request, sender, key, status, content)


async def _keep(state: ApiState, sender: str, key: str) -> None:
    """While a request is carried out, nobody else may take it for abandoned."""
    while True:
        await asyncio.sleep(KEY_ABANDONED_SECONDS / 3)
        with suppress(CacheManagerError):  # the database is away: the next time will do
            await to_thread.run_sync(state.metastore.writer.keep_request, sender, key)


def _sender(state: ApiState, authorization: str) -> str:
    token = authorization.removeprefix("Bearer ").strip()
    found = state.metastore.reader.bearer(token) if token else None
    return "" if found is None else found.principal
