"""What stands around every request: tokens, roles, sizes, rates, repetition, trouble."""

from __future__ import annotations

import json
import socket
import time
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import text

from cachemgr.api.dependencies import digest_of
from cachemgr.errors import AlreadyExistsError, MetastoreError
from cachemgr.metastore import Metastore
from cachemgr.metastore.idempotency import KEY_ABANDONED_SECONDS
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.roles import Role
from cachemgr.statements.results import ResultRows, table

READS = [
    ("GET", "/api/v1/caches"),
    ("GET", "/api/v1/caches/cube"),
    ("GET", "/api/v1/caches/cube/refreshes"),
    ("GET", "/api/v1/joins"),
    ("GET", "/api/v1/decisions"),
    ("GET", "/api/v1/info"),
]
CHANGES = [
    ("POST", "/api/v1/caches/cube/refreshes"),
    ("POST", "/api/v1/caches/cube/enable"),
    ("POST", "/api/v1/caches/cube/disable"),
    ("POST", "/api/v1/caches/cube/pause"),
    ("POST", "/api/v1/caches/cube/resume"),
    ("PATCH", "/api/v1/caches/cube"),
    ("DELETE", "/api/v1/caches/cube"),
    ("POST", "/api/v1/caches"),
    ("POST", "/api/v1/joins"),
    ("DELETE", "/api/v1/joins/j"),
    ("POST", "/api/v1/joins/j/validate"),
    ("POST", "/api/v1/refreshes/x/cancel"),
    ("POST", "/api/v1/refreshes/x/retry"),
]
BODY = {"version": 1, "paused": True, "ddl": "x", "sql": "x"}


def ask(client, method, path, **more):
    body = {} if method in ("GET", "DELETE") else {"json": BODY}
    return client.request(method, path, **(body | more))


@pytest.mark.parametrize(("method", "path"), READS + CHANGES)
def test_nothing_without_a_token(serve, cache, method, path):
    answer = ask(httpx.Client(base_url=serve()), method, path)
    assert answer.status_code == 401 and answer.json()["error"]["type"] == "UNAUTHENTICATED"
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_a_viewer_changes_nothing(client_of, cache, store, method, path):
    before = (store.caches.all(), store.queue.waiting(), store.registry.revision())
    answer = ask(client_of(Role.VIEWER), method, path)
    assert answer.status_code == 403 and "operator" in answer.json()["error"]["message"]
    assert (store.caches.all(), store.queue.waiting(), store.registry.revision()) == before


@pytest.mark.parametrize(("method", "path"), READS)
def test_a_viewer_reads(client_of, cache, method, path):
    assert ask(client_of(Role.VIEWER), method, path).status_code == 200


@pytest.mark.parametrize("wrong", ["nonsense", "cachemgr_a_b", "a b c", "\u00e9".encode()])
def test_foreign_tokens(serve, store, wrong):
    store.tokens.create("ann", Role.ADMIN)
    value = b"Bearer " + wrong if isinstance(wrong, bytes) else f"Bearer {wrong}"
    answer = httpx.get(f"{serve()}/api/v1/caches", headers={"Authorization": value})
    assert answer.status_code == 401


def test_expired_and_revoked_tokens(serve, store):
    url = serve()
    record, token = store.tokens.create("ann", Role.ADMIN, expires_in=timedelta(hours=1))
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{url}/api/v1/caches", headers=headers).status_code == 200
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE tokens SET expires_at = created_at"))
    assert httpx.get(f"{url}/api/v1/caches", headers=headers).status_code == 401
    record, token = store.tokens.create("ann", Role.ADMIN)
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{url}/api/v1/caches", headers=headers).status_code == 200
    store.tokens.revoke(record.id)
    assert httpx.get(f"{url}/api/v1/caches", headers=headers).status_code == 401


def test_health_needs_no_token(serve, store):
    url = serve()
    assert httpx.get(f"{url}/healthz").json()["status"] == "ok"
    assert httpx.get(f"{url}/readyz").status_code == 200


def test_ids_of_requests(client):
    given = client.get("/healthz", headers={"X-Request-Id": "abc-1"})
    assert given.headers["X-Request-Id"] == "abc-1"
    made = client.get("/healthz", headers={"X-Request-Id": "no spaces\tor tabs"})
    assert len(made.headers["X-Request-Id"]) == 32


def test_huge_bodies(client, cache):
    answer = client.post("/api/v1/caches", content=b"x" * (3 * 1024 * 1024))
    assert answer.status_code == 413 and answer.json()["error"]["type"] == "REQUEST_TOO_LARGE"
    parts = (b"x" * 65536 for _ in range(48))  # no Content-Length
    assert client.post("/api/v1/caches", content=parts).status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"ddl": 1}',
        b"null",
        b'"x"',
        b"{}",
        b'{"ddl": "SELECT \\u0000"}',
    ],
)
def test_bodies_that_are_no_json(client, body):
    answer = client.post(
        "/api/v1/caches", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]["type"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])
