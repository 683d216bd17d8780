"""A short way for the endpoints that are asked for each query of a gateway.

The web framework spends more on a request than deciding a query of a known shape costs: a task and
two queues for each layer around the endpoints, dependencies, a second look at the answer. So a
request that is plainly in order is answered here. Whatever is unusual about one (a token that has
to be looked up, a body that is not accepted, too many requests, an Idempotency-Key, a long text)
goes the ordinary way, which says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cachemgr.api.dependencies import ApiState, Principal, digest_of
from cachemgr.api.errors import answer_of
from cachemgr.api.guards import Limits, holds_nul
from cachemgr.text.limits import LONG_TEXT

MOST_BYTES: Final = 2 * LONG_TEXT
_UNUSUAL: Final = frozenset({b"idempotency-key", b"transfer-encoding", b"content-encoding"})
_BEARER: Final = b"Bearer "


@dataclass(frozen=True)
class QuickEndpoint:
    """A POST that only answers a question.

    Args:
        body: What the request's body has to be.
        run: Gives the answer.
    """

    body: type[BaseModel]
    run: Callable[[ApiState, Principal, Any], Awaitable[BaseModel]]


# (path, status, started, request id) of each request that was answered
Noted = Callable[[str, int, float, str], None]


class QuickWay:
    """Answers requests that are in order; passes the others on as they came.

    Args:
        app: The ordinary way.
        state: What the endpoints work on.
        endpoints: By path.
        limits: How many requests a client may send.
        begin: Gives the request's id, and the moment it began.
        noted: Told of each request that was answered here.
    """

    def __init__(
        self,
        app: ASGIApp,
        state: ApiState,
        endpoints: Mapping[str, QuickEndpoint],
        limits: Limits,
        begin: Callable[[str], tuple[str, float]],
        noted: Noted,
    ) -> None:
        self._app = app
        self._state = state
        self._endpoints = endpoints
        self._limits = limits
        self._begin = begin
        self._noted = noted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" else None
        headers = _plain_headers(scope) if endpoint is not None else None
        if endpoint is None or headers is None:
            await self._app(scope, receive, send)
            return
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id, started = self._begin(given)
        authorization = headers[b"authorization"]
        principal = self._state.recent.get(digest_of(authorization.removeprefix(_BEARER)))
        read: list[Message] = []
        body = None if principal is None else await _read(receive, read)
        asked = None if body is None else _accepted(endpoint.body, body)
        token, client = authorization.decode("latin-1"), scope.get("client")
        host = client[0] if client else ""
        # asked last: it counts the request, which the ordinary way does as well
        if principal is None or asked is None or self._limits.seconds_to_wait(host, token) > 0:
            await self._app(scope, _replayed(read, receive), send)
            return
        scope.setdefault("state", {})["request_id"] = request_id
        try:
            found = await endpoint.run(self._state, principal, asked)
        except Exception as error:
            answer = answer_of(Request(scope), error)
            answer.headers["X-Request-Id"] = request_id
            self._noted(scope["path"], answer.status_code, started, request_id)
            await answer(scope, receive, send)
            return
        self._limits.accepted(host, token)
        self._noted(scope["path"], 200, started, request_id)
        await _send(send, found.__pydantic_serializer__.to_json(found, by_alias=True), request_id)


def _plain_headers(scope: Scope) -> dict[bytes, bytes] | None:
    """The headers of a POST without surprises; None of any other request."""
    if scope["method"] != "POST" or scope["query_string"]:
        return None
    headers: dict[bytes, bytes] = dict(scope["headers"])
    size = headers.get(b"content-length", b"")
    in_order = (
        len(headers) == len(scope["headers"])
        and not _UNUSUAL & headers.keys()
        and headers.get(b"authorization", b"").startswith(_BEARER)
        and headers.get(b"content-type", b"") == b"application/json"
        and size.isdigit()
        and int(size) <= MOST_BYTES
    )
    return headers if in_order else None


async def _read(receive: Receive, read: list[Message]) -> bytes | None:
    """The body; None if the client went away. What was received is added to `read`."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        read.append(message)
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(read: list[Message], receive: Receive) -> Receive:
    """What was received already, then the rest."""
    waiting = iter(read)

    async def replay() -> Message:
        message = next(waiting, None)
        return await receive() if message is None else message

    return replay


def _accepted(model: type[BaseModel], body: bytes) -> BaseModel | None:
    if holds_nul(body):
        return None
    try:
        return model.model_validate_json(body)
    except ValidationError:
        return None


async def _send(send: Send, content: bytes, request_id: str) -> None:
    headers = [
        (b"content-length", str(len(content)).encode()),
        (b"content-type", b"application/json"),
        (b"x-request-id", request_id.encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})
