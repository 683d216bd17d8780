"""What requests need: the metastore, the statements, and who is asking."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Protocol

from anyio import to_thread
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from cachemgr.api.errors import ApiError
from cachemgr.api.queues import Lanes
from cachemgr.delta.head_lookup import Heads
from cachemgr.errors import ErrorCode
from cachemgr.metastore.records import TokenRecord
from cachemgr.metastore.store import Metastore
from cachemgr.roles import Role
from cachemgr.statements.apply import Context
from cachemgr.statements.layout_advice import LookAtValues
from cachemgr.statements.look_at_logs import LookAtLogs
from cachemgr.statements.results import ResultRows
from cachemgr.text.door import TextDoor
from cachemgr.vocabulary import SparkState
from matcher.memory.bounded import Bounded

if TYPE_CHECKING:  # it needs pyarrow, which a service without results may lack
    from cachemgr.results.folders import Results

RECENT_SECONDS: Final = 1.0
MAX_RECENT: Final = 10_000


NO_TOKEN: Final = (
    "the metastore of this service holds no token, and it lets nobody in without one (its settings "
    "require that, or it asked for tokens before): restore the metastore if it was lost, or make a "
    "token with `cachemgr token create --role admin NAME`"
)


class RecentTokens:
    """Whose tokens were good less than a second ago.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Bounded[tuple[Principal, float]] = Bounded(MAX_RECENT)

    def get(self, token: str) -> Principal | None:
        """The principal of a token; None if it has to be looked up."""
        found = self._known.get(token)
        return found[0] if found is not None and self._clock() < found[1] else None

    def put(self, token: str, principal: Principal) -> None:
        """Remember a token that was just looked up."""
        self._known.put(token, (principal, self._clock() + RECENT_SECONDS))


class Statements(Protocol):
    """Our DDL on the service's own Spark."""

    def execute(self, text: str, principal: str) -> ResultRows:
        """Carry one statement out; raises CacheManagerError."""
        ...

    def execute_in(self, text: str, principal: str, context: Context) -> ResultRows:
        """Carry one out where names are looked up in that schema, under those settings."""
        ...


@dataclass(frozen=True, slots=True)
class StatementBounds:
    """What a statement may ask for.

    Args:
        seconds: How long it may run at most.
        keep_seconds: How long its result is kept at most.
        waiting_each: How many of one principal may wait.
    """

    seconds: float
    keep_seconds: float
    waiting_each: int


@dataclass(frozen=True)
class ApiState:
    """What the endpoints work on.

    Args:
        metastore: Where everything is.
        statements: DDL on the service's Spark, started when it is first needed.
        open_to_all: No tokens are asked for: loopback, and nobody has made one.
        texts: Decides queries by their text.
        spark: Where the service's Spark is; None if that is not known.
        trouble: Why it did not start, quoting nothing; None if it did, or was not needed yet.
        logs: Looks at base tables for the status of caches.
        results: Where the rows of statements are; None where the service runs none.
        statement_bounds: What statements may ask for; None where the service runs none.
        stored: Looks at a cache's table; None where there is no Spark to ask.
    """

    metastore: Metastore
    statements: Statements
    open_to_all: Callable[[], bool]
    texts: TextDoor | None = None
    spark: Callable[[], SparkState | None] = lambda: None
    trouble: Callable[[], str | None] = lambda: None
    spark_lock: threading.Lock = field(default_factory=threading.Lock)
    lanes: Lanes = field(default_factory=Lanes)
    recent: RecentTokens = field(default_factory=RecentTokens)
    logs: LookAtLogs = field(default_factory=lambda: LookAtLogs(Heads()))
    results: Results | None = None
    statement_bounds: StatementBounds | None = None
    stored: LookAtValues | None = None


@dataclass(frozen=True)
class Principal:
    """Who sends a request."""

    name: str
    role: Role


_bearer = HTTPBearer(auto_error=False, description="A token of `cachemgr token create`.")


async def state_of(request: Request) -> ApiState:
    """The state of the application."""
    state: ApiState = request.app.state.cachemgr
    return state


State = Annotated[ApiState, Depends(state_of)]
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def identify(state: State, credentials: Credentials) -> Principal:
    """Who sends a request.

    Raises:
        ApiError: The token is missing or not good (any more).
    """
    if credentials is None:
        if state.open_to_all():
            return Principal("local", Role.ADMIN)
        told = (
            "send a token: Authorization: Bearer …; a command takes it by --token or CACHEMGR_TOKEN"
        )
        if not state.metastore.tokens.had_any():
            told = f"{NO_TOKEN}; then {told}"
        raise ApiError(401, ErrorCode.UNAUTHENTICATED, told)
    token: TokenRecord | None = state.metastore.tokens.bearer(credentials.credentials)
    if token is None:
        raise ApiError(
            401,
            ErrorCode.UNAUTHENTICATED,
            "the token is unknown, expired or revoked: get a new one",
        )
    return Principal(token.principal, token.role)


async def _recent_viewer(state: State, credentials: Credentials) -> Principal:
    """A viewer at least, who may have been asked for up to a second ago.

    For what is asked a hundred times a second and changes nothing: looking a token up costs as much
    as deciding a query.
    """
    token = "" if credentials is None else digest_of(credentials.credentials.encode())
    found = state.recent.get(token) if token else None
    if found is None:
        found = await to_thread.run_sync(identify, state, credentials)
        if token:
            state.recent.put(token, found)
    return found


_recent_viewer.least_role = Role.VIEWER  # type: ignore[attr-defined]


def needs(role: Role) -> Callable[[Principal], Awaitable[Principal]]:
    """A dependency: the request's principal, who must have a role.

    Args:
        role: The least role.
    """

    async def check(principal: Annotated[Principal, Depends(identify)]) -> Principal:
        return require(principal, role)

    check.least_role = role  # type: ignore[attr-defined]
    return check


def require(principal: Principal, role: Role) -> Principal:
    """The principal, if he has a role.

    Args:
        principal: Who asks.
        role: The least role.

    Raises:
        ApiError: 403, he has a lesser one.
    """
    if not principal.role.covers(role):
        raise ApiError(
            403,
            ErrorCode.FORBIDDEN,
            f"{principal.name} is {principal.role.value}, this needs {role.value}: "
            "use another token",
        )
    return principal


Viewer = Annotated[Principal, Depends(needs(Role.VIEWER))]
RecentViewer = Annotated[Principal, Depends(_recent_viewer)]
Operator = Annotated[Principal, Depends(needs(Role.OPERATOR))]
Admin = Annotated[Principal, Depends(needs(Role.ADMIN))]


def digest_of(*parts: bytes) -> str:
    """A digest of a request, to know it again."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()