def test_a_body_that_is_not_said_to_be_json(client, kind):
    answer = client.post("/api/v1/caches", content=b'{"ddl": "x"}', headers={"Content-Type": kind})
    assert answer.status_code == 422
    message = answer.json()["error"]["message"]
    assert kind in message and "send Content-Type: application/json" in message


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", "/"),
        ("/caches", "/caches"),
        ("/api/v1/cache", "/api/v1/cache"),
        ("/a%1b%0ab", "/a\\x1b\\nb"),
        ("/x?token=abc", "/x"),
        ("/" + "é" * 900, "/" + "é" * 199 + "…"),
    ],
)
def test_a_path_that_is_not_ours_is_named_with_where_they_are_listed(client, path, shown):
    answer = client.get(path)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (404, "NOT_FOUND")
    listed = "/api/v1/openapi.json"
    assert error["message"] == (
        f"there is no {shown}: paths begin with /api/v1, and GET {listed} lists them"
    )
    assert "/api/v1/caches" in client.get(listed).json()["paths"]


def test_no_route_and_no_method(client):
    assert client.get("/api/v1/nothing").json()["error"]["type"] == "NOT_FOUND"
    assert client.put("/api/v1/caches").json()["error"]["type"] == "METHOD_NOT_ALLOWED"


def test_rates_are_limited_for_each_client(serve, store):
    url = serve(requests_a_second=1)
    _, token = store.tokens.create("ann", Role.VIEWER)
    answers = [httpx.get(f"{url}/healthz") for _ in range(6)]
    refused = [a for a in answers if a.status_code == 429]
    assert refused and refused[0].headers["Retry-After"] == "1"
    mine = httpx.get(f"{url}/healthz", headers={"Authorization": f"Bearer {token}"})
    assert mine.status_code == 200


class Statements:
    """Counts; what it raises is a fault."""

    def __init__(self, error: Exception | None = None) -> None:
        self.texts: list[tuple[str, str]] = []
        self.error = error

    def execute(self, text: str, principal: str) -> ResultRows:
        self.texts.append((text, principal))
        if self.error is not None:
            raise self.error
        return table(["name"], [("done",)])


def declare(store: Metastore, name: str) -> None:
    """A record-preserving join of that name."""
    sides = JoinSide("a", "file:/a", "id-a"), JoinSide("b", "file:/b", "id-b")
    join = JoinRecord(name, f"CREATE {name}", *sides, keys=(("x", "y"),))
    store.joins.create(join, now=store.clock.now())


def test_a_repeated_request_is_carried_out_once(serve, store):
    statements = Statements()
    url = serve(open_to_all=True, statements=statements)
    declare(store, "one")
    declare(store, "two")

    def send(join: str, key: str) -> httpx.Response:
        return httpx.post(f"{url}/api/v1/joins/{join}/validate", headers={"Idempotency-Key": key})

    first, second = send("one", "k1"), send("one", "k1")
    assert first.status_code == second.status_code == 200 and first.json() == second.json()
    assert len(statements.texts) == 1
    assert second.headers["Idempotency-Replayed"] == "true"
    other = send("two", "k1")
    assert other.status_code == 422 and other.json()["error"]["type"] == "IDEMPOTENCY_KEY_REUSED"
    assert send("one", "k2").status_code == 200 and len(statements.texts) == 2
    assert send("one", "no spaces").status_code == 400


def test_one_that_is_being_carried_out(client, cache, store):
    principal, key = "operator", "k1"
    path = "/api/v1/caches/cube/pause"
    store.idempotency.begin(principal, key, digest_of(path.encode(), b"", b""))
    answer = client.post(path, headers={"Idempotency-Key": key})
    assert answer.status_code == 409
    assert answer.json()["error"]["type"] == "IDEMPOTENCY_IN_PROGRESS"


@pytest.mark.parametrize(("owner", "status"), [("local", 201), ("ann", 409)])
def test_a_create_that_was_cut_off_is_answered_when_sent_again(
    serve, store, new_cache, owner, status
):
    """The replica died after it had made the cache, and before it could say so."""
    taken = AlreadyExistsError("CACHE_EXISTS", "the name is taken")
    url = serve(open_to_all=True, statements=Statements(taken))
    made = new_cache("cube", owner=owner)
    body = json.dumps({"ddl": f"CREATE RELATIONAL CACHE cube AS {made.definition}"}).encode()
    store.idempotency.begin("", "k1", digest_of(b"/api/v1/caches", b"", body))

    def send(key: str) -> httpx.Response:
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        return httpx.post(f"{url}/api/v1/caches", content=body, headers=headers)

    assert send("k1").headers["Retry-After"] == "5"
    with store.engine.begin() as connection:
        moment = store.clock.now() - timedelta(seconds=KEY_ABANDONED_SECONDS + 1)
        connection.execute(
            text("UPDATE idempotency_keys SET created_at = :at"),
            {"at": moment.strftime("%Y-%m-%d %H:%M:%S.%f")},
        )
    again = send("k1")
    assert again.status_code == status
    if status == 201:
        assert again.json()["id"] == made.id and again.headers["Location"].endswith("cube")
        assert send("k1").headers["Idempotency-Replayed"] == "true"
    assert send("k2").status_code == 409, "without that key it is somebody else's"


