"""The REST application over a real metastore, served by a real server on a free port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState
from cachemgr.cli import main
from cachemgr.delta.head_lookup import Heads
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.records import CacheRecord, ColumnRecord
from cachemgr.roles import Role
from cachemgr.serving.feed import Feed
from cachemgr.serving.sources import MetastoreSource
from cachemgr.text.door import TextDoor
from tests.api.text_service import Texts
from tests.harness.load.population import SETTINGS, populate
from tests.processes import free_port
from tests.servers import ServerThread
from tests.worlds.records import cache_of


class NoSpark:
    """Statements are not part of these tests."""

    def execute(self, text: str, principal: str):
        raise AssertionError("no statement was expected")


@pytest.fixture
def store(metastore_url: str) -> Iterator[Metastore]:
    with open_metastore(metastore_url) as opened:
        yield opened


@pytest.fixture
def serve(store: Metastore) -> Iterator[object]:
    """Starts a server for an application over the store; gives its URL."""
    running: list[ServerThread] = []

    def start(
        *,
        open_to_all: bool = False,
        statements: object = None,
        texts: object = None,
        spark: object = lambda: None,
        trouble: object = lambda: None,
        **options,
    ) -> str:
        state = ApiState(store, statements or NoSpark(), lambda: open_to_all, texts, spark, trouble)
        port = free_port()
        running.append(ServerThread(create_app(state, **options), port))
        return f"http://127.0.0.1:{port}"

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def client_of(store: Metastore, serve) -> Iterator[object]:
    """A client of a role."""
    url = serve()
    made: list[httpx.Client] = []

    def client(role: Role, principal: str = "") -> httpx.Client:
        _, token = store.tokens.create(principal or role.value, role)
        made.append(
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30)
        )
        return made[-1]

    yield client
    for one in made:
        one.close()


@pytest.fixture
def client(client_of) -> httpx.Client:
    return client_of(Role.OPERATOR)


def make_cache(name: str, **changed) -> CacheRecord:
    values = {
        "namespace": "default",
        "name": name,
        "definition": "SELECT a, SUM(b) AS s FROM t GROUP BY a",
        "definition_hash": "h1",
        "location": f"/caches/{name}",
        "columns": (ColumnRecord("a", "int", False), ColumnRecord("s", "bigint", True)),
        "plan_version": "2",
    }
    return cache_of(**(values | changed))


@pytest.fixture
def cache(store: Metastore) -> CacheRecord:
    return store.caches.create(make_cache("cube"), now=store.clock.now())


@pytest.fixture
def new_cache(store: Metastore):
    def create(name: str, **changed) -> CacheRecord:
        return store.caches.create(make_cache(name, **changed), now=store.clock.now())

    return create


@pytest.fixture(params=["service", "metastore"])
def run(request, store, metastore_url, serve, monkeypatch, tmp_path):
    """Runs a command against the one or the other; gives its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for name in ("CACHEMGR_SERVER", "CACHEMGR_TOKEN", "CACHEMGR_METASTORE_URL"):
        monkeypatch.delenv(name, raising=False)
    if request.param == "service":
        _, token = store.tokens.create("ann", Role.OPERATOR)
        monkeypatch.setenv("CACHEMGR_SERVER", serve())
        monkeypatch.setenv("CACHEMGR_TOKEN", token)
    else:
        monkeypatch.setenv("CACHEMGR_METASTORE_URL", metastore_url)

    def command(*words: str, input: str | None = None):
        done = CliRunner().invoke(main, list(words), input=input)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout, done.stderr

    return command


@pytest.fixture(params=[1, 3], ids=["new", "known"])
def texts(serve, store: Metastore, metastore_url: str, tmp_path: Path, request) -> Iterator[Texts]:
    tables = populate(store, tmp_path, 10)
    feed = Feed(MetastoreSource(open_metastore(metastore_url)))
    feed.start()
    assert feed.wait_loaded(20)
    door = TextDoor(feed, Heads(), SETTINGS)
    yield Texts(serve(texts=door), store, feed, tmp_path, tables, door, request.param)
    feed.close()
