"""/rewrite and /explain as a gateway asks them: what they accept, count and limit."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import CollectorRegistry

from cachemgr.metastore import Metastore
from cachemgr.roles import Role
from cachemgr.text.door import TextAnswer, TextRequest
from matcher.model.reasons import Reason, ReasonCode

PATHS = ("rewrite", "explain")
BODY = {"sql": "SELECT 'ü' AS x", "settings": {"a": "b"}}


class Door:
    """Says what it was asked."""

    def answer(self, request: TextRequest, *, explain: int | None = None) -> TextAnswer:
        if "broken" in request.sql:
            raise ZeroDivisionError("a secret")
        said = f"{request.sql} {request.principal} {dict(request.settings)} {explain}"
        return TextAnswer(reasons=(Reason(ReasonCode.HINT, said, ""),), settings={"s": "ü"})

    quick = answer
    soon = answer


@pytest.fixture
def client(serve, store: Metastore) -> Iterator[httpx.Client]:
    url = serve(texts=Door(), requests_a_second=1000)
    _, token = store.tokens.create("ann", Role.VIEWER)
    with httpx.Client(base_url=f"{url}/api/v1", timeout=30) as made:
        made.headers["Authorization"] = f"Bearer {token}"
        yield made


@pytest.mark.parametrize("path", PATHS)
def test_a_repeated_request_says_the_same(client, path):
    given = {"X-Request-Id": "mine"}
    once = client.post(f"/{path}", json=BODY, headers=given)
    keyed = client.post(f"/{path}", json=BODY, headers={**given, "Idempotency-Key": path})
    again = client.post(f"/{path}", json=BODY, headers={**given, "Idempotency-Key": path})
    assert once.status_code == keyed.status_code == again.status_code == 200
    assert once.json() == keyed.json() == again.json() and "'ü' AS x ann" in once.text
    for name in ("content-type", "x-request-id"):
        assert once.headers[name] == keyed.headers[name]
    assert client.post(f"/{path}", json=BODY).headers["x-request-id"] != "mine"


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{", {}, 422),
        (b'{"sql": "SELECT 1", "more": 1}', {}, 422),
        (b'{"sql": 1}', {}, 422),
        (b'{"sql": "\\ud800"}', {}, 400),
        (b'{"sql": "\xed\xa0\x80"}', {}, 400),
        (b'{"sql": "SELECT 1", "settings": {"spark.sql.session.timeZone": "\\udfff"}}', {}, 400),
        (b"[" * 100_000, {}, None),
        (b'{"sql": "SELECT \\u0000"}', {}, 400),
        (b'{"sql": "SELECT 1"}', {"Content-Type": "text/plain"}, 422),
        (b'{"sql": "SELECT 1"}', {"Authorization": "Bearer cm_unknown"}, 401),
        (b'{"sql": "SELECT 1"}', {"Authorization": "Basic x"}, 401),
        (b'{"sql": "SELECT 1"}', {"Idempotency-Key": "k"}, 200),
        (json.dumps({"sql": "SELECT 1 " + " " * 50_000}).encode(), {}, 200),
    ],
)
@pytest.mark.parametrize("path", PATHS)
def test_what_is_not_in_order_is_refused(client, path, content, headers, status):
    sent = {"Content-Type": "application/json", **headers}
    answer = client.post(f"/{path}", content=content, headers=sent)
    assert answer.status_code == status or (status is None and answer.status_code < 500)


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b'{"sql": "x", "a": ' + b"9" * 5_000 + b"}", 400, "more than 4,300 digits"),
        (b'{"sql": "x", "a": ' + b"9" * 2_000_000 + b"}", 400, "more than 4,300 digits"),
        (b'{"sql": "x", "a": -' + b"9" * 4_000 + b"}", 422, "a: "),
        (b"[" * 200_000, 400, "nested too deeply"),
        (b'{"sql": "\xff"}', 400, "byte 9 of it is not UTF-8"),
        (b'{"sql": "x",}', 422, "not valid JSON: "),
        (b"{sql: 1}", 422, "at character 1"),
    ],
)
def test_what_is_wrong_with_a_body_is_said(client, content, status, says):
    answer = client.post("/rewrite", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, says in answer.json()["error"]["message"]) == (status, True)
    assert answer.json()["error"]["type"] == "INVALID_REQUEST"


def test_other_methods_and_parameters(client):
    assert client.get("/rewrite").status_code == 405
    assert client.post("/rewrite?x=1&x=2", json=BODY).status_code == 400
    assert client.post("/rewrite?x=1", json=BODY).status_code == 422


def test_an_error_is_told_as_everywhere(client):
    answer = client.post("/rewrite", json={"sql": "broken"}, headers={"X-Request-Id": "mine"})
    assert answer.status_code == 500 and "secret" not in answer.text
    assert answer.json()["error"]["requestId"] == answer.headers["x-request-id"] == "mine"


def test_requests_are_counted_and_limited(serve, store):
    metrics = CollectorRegistry()
    url = serve(texts=Door(), metrics=metrics, requests_a_second=2)
    _, token = store.tokens.create("ann", Role.VIEWER)
    with httpx.Client(base_url=f"{url}/api/v1", timeout=30) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        found = [client.post("/rewrite", json=BODY).status_code for _ in range(12)]
    assert found.count(200) >= 4 and 429 in found

    def counted(status: int) -> float:
        labels = {"route": "/api/v1/rewrite", "method": "POST", "status": str(status)}
        return metrics.get_sample_value("cachemgr_requests_total", labels) or 0

    assert counted(200) == found.count(200)


def test_a_revoked_token_is_good_for_a_second_at_most(serve, store):
    url = serve(texts=Door())
    record, token = store.tokens.create("ann", Role.VIEWER)
    with httpx.Client(base_url=f"{url}/api/v1", timeout=30) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        assert client.post("/rewrite", json=BODY).status_code == 200
        store.tokens.revoke(record.id)
        time.sleep(1.1)
        assert client.post("/rewrite", json=BODY).status_code == 401