def test_a_refresh_is_asked_for_once(client, cache, store):
    headers = {"Idempotency-Key": "k1"}
    first = client.post("/api/v1/caches/cube/refreshes", headers=headers)
    store.queue.claim("w1", lease_seconds=20)
    second = client.post("/api/v1/caches/cube/refreshes", headers=headers)
    assert first.json() == second.json() and second.status_code == 202
    assert second.headers["Location"] == first.headers["Location"]
    assert store.queue.waiting() == ()


def test_a_database_that_is_down(serve, store, monkeypatch):
    statements = Statements(MetastoreError("METASTORE_UNREADABLE", "it cannot be opened"))
    url = serve(open_to_all=True, statements=statements)
    declare(store, "one")
    answer = httpx.post(f"{url}/api/v1/joins/one/validate")
    assert answer.status_code == 503 and answer.headers["Retry-After"] == "5"
    assert answer.json()["error"]["type"] == "METASTORE_UNREADABLE"

    def fails():
        raise MetastoreError("METASTORE_UNREADABLE", "it cannot be opened")

    monkeypatch.setattr(store.registry, "revision", fails)
    ready = httpx.get(f"{url}/readyz")
    assert ready.status_code == 503 and ready.json()["status"] == "unavailable"
    assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_bug_shows_no_trace(serve, store):
    url = serve(open_to_all=True, statements=Statements(ZeroDivisionError("secret detail")))
    declare(store, "one")
    answer = httpx.post(f"{url}/api/v1/joins/one/validate", headers={"X-Request-Id": "r-9"})
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "INTERNAL_ERROR" and "r-9" in answer.text
    assert "secret" not in answer.text and "Traceback" not in answer.text


def test_metrics_name_no_sql_and_no_user(client, cache, store):
    client.get("/api/v1/caches/cube")
    client.get("/api/v1/caches/nothing")
    shown = client.get("/metrics").text
    assert 'route="/api/v1/caches/{name}",status="200"' in shown
    assert "nothing" not in shown and "operator" not in shown


def test_a_method_that_is_not_there_names_those_that_are(client, cache):
    answer = client.request("PUT", "/api/v1/caches/cube")
    assert answer.status_code == 405 and answer.headers["Allow"] == "DELETE, GET, PATCH"
    assert client.request("DELETE", "/api/v1/rewrite").headers["Allow"] == "POST"
    grants = client.request("OPTIONS", "/api/v1/caches/cube/grants/team/ann")
    assert grants.status_code == 405 and grants.headers["Allow"] == "DELETE, PUT"


def test_a_parameter_that_is_given_twice(client, cache):
    answer = client.get("/api/v1/caches?like=a&pageSize=2&like=b")
    assert answer.status_code == 400, "neither of the two is the right one"
    assert answer.json()["error"]["type"] == "REPEATED_PARAMETER"
    assert "like" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("caches?lik=a", "unknown query parameter 'lik': /api/v1/caches takes like, pageSize, "),
        ("decisions?=0.0", "unknown query parameter '': /api/v1/decisions takes cache, limit, "),
        ("caches/cube?like=a", "unknown query parameter 'like': /api/v1/caches/{name} takes none"),
    ],
)
def test_a_parameter_that_is_not_there(client, cache, path, named):
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 422, "a filter that is misspelt would show everything"
    assert answer.json()["error"]["type"] == "UNKNOWN_PARAMETER"
    assert answer.json()["error"]["message"].startswith(named)


def test_whoever_asks_for_health_may_add_what_no_cache_between_knows(client):
    assert client.get("/healthz?now=5").status_code == 200


def test_moments_are_written_with_their_zone(client):
    for since, status in (
        ("2026-01-31T12:00:00Z", 200),
        ("2026-01-31T12:00:00%2B01:00", 200),
        ("2026-01-31T12:00:00", 422),
        ("9999-12-31T23:59:59-23:59", 422),  # of the year 10000
        ("0001-01-01T00:00:00%2B01:00", 422),
        ("2026-01-31", 422),
        ("0.5", 422),
        ("1769860800", 422),
    ):
        answer = client.get(f"/api/v1/decisions?since={since}")
        assert answer.status_code == status, since


def test_a_client_that_hangs_up_is_no_error_of_ours(serve, caplog):
    url = serve(open_to_all=True)
    head = "POST /api/v1/caches HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 5) as connection:
        connection.sendall(head.encode())
    with httpx.Client(base_url=url) as client:
        until = time.monotonic() + 10
        while 'status="400"' not in client.get("/metrics").text:
            assert time.monotonic() < until
            time.sleep(0.05)
    assert not [r for r in caplog.records if r.levelname == "ERROR"]
