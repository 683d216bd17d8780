"""Rates, sizes and foreign pages, on clocks and bytes of the test's own; and secrets."""

from __future__ import annotations

import asyncio
import io
import json
import logging

import httpx
import pytest
from fastapi import Request

from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState
from cachemgr.api.guards import (
    BodyLimit,
    Limits,
    RateLimit,
    holds_half_character,
    is_too_large,
)
from cachemgr.errors import ConfigurationError, MetastoreError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.database import hidden, metastore_url
from cachemgr.roles import Role
from cachemgr.secrets import masked, refuse_secrets
from cachemgr.server.logs import configure_logs


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("body", "half"),
    [
        (rb'{"a": "\ud800"}', True),
        (rb'{"a": {"\uDFFF": 1}}', True),
        (rb'["\udc00\ud800"]', True),
        (b'"\xed\xa0\x80"', True),
        (rb'{"a": "\ud83d\ude00 \u00e9"}', False),
        (rb'{"a": "\\ud800"}', False),
        ('"\ud55c"'.encode(), False),
        (rb'{"a": "\ud800"', False),
        (b"[" * 100_000 + rb'"\ud800"', False),
        (b"", False),
    ],
)
def test_half_a_character_is_found_where_a_text_of_json_has_one(body, half):
    assert holds_half_character(body) is half


def test_a_bucket_fills_at_its_rate():
    clock = Clock()
    limit = RateLimit(2, clock)
    waits = []
    for _ in range(6):
        waits.append(limit.seconds_to_wait("a"))
        if waits[-1] == 0:
            limit.take("a")
    assert waits == [0, 0, 0, 0, 1, 1] and limit.seconds_to_wait("b") == 0
    clock.now += 0.5
    assert limit.seconds_to_wait("a") == 0


def test_the_wait_is_as_long_as_it_takes():
    limit = RateLimit(0.1, Clock())
    limit.take("a")
    assert limit.seconds_to_wait("a") == 10


def test_no_rate_is_no_limit():
    limits = Limits(0, Clock())
    for _ in range(100):
        assert limits.seconds_to_wait("h", "t") == 0
        limits.refused("h", "t")


def test_made_up_tokens_share_the_bucket_of_their_address():
    clock = Clock()
    limits = Limits(2, clock)
    limits.accepted("h", "good")
    asked = 0
    for number in range(50):
        if limits.seconds_to_wait("h", f"made up {number}") == 0:
            limits.refused("h", f"made up {number}")
            asked += 1
    assert asked == 4
    assert limits.seconds_to_wait("h", "good") == 0  # whoever is known goes on
    assert limits.seconds_to_wait("elsewhere", "made up") == 0
    clock.now += 10
    assert limits.seconds_to_wait("h", "one more") == 0


def test_a_body_that_does_not_end_is_read_no_further_than_the_limit():
    given = 0

    async def receive():
        nonlocal given
        given += 1
        return {"type": "http.request", "body": b"x" * 10, "more_body": True}

    async def application(scope, receive, send):
        read = b""
        while (message := await receive())["more_body"]:
            read += message["body"]
        assert len(read) == 90 and is_too_large(Request(scope))

    asyncio.run(BodyLimit(application, 95)({"type": "http"}, receive, None))
    assert given == 10


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "["}, 200),  # it names nobody
    ],
)
def test_an_open_service_answers_no_page_of_another_site(serve, store, cache, headers, status):
    url = serve(open_to_all=True)
    before = store.registry.revision()
    answer = httpx.post(f"{url}/api/v1/caches/cube/pause", headers=headers)
    assert answer.status_code == status
    assert (store.registry.revision() == before) is (status == 403)
    if status == 403:
        assert answer.json()["error"]["type"] == "FOREIGN_SITE"
        assert httpx.get(f"{url}/healthz", headers=headers).status_code == 200


def test_a_token_is_enough_from_anywhere(client_of, cache):
    headers = {"Origin": "https://console.example", "Host": "caches.example"}
    assert client_of(Role.VIEWER).get("/api/v1/caches", headers=headers).status_code == 200


def test_whoever_is_refused_leaves_nothing_and_gets_no_answer_of_others(serve, store, cache):
    headers = {"Idempotency-Key": "k1"}
    path = "/api/v1/caches/cube/pause"
    assert httpx.post(f"{serve(open_to_all=True)}{path}", headers=headers).status_code == 200
    url = serve()
    for token in ({}, {"Authorization": "Bearer cachemgr_a_b"}):
        answer = httpx.post(f"{url}{path}", headers=headers | token)
        assert answer.status_code == 401 and "Idempotency-Replayed" not in answer.headers


