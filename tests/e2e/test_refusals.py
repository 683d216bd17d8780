"""A wrong role, a token that is void, a principal outside a cache's list, a restricted table:
refused at every door of one service on PostgreSQL and of the sessions beside it. By name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import make_url, text
from typer.testing import CliRunner

import cachemgr
from cachemgr.cli import main
from cachemgr.config.result_settings import result_settings
from cachemgr.errors import ConfigurationError
from cachemgr.jvm.session_conf import explicit_settings
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.records import CacheRecord
from cachemgr.roles import Role
from cachemgr.serving.feed import Feed
from cachemgr.spark import api
from matcher.model.codec import PLAN_VERSION, encode_plan
from matcher.model.expr import Col
from matcher.model.ir import CachePlan, Relation, StoredColumn
from tests.processes import Replica, replicas, until
from tests.worlds.lab_star import Lab, make_lab

pytestmark = pytest.mark.postgres
VOID = ("expired", "revoked", "foreign")
OPEN = "open AS SELECT region, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region"
NARROW = "narrow AS SELECT day, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY day"
PAY = "pay AS SELECT city, COUNT(*) AS n FROM cust GROUP BY city"
ANSWERED = {
    "open": "SELECT region, SUM(amt) AS s FROM sales GROUP BY region",
    "narrow": "SELECT day, SUM(amt) AS s FROM sales GROUP BY day",
    "pay": "SELECT city, COUNT(*) AS n FROM cust GROUP BY city",
}


@dataclass
class Place:
    """A service on its metastore; caches are records there until a session makes others."""

    url: str
    metastore_url: str
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
        return next(m.id for m in self.store.tables.restricted() if m.name == "hr.pay")


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
            store.caches.create(_record(name, table), now=store.clock.now())
        narrow = store.caches.named("default", "narrow")
        assert narrow is not None
        store.grants.add(narrow.id, "friend")
        store.tables.restrict("hr.pay", "file:/pay", "id-pay", by="admin")
        settings = {"CACHEMGR_METASTORE_URL": url}
        service = Replica("serve", folder, settings, command=("serve", "--no-scheduler"))
        with replicas(service):
            until(service.ready, 120, "the service answers", every=0.3)
            yield Place(f"http://127.0.0.1:{service.port}", url, store, tokens)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


@pytest.fixture(scope="module")
def lab(spark, place: Place, tmp_path_factory) -> Iterator[Lab]:
    """A session on that metastore, with caches over tables of its own."""
    labs = make_lab(spark, tmp_path_factory.mktemp("lab"), place.metastore_url)
    found = next(labs)
    for cache in (OPEN, NARROW, PAY):
        found.cache(cache)
    found.sql("GRANT USE ON RELATIONAL CACHE narrow TO friend")
    found.sql("RESTRICT BASE TABLE cust")
    # the service follows a moment later
    until(lambda: _rewritten(place, found, "friend", "narrow")["hit"], 10, "the caches are known")
    for cache, known in (("narrow", "the grant is known"), ("pay", "the restriction is known")):
        until(lambda c=cache: not _rewritten(place, found, "viewer", c)["hit"], 10, known)
    yield found
    next(labs, None)


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
    found = {role.value: store.tokens.create(role.value, role)[1] for role in Role}
    found["friend"] = store.tokens.create("friend", Role.VIEWER)[1]
    expired, found["expired"] = store.tokens.create(
        "friend", Role.ADMIN, expires_in=timedelta(hours=1)
    )
    with store.engine.begin() as connection:
        query = text("UPDATE tokens SET expires_at = created_at WHERE id = :id")
        connection.execute(query, {"id": expired.id})
    revoked, found["revoked"] = store.tokens.create("friend", Role.ADMIN)
    store.tokens.revoke(revoked.id)
    found["foreign"] = "cachemgr_" + "0" * 32 + "_" + "0" * 48
    return found


SALES = {"json": {"table": "sales"}}
NO_DECISIONS = {"json": {"batchId": "b", "decisions": []}}
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
    "an expired token logs no decisions": ("expired", "POST", "/decisions", NO_DECISIONS, 401),
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
    "an operator revokes nothing": ("operator", "DELETE", "/caches/narrow/grants/friend", {}, 403),
    "an operator restricts no table": ("operator", "POST", "/tables/restricted", SALES, 403),
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
    before = place.store.registry.revision()
    answer = place.rest(token, method, path.format(mark=place.mark()), **more)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["type"] == {401: "UNAUTHENTICATED", 403: "FORBIDDEN"}[status]
    assert "Traceback" not in answer.text
    assert place.store.registry.revision() == before


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
    "an operator grants no SELECT": (
        "operator",
        ("select", "grant", "sales", "operator"),
        "FORBIDDEN",
    ),
    "an operator opens no restricted table": (
        "operator",
        ("table", "unrestrict", "{mark}"),
        "FORBIDDEN",
    ),
}


@pytest.mark.parametrize("case", CLI)
def test_refused_by_cli(place: Place, case: str) -> None:
    token, args, code = CLI[case]
    before = place.store.registry.revision()
    found = place.cli(token, *(a.format(mark=place.mark()) for a in args))
    assert found.exit_code == 1 and code in found.stderr, found.output
    assert place.tokens[token] not in found.output and found.stdout == ""
    assert place.store.registry.revision() == before


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


HOOK = {
    "a principal outside the list": ("narrow", "NOT_GRANTED"),
    "a restricted table, for the cache's own owner": ("pay", "TABLE_RESTRICTED"),
}


@pytest.mark.spark
@pytest.mark.parametrize("case", HOOK)
def test_refused_by_the_hook_on_the_metastore(lab: Lab, case: str) -> None:
    cache, code = HOOK[case]
    lab.miss(ANSWERED[cache], code)


@pytest.mark.spark
def test_what_is_open_is_answered(lab: Lab) -> None:
    lab.hit(ANSWERED["open"])


@pytest.mark.spark
def test_a_grant_by_rest_reaches_the_session_within_five_seconds_and_so_does_its_end(
    place: Place, lab: Lab
) -> None:
    for cache, code in (("pay", "TABLE_RESTRICTED"), ("narrow", "NOT_GRANTED")):
        _granted_for_a_while(place, lab, lab, cache, lab.me)
        lab.miss(ANSWERED[cache], code)


def _granted_for_a_while(place: Place, lab: Lab, session: Lab, cache: str, who: str) -> None:
    path = f"/caches/{lab.schema}.{cache}/grants/{who}"
    query = ANSWERED[cache]
    assert place.rest("admin", "PUT", path).status_code == 200
    until(lambda: cachemgr.explain(session.spark, query).hit, 5, "the grant arrives")
    session.hit(query)
    assert place.rest("admin", "DELETE", path).status_code == 200
    until(lambda: not cachemgr.explain(session.spark, query).hit, 5, "its end arrives")


# a query's text given to the service: whose token, the cache that would answer, and why it does not
TEXT = {
    "a principal outside the list": ("viewer", "narrow", "NOT_GRANTED"),
    "an operator outside the list": ("operator", "narrow", "NOT_GRANTED"),
    "an admin, who may grant it to himself": ("admin", "narrow", "NOT_GRANTED"),
    "a restricted table": ("viewer", "pay", "TABLE_RESTRICTED"),
    "a restricted table, for an admin": ("admin", "pay", "TABLE_RESTRICTED"),
    "a restricted table, by a grant on another cache": ("friend", "pay", "TABLE_RESTRICTED"),
}


@pytest.mark.spark
@pytest.mark.parametrize("case", TEXT)
def test_no_text_is_rewritten_by_rest_or_cli(place: Place, lab: Lab, case: str) -> None:
    token, cache, code = TEXT[case]
    until(lambda: _rewritten(place, lab, "friend", "narrow")["hit"], 10, "the caches are known")
    for found in (_rewritten(place, lab, token, cache), _explained(place, lab, token, cache)):
        assert not found["hit"] and code in {r["code"] for r in found["reasons"]}, found
        assert found.get("sql", found.get("rewrittenSql")) is None


@pytest.mark.spark
def test_texts_are_rewritten_for_whoever_is_on_the_list_and_for_no_void_token(
    place: Place, lab: Lab
) -> None:
    for cache in ("open", "narrow"):
        until(lambda c=cache: _rewritten(place, lab, "friend", c)["hit"], 10, "it is known")
        found = _explained(place, lab, "friend", cache)
        assert found["hit"] and found["caches"] == [f"{lab.schema}.{cache}"]
    for token in VOID:
        assert _rewritten(place, lab, token, "open")["error"]["type"] == "UNAUTHENTICATED"
        said = place.cli(token, "explain", "SELECT 1")
        assert said.exit_code == 1 and "UNAUTHENTICATED" in said.stderr and said.stdout == ""


def _rewritten(place: Place, lab: Lab, token: str, cache: str) -> dict[str, Any]:
    settings = result_settings(explicit_settings(lab.plain))
    body = {"sql": ANSWERED[cache], "schema": lab.schema, "settings": settings}
    found: dict[str, Any] = place.rest(token, "POST", "/rewrite", json=body).json()
    return found


def _explained(place: Place, lab: Lab, token: str, cache: str) -> dict[str, Any]:
    """By the command line, which knows no current schema."""
    settings = result_settings(explicit_settings(lab.plain)).items()
    query = ANSWERED[cache].replace("FROM ", f"FROM {lab.schema}.")
    conf = (word for k, v in settings for word in ("--conf", f"{k}={v}"))
    said = place.cli(token, "explain", query, "--json", *conf)
    assert said.exit_code == 0, said.output
    found: dict[str, Any] = json.loads(said.stdout)
    return found


@dataclass
class Remote(Lab):
    """A session that follows the service with the token that its file holds."""

    tokens: dict[str, str]

    @property
    def feed(self) -> Feed:
        return api._of(self.spark).session.feed

    @property
    def principal(self) -> str | None:
        return self.feed.principal

    def take(self, token: str, who: str = "") -> None:
        """Put a token into the file, and wait until the session has asked with it."""
        (self.folder / "token").write_text(self.tokens[token])

        def asked() -> bool:
            if token in VOID:
                return self.feed.why_not_ready() is not None
            return self.feed.why_not_ready() is None and self.principal == (who or token)

        until(asked, 10, f"the session has asked with the token {token}")

    def refused(self, query: str, code: str) -> str:
        """The query gives its rows from the base tables; the explanation, which has the code."""
        self.miss(query, code)
        return cachemgr.explain(self.spark, query).text()


@pytest.fixture(scope="module")
def remote(place: Place, lab: Lab, tmp_path_factory) -> Iterator[Remote]:
    folder = tmp_path_factory.mktemp("remote")
    (folder / "token").write_text(place.tokens["friend"])
    session = lab.plain.newSession()
    session.sql(f"USE {lab.schema}")
    session.conf.set("spark.cachemgr.url", place.url)
    session.conf.set("spark.cachemgr.tokenFile", str(folder / "token"))
    session.conf.set("spark.cachemgr.mode", "failFast")
    cachemgr.enable(session)
    try:
        yield Remote(session, lab.plain, place.url, lab.schema, folder, place.tokens)
    finally:
        cachemgr.disable(session)


# whose token a session follows the service with, and the cache that it is not told of
REMOTE = {
    "a principal outside the list": ("viewer", "narrow"),
    "an operator outside the list": ("operator", "narrow"),
    "an admin, who may grant it to himself": ("admin", "narrow"),
    "a restricted table": ("viewer", "pay"),
    "a restricted table, for an admin": ("admin", "pay"),
    "a restricted table, by a grant on another cache": ("friend", "pay"),
}
# why the caches that it is told of do not answer for that one
UNTOLD = {"narrow": "COLUMN_NOT_IN_CACHE", "pay": "NO_CACHE_FOR_TABLES"}


@pytest.mark.spark
@pytest.mark.parametrize("case", REMOTE)
def test_refused_by_the_hook_that_follows_the_service(remote: Remote, case: str) -> None:
    token, cache = REMOTE[case]
    remote.take(token)
    said = remote.refused(ANSWERED[cache], UNTOLD[cache])
    assert f"{remote.schema}.{cache}" not in said
    assert all(served.name != f"{remote.schema}.{cache}" for served in remote.feed.caches())
    remote.hit(ANSWERED["open"])


@pytest.mark.spark
def test_the_hook_that_follows_the_service_answers_whoever_is_on_the_list(remote: Remote) -> None:
    remote.take("friend")
    remote.hit(ANSWERED["narrow"])
    remote.take("viewer")
    remote.refused(ANSWERED["narrow"], UNTOLD["narrow"])


@pytest.mark.spark
@pytest.mark.parametrize("token", VOID)
def test_a_void_token_stops_the_hook_that_follows_the_service(remote: Remote, token: str) -> None:
    remote.take("viewer")
    remote.hit(ANSWERED["open"])
    remote.take(token)
    said = remote.refused(ANSWERED["open"], "NOT_GRANTED")
    assert "unknown, expired or revoked" in said and remote.tokens[token] not in said


@pytest.mark.spark
def test_a_token_revoked_while_the_session_follows_stops_it_within_five_seconds(
    place: Place, remote: Remote
) -> None:
    record, remote.tokens["leaver"] = place.store.tokens.create("friend", Role.VIEWER)
    remote.take("viewer")
    remote.take("leaver", who="friend")
    remote.hit(ANSWERED["narrow"])
    place.store.tokens.revoke(record.id)
    until(lambda: remote.feed.why_not_ready() is not None, 5, "the session hears of it")
    remote.refused(ANSWERED["narrow"], "NOT_GRANTED")


@pytest.mark.spark
@pytest.mark.parametrize("cache", ["narrow", "pay"])
def test_a_grant_by_rest_reaches_the_hook_that_follows_the_service_and_so_does_its_end(
    place: Place, lab: Lab, remote: Remote, cache: str
) -> None:
    remote.take("viewer")
    _granted_for_a_while(place, lab, remote, cache, "viewer")
    remote.refused(ANSWERED[cache], UNTOLD[cache])


@pytest.mark.spark
@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE RELATIONAL CACHE more{OPEN.removeprefix('open')}",
        "GRANT USE ON RELATIONAL CACHE narrow TO viewer",
        "UNRESTRICT BASE TABLE cust",
    ],
)
def test_no_session_that_follows_the_service_changes_anything(
    place: Place, remote: Remote, statement: str
) -> None:
    remote.take("viewer")
    before = place.store.registry.revision()
    with pytest.raises(ConfigurationError, match="carries out no statement"):
        remote.sql(statement)
    assert place.store.registry.revision() == before
