"""What keeps clients from asking too much: rates, sizes, and pages of other sites."""

from __future__ import annotations

import json
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cachemgr.api.dependencies import digest_of
from cachemgr.api.errors import ApiError
from cachemgr.config.service_settings import LOOPBACK
from cachemgr.errors import ErrorCode

_MOST_CLIENTS: Final = 10_000
_TOO_LARGE: Final = "cachemgr.too_large"


class RateLimit:
    """A bucket for each client: so many requests a second, with bursts of twice that.

    Args:
        rate: Requests a second; 0 does not limit.
        clock: Monotonic seconds.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, client: str) -> int:
        """0 if one more request of a client may pass now, else the seconds until it may."""
        missing = 1 - self._level(client)
        return 0 if self._rate <= 0 or missing <= 0 else math.ceil(missing / self._rate)

    def take(self, client: str) -> None:
        """Count a request of a client."""
        if self._rate <= 0:
            return
        self._buckets[client] = (self._level(client) - 1, self._clock())
        self._buckets.move_to_end(client)
        while len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)

    def _level(self, client: str) -> float:
        most = max(2 * self._rate, 1.0)
        level, at = self._buckets.get(client, (most, self._clock()))
        return min(most, level + (self._clock() - at) * self._rate)


class Limits:
    """The rate of each token, and of each address that sends tokens which are not good: else a
    client that makes tokens up would have a new bucket with each.

    Args:
        rate: Requests a second; 0 does not limit.
        clock: Monotonic seconds.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clients = RateLimit(rate, clock)
        self._refused = RateLimit(rate, clock)
        self._good: OrderedDict[str, None] = OrderedDict()

    def seconds_to_wait(self, host: str, token: str) -> int:
        """0 if a request may pass now; it is counted then. Else the seconds until it may.

        Args:
            host: Where it comes from.
            token: Its Authorization header, maybe empty.
        """
        client = _client(host, token)
        if client not in self._good:
            wait = self._refused.seconds_to_wait(host)
            if wait > 0:
                return wait
        wait = self._clients.seconds_to_wait(client)
        if wait == 0:
            self._clients.take(client)
        return wait

    def refused(self, host: str, token: str) -> None:
        """A request was answered with 401."""
        self._good.pop(_client(host, token), None)
        self._refused.take(host)

    def accepted(self, host: str, token: str) -> None:
        """A request that needs a token was carried out."""
        client = _client(host, token)
        self._good[client] = None
        self._good.move_to_end(client)
        while len(self._good) > _MOST_CLIENTS:
            self._good.popitem(last=False)


def _client(host: str, token: str) -> str:
    # never the token itself: buckets outlive requests
    return digest_of(b"token", token.encode()) if token else digest_of(b"host", host.encode())


class BodyLimit:
    """Reads a body no further than it may be long, also one that does not say how long it is.

    Args:
        app: What is inside; it asks `is_too_large` once it has read the body.
        most: Bytes.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; one that is too long ends early and is marked."""
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > self._most:
                    # An exception would come out of the task groups of what stands between.
                    scope[_TOO_LARGE] = True
                    return {"type": "http.request", "body": b"", "more_body": False}
            return message

        await self._app(scope, counted if scope["type"] == "http" else receive, send)


def is_too_large(request: Request) -> bool:
    """Whether the body that was read is not the whole one."""
    return bool(request.scope.get(_TOO_LARGE))


def holds_nul(body: bytes) -> bool:
    """Whether a body has a NUL character: no name or text of ours has one, and PostgreSQL stores
    none."""
    return b"\0" in body or b"\\u0000" in body


def holds_half_character(body: bytes) -> bool:
    """Whether a text in a JSON body has one half of a surrogate pair without the other: Python
    takes it for a character, and nobody can write it down again."""
    if b"\\u" not in body and b"\xed" not in body:
        return False
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        pass  # no JSON, as others will say
    return False


def repeated_parameter(request: Request) -> str | None:
    """The name of a parameter that the query string has twice: no parameter is a list, and which
    of the values was meant is not ours to guess."""
    counts = Counter(name for name, _ in request.query_params.multi_items())
    return next((name for name, count in counts.items() if count > 1), None)


async def known_parameters(request: Request) -> None:
    """Refuse what the query string names and the endpoint does not: a filter that is misspelt would
    show everything.

    Raises:
        ApiError: 422, it has such a parameter.
    """
    route = request.scope.get("route")
    if not request.url.query or not isinstance(route, APIRoute) or not _asks_for_a_token(request):
        return
    known = _parameters_of(route.dependant)
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is not None:
        taken = ", ".join(sorted(known)) or "none"
        message = f"unknown query parameter {unknown!r}: {route.path} takes {taken}"
        raise ApiError(422, ErrorCode.UNKNOWN_PARAMETER, message)


def _parameters_of(dependant: Dependant) -> set[str]:
    """The names of an endpoint's query parameters, those of what it depends on among them."""
    found = {field.alias for field in dependant.query_params}
    return found.union(*map(_parameters_of, dependant.dependencies))


def is_protected(request: Request) -> bool:
    """Whether whoever got an answer must have shown a token, if any were asked for."""
    return isinstance(request.scope.get("route"), APIRoute) and _asks_for_a_token(request)


def _asks_for_a_token(request: Request) -> bool:
    return request.url.path.startswith("/api/")


def is_foreign(request: Request) -> bool:
    """Whether a request without a token may come from a page of another site: a browser on this
    machine would send it, and where no tokens are asked for it would be carried out.

    Args:
        request: The request.
    """
    if request.headers.get("Authorization") or not _asks_for_a_token(request):
        return False
    origin = request.headers.get("Origin")
    # another name for this machine is how DNS is turned against what listens on loopback alone
    places = [str(request.url), *([origin] if origin else [])]
    return any(_host(place) not in LOOPBACK for place in places)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:  # what is not a URL is not ours
        return None