def test_the_last_token_revoked_lets_nobody_in(store):
    assert not store.tokens.had_any()
    record, _ = store.tokens.create("ann", Role.ADMIN)
    store.tokens.revoke(record.id)
    assert store.tokens.had_any() and not store.tokens.has_any()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:s3cret@db:5432/x", "postgresql://ann:***@db:5432/x"),
        ("at postgresql://ann:p@ss/w:rd@db/x now", "at postgresql://ann:***@db/x now"),
        ("postgresql://db/x?user=a&password=s3cret", "postgresql://db/x?user=a&password=***"),
        ("https://store/c?sv=1&sig=abc%2Fd", "https://store/c?sv=1&sig=***"),
        ("token cachemgr_" + "a" * 32 + "_" + "b" * 48, "token cachemgr_" + "a" * 32 + "_***"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer ***"),
        ("file:/data/t, s3a://bucket/a b@c", "file:/data/t, s3a://bucket/a b@c"),
        (
            "abfss://box@account.dfs.core.windows.net/c",
            "abfss://box@account.dfs.core.windows.net/c",
        ),
    ],
)
def test_what_is_masked(text, shown):
    assert masked(text) == shown


def test_urls_of_metastores_are_masked_in_every_error():
    for url in (
        "postgresql://ann:s3cret@db:port/x",
        "mysql://ann:s3cret@db/x",
        "postgresql://ann:s3cret@127.0.0.1:1/x?connect_timeout=1",
        "postgresql://127.0.0.1:1/x?user=ann&password=s3cret&connect_timeout=1",
    ):
        with pytest.raises(MetastoreError) as caught:
            open_metastore(url)
        assert "s3cret" not in str(caught.value)
    assert "s3cret" not in hidden(metastore_url("postgresql://db/x?password=s3cret"))


@pytest.mark.parametrize(
    ("log_format", "terminal", "as_json"),
    [("json", True, True), ("text", False, False), ("auto", True, False), ("auto", False, True)],
)
def test_logs_hold_no_secret_whoever_writes_them(log_format, terminal, as_json, monkeypatch):
    out = io.StringIO()
    out.isatty = lambda: terminal
    monkeypatch.setattr("sys.stderr", out)
    configure_logs("INFO", log_format)
    log = logging.getLogger("some.library")
    log.info("connecting to %s", "postgresql://ann:s3cret@db/x")
    try:
        raise ValueError("no host in postgresql://ann:s3cret@/x")
    except ValueError:
        log.exception("failed with cachemgr_%s_%s", "a" * 32, "5ec4e7" * 8)
    text = out.getvalue()
    assert "s3cret" not in text and "5ec4e7" not in text and "***" in text
    assert "Traceback" in text
    assert text.startswith("{") == as_json
    if as_json:
        assert all(json.loads(line) for line in text.splitlines())


@pytest.mark.parametrize(
    ("texts", "properties"),
    [
        ({"LOCATION": "s3a://KEY:s3cret@bucket/c"}, {}),
        ({"LOCATION": "https://a/c?sig=s3cret"}, {}),
        ({"the SELECT": "SELECT a FROM delta.`s3a://KEY:s3cret@bucket/t`"}, {}),
        ({}, {"fs.s3a.secret.key": "s3cret"}),
        ({}, {"option.fs.azure.account.key": "s3cret"}),
        ({}, {"Password": "s3cret"}),
        ({}, {"comment": "ask postgresql://ann:s3cret@db/x"}),
    ],
)
def test_definitions_hold_no_secret(texts, properties):
    with pytest.raises(ConfigurationError) as caught:
        refuse_secrets("c", texts, properties)
    assert caught.value.code == "SECRET_IN_DEFINITION" and "s3cret" not in str(caught.value)


def test_ordinary_definitions_pass():
    texts = {
        "LOCATION": "abfss://box@account.dfs.core.windows.net/c",
        "the SELECT": "SELECT a, 'x:y@z' AS b FROM t WHERE u LIKE 'http://%' AND token = 'abc'",
    }
    refuse_secrets("c", texts, {"delta.appendOnly": "false", "owner": "ann@example.com"})


@pytest.mark.postgres
def test_a_database_that_is_gone_is_503_and_said_by_readyz(postgres_server, postgres_url):
    import psycopg
    from sqlalchemy import make_url

    state_url = make_url(postgres_url)
    with open_metastore(postgres_url) as store:
        _, token = store.tokens.create("ann", Role.ADMIN)
        app = create_app(ApiState(store, NoSpark(), lambda: False))
        headers = {"Authorization": f"Bearer {token}"}

        async def ask(path: str) -> httpx.Response:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
                return await client.get(path, headers=headers)

        assert asyncio.run(ask("/readyz")).status_code == 200
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{state_url.database}" WITH (FORCE)')
        for path in ("/readyz", "/api/v1/caches", "/api/v1/decisions", "/api/v1/tables/restricted"):
            answer = asyncio.run(ask(path))
            assert answer.status_code == 503, (path, answer.text)
            assert int(answer.headers["Retry-After"]) > 0 and "Traceback" not in answer.text
        assert asyncio.run(ask("/readyz")).json()["status"] == "unavailable"
        assert asyncio.run(ask("/healthz")).status_code == 200


class NoSpark:
    """Statements are not part of these tests."""

    def execute(self, text: str, principal: str):
        raise AssertionError("no statement was expected")
