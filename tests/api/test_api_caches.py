"""/api/v1/caches over HTTP, on both databases."""

from __future__ import annotations

import pytest

from cachemgr.cache_spec import RefreshPolicy
from cachemgr.metastore.records import Publication
from scheduler.triggers import Every


def test_one_cache(client, cache):
    found = client.get("/api/v1/caches/cube").json()
    assert (found["id"], found["name"], found["namespace"]) == (cache.id, "cube", "default")
    assert found["version"] == 1 and found["rewriteEnabled"] and not found["paused"]
    assert found["trigger"]["kind"] == "ON_DEMAND" and found["freshness"] == "STRICT"
    assert found["status"] == {
        "definition": "VALID",
        "refresh": "NEVER",
        "availability": "NOT_REFRESHED",
        "combined": "NOT_REFRESHED",
    }
    assert found["published"] is None and found["nextDueAt"] is None and found["grants"] is None
    assert found["ddl"].startswith("CREATE RELATIONAL CACHE default.cube")
    assert client.get("/api/v1/caches/DEFAULT.CUBE").json() == found


def test_a_published_cache(client, cache, store):
    store.queue.request(cache.id, why="asked")
    run = store.queue.claim("w", lease_seconds=20)
    store.refreshes.publish(
        run.id, 1, Publication(cache_version=3, rows=7, bytes=70, tables=()), now=None
    )
    found = client.get("/api/v1/caches/cube").json()
    assert found["status"]["combined"] == "HEALTHY"
    assert (found["published"]["refreshId"], found["published"]["rows"]) == (run.id, 7)
    assert found["lastRun"]["state"] == "PUBLISHED" and found["refreshing"] is None
    store.schedules.note_behind({cache.id: store.clock.now()})
    assert client.get("/api/v1/caches/cube").json()["status"]["combined"] == "STALE"


def test_a_scheduled_cache_says_when_it_is_due(client, new_cache):
    cache = new_cache("timed", refresh=RefreshPolicy(Every(60)))
    found = client.get("/api/v1/caches/timed").json()
    assert found["trigger"] == {
        "kind": "EVERY", "seconds": 60, "atMostEverySeconds": None, "expression": None,
        "timeZone": None,
    }  # fmt: skip
    assert found["nextDueAt"] == found["createdAt"] and cache.created_at is not None


def test_pages(client, new_cache):
    for name in ("d", "a", "c", "b", "e"):
        new_cache(name)
    seen, token = [], None
    for _ in range(3):
        params = {"pageSize": 2} | ({} if token is None else {"pageToken": token})
        answer = client.get("/api/v1/caches", params=params).json()
        seen += [c["name"] for c in answer["caches"]]
        token = answer["nextPageToken"]
    assert seen == ["a", "b", "c", "d", "e"] and token is None
    only = client.get("/api/v1/caches", params={"like": "a|e"}).json()
    assert [c["name"] for c in only["caches"]] == ["a", "e"]


@pytest.mark.parametrize("token", ["x", "W10", "WyJqb2lucyIsImEiXQ", "WzEsMl0", "%00", "W" * 5000])
def test_page_tokens_that_were_never_given_out(client, cache, token):
    answer = client.get("/api/v1/caches", params={"pageToken": token})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["type"] in ("PAGE_TOKEN", "INVALID_REQUEST")


@pytest.mark.parametrize("size", [0, -1, 1001, "x"])
def test_page_sizes(client, size):
    answer = client.get("/api/v1/caches", params={"pageSize": size})
    assert answer.status_code == 422 and "pageSize" in answer.json()["error"]["message"]


def test_no_such_cache(client):
    answer = client.get("/api/v1/caches/nothing")
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("CACHE_NOT_FOUND", 404)
    assert error["requestId"] == answer.headers["X-Request-Id"]


def test_probes_are_not_logged_and_wrong_paths_by_their_name(client, caplog):
    with caplog.at_level("INFO", logger="cachemgr.api"):
        client.get("/readyz")
        client.get("/api/v1/cachez")
    (line,) = [r.getMessage() for r in caplog.records if r.name == "cachemgr.api"]
    assert line.startswith("GET /api/v1/cachez 404 ")


def test_change(client, cache):
    answer = client.patch(
        "/api/v1/caches/cube",
        json={
            "version": 1,
            "rewriteEnabled": False,
            "refresh": "CRON '0 6 * * *' AT TIME ZONE 'Europe/Berlin' FULL",
            "freshness": "MAX STALENESS INTERVAL 2 HOURS",
        },
    )
    found = answer.json()
    assert answer.status_code == 200 and found["version"] == 2
    assert found["trigger"]["timeZone"] == "Europe/Berlin" and found["refreshMode"] == "FULL"
    assert (found["freshness"], found["maxStalenessSeconds"]) == ("MAX_STALENESS", 7200)
    assert not found["rewriteEnabled"]
    again = client.patch("/api/v1/caches/cube", json={"version": 1, "paused": True})
    assert again.status_code == 409 and again.json()["error"]["type"] == "CACHE_CHANGED"


@pytest.mark.parametrize(
    "body",
    [
        {"version": 1},
        {"version": 1, "colour": "red"},
        {"version": "1", "paused": True},
        {"paused": True},
        {"version": 1, "paused": "yes"},
        {"version": 1, "refresh": "SOMETIMES"},
        {"version": 1, "refresh": "CRON '61 * * * *'"},
        {"version": 1, "freshness": "PAUSE"},
        {"version": 1, "freshness": "PROPERTIES ('a' = 'b')"},
        [],
        "x",
    ],
)
def test_changes_that_are_not_accepted(client, cache, store, body):
    answer = client.patch("/api/v1/caches/cube", json=body)
    assert answer.status_code in (400, 422)
    assert set(answer.json()["error"]) == {"type", "message", "code", "requestId"}
    assert store.caches.get(cache.id) == cache


@pytest.mark.parametrize(
    ("action", "field", "value"),
    [
        ("disable", "rewriteEnabled", False),
        ("enable", "rewriteEnabled", True),
        ("pause", "paused", True),
        ("resume", "paused", False),
    ],
)
def test_actions(client, cache, action, field, value):
    found = client.post(f"/api/v1/caches/cube/{action}").json()
    assert found[field] is value and found["version"] == 2


def test_drop(client, cache, store):
    answer = client.delete("/api/v1/caches/cube")
    assert (answer.status_code, answer.content) == (204, b"")
    assert store.caches.named("default", "cube") is None
    assert client.delete("/api/v1/caches/cube").status_code == 404


@pytest.mark.parametrize(
    "name", ["..%2f..%2fetc", "%00", "a" * 600, "%ff", "cube%2f", "'; DROP TABLE caches; --", "%2e"]
)
def test_names_with_tricks(client, cache, name):
    answer = client.get(f"/api/v1/caches/{name}")
    assert answer.status_code in (404, 422, 400)
    assert answer.json()["error"]["message"]
