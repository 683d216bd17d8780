"""How commands reach the service: over HTTP, or the very same application in this process over a
metastore. So there is one meaning of each command, wherever it runs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cachemgr.cli.output import Format, say
from cachemgr.cli.starting import STARTING, STARTING_THERE
from cachemgr.config.service_address import checked_service_url, checked_token, error_told
from cachemgr.errors import CacheManagerError, ErrorCode, MetastoreError

if TYPE_CHECKING:
    import httpx

_SECONDS = 120.0
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Client:
    """Calls of the REST interface.

    Args:
        server: The service's URL; None works on a metastore in this process.
        token: A token of the service.
        metastore: The metastore, if no service is asked.
        output: How the command shows its data.

    Raises:
        ConfigurationError: The server or the token can be none.
    """

    server: str | None
    token: str | None
    metastore: str | None
    output: Format = Format.TABLE

    def __post_init__(self) -> None:
        if self.server is not None:
            checked_service_url(self.server)
        checked_token(self.token or "", "--token or CACHEMGR_TOKEN")

    def call(self, method: str, path: str, **more: Any) -> Any:
        """One call.

        Args:
            method: GET, POST, …
            path: Below /api/v1.
            more: What httpx takes: params, json.

        Returns:
            The answer's body; None if it has none.

        Raises:
            CacheManagerError: What the service says, or that it cannot be reached.
        """
        return asyncio.run(self._call(method, f"/api/v1{path}", more))

    def carry_out(self) -> None:
        """Without a service: take the refreshes that wait, and finish them here.

        Raises:
            CacheManagerError: The metastore or Spark cannot be had. Where a service holds a SQLite
                metastore nothing is done: it will.
        """
        if self.server is not None:
            return
        from cachemgr.config.service_settings import service_settings

        _require_service()
        from cachemgr.server.serve import work_once

        say(STARTING)
        try:
            work_once(service_settings(metastore_url=self.metastore))
        except MetastoreError as error:
            if error.code != ErrorCode.METASTORE_TAKEN:
                raise

    async def _call(self, method: str, path: str, more: dict[str, Any]) -> Any:
        import httpx

        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        async with AsyncExitStack() as stack:
            if self.server is not None:
                client = httpx.AsyncClient(base_url=self.server, headers=headers, timeout=_SECONDS)
            else:
                app = _application(stack, self.metastore, path.endswith("/explain"))
                transport = httpx.ASGITransport(app)
                client = httpx.AsyncClient(transport=transport, base_url="http://localhost")
            await stack.enter_async_context(client)
            try:
                asked = asyncio.ensure_future(client.request(method, path, **more))
                await self._say_if_spark_starts(client, asked)
                answer = await asked
            except httpx.HTTPError as error:
                raise CacheManagerError(
                    ErrorCode.SERVICE_UNREACHABLE,
                    f"the service at {self.server} does not answer ({error or type(error).__name__}"
                    "): check --server, and that `cachemgr serve` runs",
                ) from None
        return _read(answer, self.server)

    async def _say_if_spark_starts(
        self, client: httpx.AsyncClient, asked: asyncio.Future[httpx.Response]
    ) -> None:
        """Wait for an answer; if it waits for Spark to start, say so, once."""
        while not (await asyncio.wait({asked}, timeout=_LOOK_SECONDS))[0]:
            if await _spark_starts(client):
                say(STARTING if self.server is None else STARTING_THERE)
                return


async def _spark_starts(client: httpx.AsyncClient) -> bool:
    import httpx

    try:
        return bool((await client.get("/readyz")).json().get("spark") == "starting")
    except (httpx.HTTPError, ValueError, AttributeError):  # the request itself will tell
        return False


def _require_service() -> None:
    from cachemgr.extras import require

    require("a command on a metastore, without --server,", "server", "spark")


def _application(stack: AsyncExitStack, metastore: str | None, explains: bool) -> Any:
    _require_service()
    from cachemgr.api.app import create_app
    from cachemgr.api.dependencies import ApiState
    from cachemgr.config.service_settings import service_settings
    from cachemgr.delta.hadoop_files import HadoopFiles
    from cachemgr.journal.journal import keep_journal
    from cachemgr.metastore import open_metastore
    from cachemgr.spark.host import host_of

    settings = service_settings(metastore_url=metastore)
    store = stack.enter_context(open_metastore(settings.metastore_url, create=False))
    host = host_of(settings)
    stack.callback(host.stop)
    keep_journal(store, settings.location, lambda: HadoopFiles(host.spark()))
    texts = None
    if explains:  # for nothing else the caches' plans are loaded
        from cachemgr.server.serve import texts_of

        texts = stack.enter_context(texts_of(settings, host, wait_seconds=_SECONDS))
    return create_app(
        ApiState(*(store, host, lambda: True, texts, lambda: host.state), stored=host.stored_values)
    )


def _read(answer: httpx.Response, server: str | None) -> Any:
    if answer.is_success:
        with suppress(ValueError):
            return answer.json() if answer.content else None
    error = error_told(answer.content, answer.status_code, server, check="--server")
    if error.code == ErrorCode.NOT_FOUND:  # there is a cachemgr, and our paths begin elsewhere
        message = f"{answer.request.url} was asked, and {error.message}; check --server"
        error = CacheManagerError(error.code, message)
    raise error
