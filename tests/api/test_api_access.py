"""Grants and restricted tables by REST and by CLI, and who is told what."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from cachemgr.access.grants import hashed_id, role_needed
from cachemgr.cli import main
from cachemgr.ddl import parse
from cachemgr.metastore.records import DecisionRecord, Publication, SnapshotTableRecord
from cachemgr.roles import Role
from cachemgr.vocabulary import Outcome

ODD = ["ann@example.com", "team/blue", "o'hara", "DOMAIN\\user", "é ü", "%2e%2e", "a?b#c"]
TEXTS = {
    "viewer": [
        "SHOW RELATIONAL CACHES",
        "SHOW CREATE RELATIONAL CACHE c",
        "DESCRIBE RELATIONAL CACHE c",
        "SHOW RECORD PRESERVING JOINS",
        "SHOW RESTRICTED BASE TABLES",
        "SHOW SELECT GRANTS",
        "SHOW SELECT GRANTS ON BASE TABLE t",
        "EXPLAIN REWRITE SELECT 1",
        "EXPLAIN REFRESH c",
    ],
    "operator": [
        "CREATE RELATIONAL CACHE c AS SELECT 1 AS a",
        "EXPLAIN CREATE RELATIONAL CACHE c AS SELECT 1 AS a",
        "ALTER RELATIONAL CACHE c PAUSE",
        "REFRESH RELATIONAL CACHE c",
        "DROP RELATIONAL CACHE c",
        "VALIDATE RECORD PRESERVING JOIN j",
        "DROP RECORD PRESERVING JOIN j",
        "CREATE RECORD PRESERVING JOIN j AS a INNER JOIN b ON a.k = b.k PRESERVES a",
    ],
    "admin": [
        "CREATE RELATIONAL CACHE c LOCATION 's3://open/to/me' AS SELECT 1 AS a",
        "GRANT USE ON RELATIONAL CACHE c TO p",
        "REVOKE USE ON RELATIONAL CACHE c FROM p",
        "RESTRICT BASE TABLE t",
        "UNRESTRICT BASE TABLE t",
        "GRANT SELECT ON BASE TABLE t TO p",
        "REVOKE SELECT ON BASE TABLE t FROM p",
    ],
}


@pytest.mark.parametrize(
    ("role", "text"), [(role, text) for role, texts in TEXTS.items() for text in texts]
)
def test_the_role_of_each_statement(role, text):
    assert role_needed(parse(text)) is Role(role)


@pytest.fixture
def admin(client_of):
    return client_of(Role.ADMIN)


def quoted(principal: str) -> str:
    return quote(principal, safe="")


@pytest.mark.parametrize("principal", ODD)
def test_any_principal_can_be_granted_and_revoked(admin, cache, store, principal):
    path = f"/api/v1/caches/cube/grants/{quoted(principal)}"
    answer = admin.put(path)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"narrowed": True, "principals": [principal]}
    assert store.grants.of(cache.id) == (principal,)
    assert admin.put(path).json()["principals"] == [principal]
    assert admin.delete(path).json() == {"narrowed": True, "principals": []}
    again = admin.delete(path)
    assert again.status_code == 404 and again.json()["error"]["type"] == "GRANT_NOT_FOUND"


@pytest.mark.parametrize("principal", [" ", "a\nb", "x" * 257, "a\u202eb"])
def test_what_is_no_principal(admin, cache, store, principal):
    answer = admin.put(f"/api/v1/caches/cube/grants/{quoted(principal)}")
    assert answer.status_code in (400, 404, 422), answer.text
    assert store.grants.of(cache.id) == ()
    assert not store.caches.get(cache.id).narrowed


def test_grants_are_shown_to_admins_alone(client_of, admin, cache):
    admin.put("/api/v1/caches/cube/grants/ann")
    for path, pick in (
        ("/api/v1/caches/cube", lambda found: found),
        ("/api/v1/caches", lambda found: found["caches"][0]),
    ):
        assert pick(admin.get(path).json())["grants"] == ["ann"]
        for role in (Role.VIEWER, Role.OPERATOR):
            found = pick(client_of(role).get(path).json())
            assert found["narrowed"] is True and found["grants"] is None


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_who_sees_rows_is_the_admins_to_say(client_of, cache, store, role):
    mark = store.tables.restrict("hr.pay", "file:/pay", "id", by="root")
    before = store.registry.revision()
    other = client_of(role)
    refused = [
        other.get("/api/v1/caches/cube/grants"),
        other.put("/api/v1/caches/cube/grants/me"),
        other.delete("/api/v1/caches/cube/grants/me"),
        other.post("/api/v1/tables/restricted", json={"table": "t"}),
        other.delete(f"/api/v1/tables/restricted/{mark.id}"),
        other.post(
            "/api/v1/caches",
            json={"ddl": "CREATE RELATIONAL CACHE c LOCATION '/tmp/mine' AS SELECT a FROM t"},
        ),
    ]
    assert [answer.status_code for answer in refused] == [403] * 6
    assert store.registry.revision() == before
    assert store.tables.restricted() == (mark,)


def test_restricted_tables_are_listed_and_unmarked(client_of, admin, store):
    mark = store.tables.restrict("hr.pay", "file:/pay", "id", by="root")
    found = client_of(Role.VIEWER).get("/api/v1/tables/restricted").json()["tables"]
    assert [(t["id"], t["name"], t["restrictedBy"]) for t in found] == [(mark.id, "hr.pay", "root")]
    path = f"/api/v1/tables/restricted/{mark.id}"
    assert admin.delete(path).status_code == 204
    assert admin.delete(path).json()["error"]["type"] == "TABLE_NOT_RESTRICTED"


@pytest.mark.parametrize("table", ["", "t; DROP TABLE x", "a.b.c.d", "SELECT 1", "`", "x" * 600])
def test_a_text_that_is_more_than_a_name_is_no_table(admin, store, table):
    answer = admin.post("/api/v1/tables/restricted", json={"table": table})
    assert answer.status_code in (400, 422), answer.text
    assert store.tables.restricted() == ()


def run(store, *args):
    return CliRunner().invoke(main, [*args, "--metastore", store.url])


def test_grants_by_cli(store, cache):
    assert "everybody" in run(store, "cache", "grants", "cube").stdout
    assert run(store, "cache", "grant", "cube", "ann@example.com").exit_code == 0
    found = run(store, "cache", "grants", "cube", "-o", "json")
    assert json.loads(found.stdout) == [{"narrowed": True, "principals": ["ann@example.com"]}]
    assert run(store, "cache", "revoke", "cube", "ann@example.com").exit_code == 0
    assert run(store, "cache", "grants", "cube").stdout.strip() == "PRINCIPAL"
    failed = run(store, "cache", "revoke", "cube", "bob")
    assert failed.exit_code == 1 and "GRANT_NOT_FOUND" in failed.stderr


def test_restricted_tables_by_cli(store):
    store.tables.restrict("hr.pay", "file:/pay", "id", by="root")
    assert "hr.pay" in run(store, "table", "list").stdout
    failed = run(store, "table", "unrestrict", "hr.nothing")
    assert failed.exit_code == 1 and "TABLE_NOT_RESTRICTED" in failed.stderr
    assert run(store, "table", "unrestrict", "HR.pay").exit_code == 0
    assert store.tables.restricted() == ()


def test_a_viewer_sees_of_other_peoples_decisions_no_value_and_no_name(client_of, store):
    reasons = ({"code": "PREDICATE_NOT_CONTAINED", "detail": "name = 'Smith'"},)
    store.decisions.log(
        DecisionRecord(
            store.clock.now(), "s", "h", Outcome.MISS, reasons=reasons, principal=principal
        )
        for principal in ("ann", "bob", None)
    )

    def seen(role: Role, principal: str = "") -> tuple[dict, str]:
        found = client_of(role, principal).get("/api/v1/decisions").json()["decisions"]
        return {d["principal"]: d["reasons"][0] for d in found}, json.dumps(found)

    mine, text = seen(Role.VIEWER, "ann")
    assert mine["ann"]["detail"] == "name = 'Smith'" and mine[None] == {"code": reasons[0]["code"]}
    assert "bob" not in text and text.count("Smith") == 1
    everything, text = seen(Role.OPERATOR)
    assert set(everything) == {"ann", "bob", None} and text.count("Smith") == 3


def test_viewers_are_shown_no_ids_of_caches(client_of, cache, store):
    """Whoever may read the storage would find the files of a cache by its id."""
    store.queue.request(cache.id, why="asked")
    run = store.queue.claim("w", lease_seconds=20)
    below = f"s3a://caches/{'0' * 32}"
    places = {"below": below, "u": "s3a://u"}
    tables = [SnapshotTableRecord(name, place, "t", 1) for name, place in places.items()]
    store.refreshes.publish(
        run.id, 1, Publication(cache_version=3, rows=7, bytes=70, tables=tables), now=None
    )
    for role in Role:
        client = client_of(role)
        shown = client.get("/api/v1/caches/cube")
        assert shown.json() == client.get("/api/v1/caches").json()["caches"][0]
        may = role is not Role.VIEWER
        assert (cache.id in shown.text, below in shown.text) == (may, may)
        places = {t["name"]: t["location"] for t in shown.json()["published"]["tables"]}
        assert places["u"] == "s3a://u"
        if not may:
            assert shown.json()["id"] == hashed_id(cache.id)
            assert places["below"] == f"s3a://caches/{hashed_id('0' * 32)}"


def test_nobody_reads_ids_of_caches_in_page_tokens(client_of, new_cache, store):
    made = [new_cache(f"c{i}") for i in range(3)]
    store.grants.add(made[0].id, "ann")
    bob = client_of(Role.VIEWER, "bob")
    for _ in range(2):
        store.queue.request(made[1].id, why="asked")
        run = store.queue.claim("w", lease_seconds=20)
        store.refreshes.fail(run.id, run.fencing_token, "no", now=None)
    for path in ("caches", "caches/c1/refreshes", "catalog"):
        token, told = None, 0
        while token is not None or not told:
            params = {"pageSize": 1} | ({} if token is None else {"pageToken": token})
            answer = bob.get(f"/api/v1/{path}", params=params)
            assert answer.status_code == 200, answer.text
            token, told = answer.json()["nextPageToken"], told + 1
            read = base64.urlsafe_b64decode((token or "") + "===").decode()
            assert not [c.name for c in made if c.id in read], path
        assert told >= 2, path
