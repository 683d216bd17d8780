"""The service as a feed's source: its catalog by a long poll, decisions in batches.

Several URLs are replicas of one service; the first that answers is asked until it does not. The
catalog is held to its digest: whoever missed something (a metastore that was rebuilt or restored,
rows that were purged while nobody listened) loads everything again.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import httpx

from cachemgr.access.grants import hashed_id
from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.metastore.records import DecisionRecord, RestrictedTable
from cachemgr.metastore.registry_records import RegistryEntry, RegistryState
from cachemgr.secrets import masked
from cachemgr.serving.sources import BatchRefused, SourceRefused
from cachemgr.serving.wire import (
    CATALOG_VERSION,
    NEVER,
    decode_entry,
    decode_join,
    digest,
    encode_decision,
)

# A replica that hangs is left, and another one tells what was dropped, all within 5 seconds.
WAIT_SECONDS: Final = 2.5
_POLL_TIMEOUT: Final = httpx.Timeout(4.0, connect=2.0)
_LOAD_TIMEOUT: Final = httpx.Timeout(60.0, connect=2.0)
# Once a replica that hangs was found out so, the next question goes to another.
_POST_TIMEOUT: Final = httpx.Timeout(3.0, connect=2.0)
_LATER_FIELDS: Final = ("local", "filters")
_PAGE: Final = 500
_LEAST_PAUSE: Final = 0.25
_MOST_PAUSE: Final = 2.5


class ServiceSource:
    """One service, as one token sees it.

    Args:
        urls: Its replicas.
        token: Gives the token; asked before each request, so that it may be renewed.
        patience: Seconds for which a session goes on without the service.
        transport: Another way to the service than the network.
        token_file: Where the token is read from, if it may become another one, of somebody else:
            a session with the first one must not follow with it.
    """

    close_seconds = 0.2  # a poll may wait for seconds, and its answer is of no use any more

    def __init__(
        self,
        urls: Sequence[str],
        token: Callable[[], str],
        patience: float,
        transport: httpx.BaseTransport | None = None,
        token_file: str = "",
    ) -> None:
        self.patience = patience
        self.name = f"the service at {', '.join(map(masked, urls))}"
        shared = "\0".join([*urls, token_file or token(), str(patience)])
        self.key = f"service {hashlib.sha256(shared.encode()).hexdigest()}"
        self._urls = [url.rstrip("/") for url in urls]
        self._token = token
        self._principal = ""
        self._epoch = ""
        self._known: dict[str, int] = {}
        self._digest = ""
        # Two, since decisions may be sent while a poll waits.
        self._polls = httpx.Client(transport=transport)
        self._posts = httpx.Client(transport=transport)

    def news(self, since: int | None) -> RegistryState | None:
        """What changed; waits up to `WAIT_SECONDS` for it. See `Source`."""
        state = self._read(since)
        if state is not None and digest(self._known) != self._digest:
            # A change that no revision tells: what is there is read anew, once.
            state = self._read(None)
            if digest(self._known) != self._digest:
                raise CacheManagerError(
                    ErrorCode.CATALOG_MOVED, f"the catalog of {self.name} changed while it was read"
                )
        return state

    def send(self, batch: Sequence[DecisionRecord], batch_id: str) -> None:
        """Store decisions; see `Source`."""
        decisions = [encode_decision(decision) for decision in batch]
        try:
            try:
                self._post(batch_id, decisions)
            except _NotTaken:
                # a service of an earlier release has no such fields
                later = [decision.pop(k, None) for decision in decisions for k in _LATER_FIELDS]
                if all(value is None for value in later):
                    raise
                self._post(batch_id, decisions)
        except _NotTaken as error:
            raise BatchRefused(error.code, error.message) from error

    def _post(self, batch_id: str, decisions: list[dict[str, Any]]) -> None:
        body = {"batchId": batch_id, "decisions": decisions}
        self._ask(self._posts, "POST", "/api/v1/decisions", _POST_TIMEOUT, json=body)

    def tell_damage(self, cache_id: str, refresh_id: str, what: str) -> None:
        """Nothing: the service believes its own eyes, and its workers look once a minute."""

    def tell_whole(self, cache_id: str, refresh_id: str, what: str) -> None:
        """Nothing, likewise."""

    def pause(self, failures: int) -> float:
        """Nothing after an answer, since asking waits; else longer and longer, at random."""
        if failures == 0:
            return 0.0
        most = min(_MOST_PAUSE, _LEAST_PAUSE * 2.0 ** min(failures, 10))
        return random.uniform(_LEAST_PAUSE, most)

    def close(self) -> None:
        """Close the connections; a poll that waits ends by itself."""
        self._polls.close()
        self._posts.close()

    def _read(self, since: int | None) -> RegistryState | None:
        params: dict[str, Any] = {"catalogVersion": CATALOG_VERSION, "pageSize": _PAGE}
        if since is not None and self._epoch:
            params |= {"epoch": self._epoch, "since": since, "waitSeconds": WAIT_SECONDS}
        timeout = _POLL_TIMEOUT if "since" in params else _LOAD_TIMEOUT
        page = self._page(params, timeout)
        principal = str(page["principal"])
        if "since" in params and principal != self._principal:
            return self._read(None)  # what was told to another says nothing of this one's grants
        full = bool(page["full"])
        known = {} if full else dict(self._known)
        entries: dict[str, RegistryEntry] = {}
        while True:
            self._take(page, known, entries)
            if page["nextPageToken"] is None:
                break
            token = {"pageToken": page["nextPageToken"]}
            page = self._page({**params, **token, "waitSeconds": 0}, _LOAD_TIMEOUT)
        self._digest = str(page["digest"])
        moved = full or page["epoch"] != self._epoch or page["revision"] != since
        self._epoch, self._known, self._principal = str(page["epoch"]), known, principal
        if not moved and self._digest == digest(known):
            return None
        return RegistryState(
            int(page["revision"]),
            tuple(entries.values()),
            frozenset(known),
            tuple(decode_join(join) for join in page["joins"]),
            tuple(
                RestrictedTable(key, name, key, None, "", NEVER)
                for key, name in page["restricted"].items()
            ),
            principal,
        )

    def _take(
        self, page: Mapping[str, Any], known: dict[str, int], entries: dict[str, RegistryEntry]
    ) -> None:
        for data in page["caches"]:
            entry = decode_entry(data, page["principal"])
            known[entry.cache.id] = entry.cache.revision
            entries[entry.cache.id] = entry
        gone = frozenset(page["gone"])
        for cache_id in [i for i in known if hashed_id(i) in gone] if gone else ():
            del known[cache_id]
            entries.pop(cache_id, None)

    def _page(self, params: Mapping[str, Any], timeout: httpx.Timeout) -> Mapping[str, Any]:
        try:
            found = self._ask(
                self._polls, "GET", "/api/v1/catalog", timeout, params=dict(params)
            ).json()
            if not isinstance(found, dict) or "nextPageToken" not in found:
                raise ValueError("no catalog")
        except (ValueError, KeyError, TypeError) as error:
            raise CacheManagerError(
                ErrorCode.NOT_THE_SERVICE,
                f"{self.name} answered, and not as cachemgr does ({error})",
            ) from error
        return found

    def _ask(
        self, client: httpx.Client, method: str, path: str, timeout: httpx.Timeout, **more: Any
    ) -> httpx.Response:
        """Ask the replicas in turn, the one that answered last first."""
        token = self._token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        trouble: list[CacheManagerError] = []
        for url in tuple(self._urls):
            try:
                answer = client.request(
                    method, url + path, headers=headers, timeout=timeout, **more
                )
            except (httpx.HTTPError, RuntimeError) as error:  # a closed client is a RuntimeError
                said = str(error) or type(error).__name__
                trouble.append(
                    CacheManagerError(ErrorCode.SERVICE_UNREACHABLE, f"{masked(url)}: {said}")
                )
            else:
                if answer.is_success:
                    return answer
                meant = _meaning(url, answer)
                if isinstance(meant, _NotTaken) or answer.status_code in (401, 403):
                    raise meant
                trouble.append(meant)
            # The next question goes to another one first.
            self._urls = [*(u for u in self._urls if u != url), url]
        refused = next((t for t in trouble if isinstance(t, SourceRefused)), None)
        if refused is not None:
            raise refused
        said = "; ".join(t.message for t in trouble)
        raise CacheManagerError(ErrorCode.SERVICE_UNREACHABLE, said)


class _NotTaken(CacheManagerError):
    """The service understood a request, and will never do it."""


def _meaning(address: str, answer: httpx.Response) -> CacheManagerError:
    url = masked(address)
    status = answer.status_code
    kind, said = "", answer.reason_phrase
    try:
        error = answer.json()["error"]
        kind, said = str(error["type"]), str(error["message"])
    except (ValueError, KeyError, TypeError):  # a proxy's words
        pass
    text = f"the service at {url} refuses this session: {said}"
    if status in (401, 403):
        return SourceRefused(kind or ErrorCode.UNAUTHENTICATED, text)
    if kind == ErrorCode.CATALOG_VERSION:
        return SourceRefused(kind, text)
    if kind and status in (400, 413, 422):
        return _NotTaken(kind, f"{url}: {said}")
    return CacheManagerError(ErrorCode.SERVICE_UNREACHABLE, f"{url}: {status} {said}")
