"""/api/v1/refreshes over HTTP."""

from __future__ import annotations

import threading
import time

from cachemgr.metastore.records import Publication


def test_ask_watch_and_read(client, cache, store):
    answer = client.post("/api/v1/caches/cube/refreshes", json={"mode": "FULL"})
    asked = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/api/v1/refreshes/{asked['id']}"
    assert (asked["state"], asked["mode"], asked["requestedBy"]) == ("PENDING", "FULL", "operator")
    assert client.get(answer.headers["Location"]).json() == asked
    assert client.post("/api/v1/caches/cube/refreshes").json()["id"] == asked["id"]
    run = store.queue.claim("w1", lease_seconds=20)
    found = client.get(answer.headers["Location"]).json()
    assert (found["state"], found["holder"]) == ("RUNNING", "w1")

    def publish():
        time.sleep(0.5)
        store.refreshes.publish(
            run.id, 1, Publication(cache_version=1, rows=5, bytes=50, tables=()), now=None
        )

    thread = threading.Thread(target=publish)
    thread.start()
    started = time.monotonic()
    done = client.get(answer.headers["Location"], params={"waitSeconds": 20}).json()
    thread.join()
    assert (done["state"], done["rows"], done["cacheVersion"]) == ("PUBLISHED", 5, 1)
    assert 0.3 < time.monotonic() - started < 15
    assert done["finishedAt"] >= done["startedAt"] >= done["requestedAt"]


def test_waiting_ends_with_the_time(client, cache):
    asked = client.post("/api/v1/caches/cube/refreshes").json()
    found = client.get(f"/api/v1/refreshes/{asked['id']}", params={"waitSeconds": 0.3}).json()
    assert found["state"] == "PENDING"


def test_cancel_and_retry(client, cache, store):
    asked = client.post("/api/v1/caches/cube/refreshes", json={"mode": "FULL"}).json()
    path = f"/api/v1/refreshes/{asked['id']}"
    assert client.post(f"{path}/retry").status_code == 404, "it is no run yet"
    cancelled = client.post(f"{path}/cancel").json()
    assert cancelled["state"] == "CANCELLED" and "operator" in cancelled["error"]
    assert cancelled["startedAt"] is None
    assert client.post(f"{path}/cancel").status_code == 409
    again = client.post(f"{path}/retry")
    assert again.status_code == 202
    assert (again.json()["state"], again.json()["mode"]) == ("PENDING", "FULL")
    store.queue.claim("w1", lease_seconds=20)
    running = client.post(f"/api/v1/refreshes/{again.json()['id']}/cancel").json()
    assert running["state"] == "RUNNING" and running["cancelRequested"]
    assert client.post(f"/api/v1/refreshes/{again.json()['id']}/retry").status_code == 409


def test_history_in_pages(client, cache, store):
    ids = []
    for number in range(5):
        ids.append(client.post("/api/v1/caches/cube/refreshes").json()["id"])
        run = store.queue.claim("w1", lease_seconds=20)
        store.refreshes.fail(run.id, run.fencing_token, f"no {number}", now=None)
    waiting = client.post("/api/v1/caches/cube/refreshes").json()["id"]
    seen, token = [], None
    for _ in range(3):
        params = {"pageSize": 2} | ({} if token is None else {"pageToken": token})
        answer = client.get("/api/v1/caches/cube/refreshes", params=params).json()
        seen += [r["id"] for r in answer["refreshes"]]
        token = answer["nextPageToken"]
    assert seen == [waiting, *reversed(ids)] and token is None


def test_nothing_of_that_id(client):
    for call in (
        client.get("/api/v1/refreshes/nothing"),
        client.post("/api/v1/refreshes/nothing/cancel"),
        client.post("/api/v1/refreshes/nothing/retry"),
    ):
        assert call.status_code == 404 and call.json()["error"]["type"] == "REFRESH_NOT_FOUND"


def test_a_mode_that_is_none(client, cache):
    answer = client.post("/api/v1/caches/cube/refreshes", json={"mode": "QUICK"})
    assert answer.status_code == 422 and "mode" in answer.json()["error"]["message"]
