"""A wrong role, a token that is void, a principal outside a cache's list, a restricted table:
refused at every door of one service on PostgreSQL. By name."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import make_url, text
from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.records import CacheRecord
from cachemgr.roles import Role
from matcher.codec import PLAN_VERSION, encode_plan
from matcher.expr import Col
from matcher.ir import CachePlan, Relation, StoredColumn

pytestmark = pytest.mark.postgres


@dataclass
class Place:
    """A service on its metastore."""

    url: str
    store: Metastore
    tokens: dict[str, str]

    def rest(self, token: str | None, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens[token]}"} if token else {}
        return httpx.request(
            method, f"{self.url}/api/v1{path}", headers=headers, timeout=60, **more
        )

    def cli(self, token: str, *args: str) -> Any:
        common = ["--server", self.url, "--token", self.tokens[token]]
        return CliRunner().invoke(main, [*args, *common])

    def mark(self) -> str:
        return next(m.id for m in self.store.reader.restricted_tables() if m.name == "hr.pay")


@pytest.fixture(scope="module")
def place(postgres_server: str, tmp_path_factory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("refusals")
    database = f"cachemgr_refusals_{os.getpid()}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{database}"')
    url = make_url(postgres_server).set(database=database).render_as_string(hide_password=False)
    with open_metastore(url) as store:
        tokens = _tokens(store)
        for name, table in (("open", "sales"), ("narrow", "sales"), ("pay", "pay")):
            store.writer.create_cache(_record(name, table), now=store.reader.now())
        narrow = store.reader.cache("default", "narrow")
        assert narrow is not None
        store.writer.grant(narrow.id, "friend")
        store.writer.restrict_table("hr.pay", "file:/pay", "id-pay", by="admin")
        process, service = _serve(url, folder)
        try:
            _until(lambda: httpx.get(f"{service}/readyz").status_code == 200, process)
            yield Place(service, store, tokens)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


def _record(name: str, table: str) -> CacheRecord:
    column = StoredColumn("a", Col(0, "a", "int"))
    plan = CachePlan(name, (Relation(f"file:/{table}", table),), (), None, columns=(column,))
    return CacheRecord(
        namespace="default",
        name=name,
        definition=f"SELECT a FROM {table}",
        definition_hash="h",
        location=f"file:/caches/{name}",
        plan=encode_plan(plan),
        plan_version=PLAN_VERSION,
        owner="viewer",
    )


def _tokens(store: Metastore) -> dict[str, str]:
    found = {role.value: store.writer.create_token(role.value, role)[1] for role in Role}
    found["friend"] = store.writer.create_token("friend", Role.VIEWER)[1]
    expired, found["expired"] = store.writer.create_token(
        "friend", Role.ADMIN, expires_in=timedelta(hours=1)
    )
    with store.engine.begin() as connection:
        query = text("UPDATE tokens SET expires_at = created_at WHERE id = :id")
        connection.execute(query, {"id": expired.id})
    revoked, found["revoked"] = store.writer.create_token("friend", Role.ADMIN)
    store.writer.revoke_token(revoked.id)
    found["foreign"] = "cachemgr_" + "0" * 32 + "_" + "0" * 48
    return found


def _serve(url: str, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from cachemgr.cli import main; main()",
                "serve",
                "--no-scheduler",
            ],
            env={**os.environ, "CACHEMGR_METASTORE_URL": url, "CACHEMGR_PORT": str(port)},
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return process, f"http://127.0.0.1:{port}"


def _until(true: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while True:
        assert process.poll() is None and time.monotonic() < end
        try:
            if true():
                return
        except httpx.TransportError:
            time.sleep(0.3)


CREATE = {"json": {"ddl": "CREATE RELATIONAL CACHE x AS SELECT region FROM sales"}}
ELSEWHERE = {
    "json": {"ddl": "CREATE RELATIONAL CACHE x LOCATION '/tmp/x' AS SELECT region FROM sales"}
}
REST = {
    "no token reads no cache": (None, "GET", "/caches", {}, 401),
    "a foreign token reads no cache": ("foreign", "GET", "/caches", {}, 401),
    "an expired token reads no cache": ("expired", "GET", "/caches", {}, 401),
    "a revoked token reads no cache": ("revoked", "GET", "/caches", {}, 401),
    "an expired token gets no catalog": ("expired", "GET", "/catalog", {}, 401),
    "an expired token logs no decisions": (
        "expired",
        "POST",
        "/decisions",
        {"json": {"batchId": "b", "decisions": []}},
        401,
    ),
    "an expired admin's token grants nothing": (
        "expired",
        "PUT",
        "/caches/narrow/grants/me",
        {},
        401,
    ),
    "a viewer creates no cache": ("viewer", "POST", "/caches", CREATE, 403),
    "a viewer drops no cache": ("viewer", "DELETE", "/caches/open", {}, 403),
    "a viewer refreshes no cache": ("viewer", "POST", "/caches/open/refreshes", {}, 403),
    "a viewer does not see who was granted": ("viewer", "GET", "/caches/narrow/grants", {}, 403),
    "an operator grants nothing to himself": (
        "operator",
        "PUT",
        "/caches/narrow/grants/operator",
        {},
        403,
    ),
    "an operator revokes nothing": (
        "operator",
        "DELETE",
        "/caches/narrow/grants/friend",
        {},
        403,
    ),
    "an operator restricts no table": (
        "operator",
        "POST",
        "/tables/restricted",
        {"json": {"table": "sales"}},
        403,
    ),
    "an operator opens no restricted table": (
        "operator",
        "DELETE",
        "/tables/restricted/{mark}",
        {},
        403,
    ),
    "an operator does not say where files go": ("operator", "POST", "/caches", ELSEWHERE, 403),
}


@pytest.mark.parametrize("case", REST)
def test_refused_by_rest(place: Place, case: str) -> None:
    token, method, path, more, status = REST[case]
    before = place.store.reader.revision()
    answer = place.rest(token, method, path.format(mark=place.mark()), **more)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["type"] == {401: "UNAUTHENTICATED", 403: "FORBIDDEN"}[status]
    assert "Traceback" not in answer.text
    assert place.store.reader.revision() == before


CLI = {
    "an expired token lists nothing": ("expired", ("cache", "list"), "UNAUTHENTICATED"),
    "a foreign token lists nothing": ("foreign", ("cache", "list"), "UNAUTHENTICATED"),
    "a viewer drops no cache": ("viewer", ("cache", "drop", "open", "--yes"), "FORBIDDEN"),
    "a viewer disables no cache": ("viewer", ("cache", "disable", "open"), "FORBIDDEN"),
    "an operator grants nothing to himself": (
        "operator",
        ("cache", "grant", "narrow", "operator"),
        "FORBIDDEN",
    ),
    "an operator restricts no table": ("operator", ("table", "restrict", "sales"), "FORBIDDEN"),
    "an operator opens no restricted table": (
        "operator",
        ("table", "unrestrict", "{mark}"),
        "FORBIDDEN",
    ),
}


@pytest.mark.parametrize("case", CLI)
def test_refused_by_cli(place: Place, case: str) -> None:
    token, args, code = CLI[case]
    before = place.store.reader.revision()
    found = place.cli(token, *(a.format(mark=place.mark()) for a in args))
    assert found.exit_code == 1 and code in found.stderr, found.output
    assert place.tokens[token] not in found.output and found.stdout == ""
    assert place.store.reader.revision() == before


# who follows the catalog of the service, and what of it he gets
CATALOG = {
    "nobody gets a cache over a restricted table, not its owner": ("viewer", {"open"}),
    "a principal outside the list gets no narrowed cache": ("viewer", {"open"}),
    "nor does an admin, who may grant it to himself": ("admin", {"open"}),
    "a principal on the list gets it": ("friend", {"open", "narrow"}),
}


@pytest.mark.parametrize("case", CATALOG)
def test_refused_by_the_catalog_that_sessions_follow(place: Place, case: str) -> None:
    token, wanted = CATALOG[case]
    caches = place.rest(token, "GET", "/catalog").json()["caches"]
    assert {c["name"] for c in caches if c["namespace"] == "default"} == wanted
