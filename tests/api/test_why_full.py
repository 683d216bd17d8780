"""`cache why-full` and the ways of refreshes in REST and /metrics."""

from __future__ import annotations

import json

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from cachemgr.api.metrics import CacheMetrics
from cachemgr.metastore.accounts import RunAccount
from cachemgr.metastore.records import Publication
from matcher.model.message import NOTHING, Message

REMOVED = RunAccount(
    "FULL", "ROWS_REMOVED", Message("sales: 1 commit removed 3 rows"), "append only"
)
TWICE = RunAccount("FULL", "SEVERAL_TABLES", Message("a, b changed"), "refresh after each load")
APPENDED = RunAccount("PARTIALS", None, NOTHING, "", 10, 100, 5, 50, 5, 60)


@pytest.fixture
def refreshed(store, cache):
    """Runs a refresh of an account; gives the run as it ended."""

    def run(account: RunAccount, *, fails: str = "", cache_id: str = cache.id):
        started = store.refreshes.start(
            cache_id, "w", now=None, lease_seconds=60, mode="AUTO", reason="r"
        )
        facts = account.to_facts()
        store.refreshes.update(
            started.id, started.fencing_token, mode=account.way or "AUTO", facts=facts
        )
        if fails:
            return store.refreshes.fail(started.id, started.fencing_token, fails, now=None)
        publication = Publication(cache_version=1, rows=9, bytes=90, tables=(), facts=facts)
        return store.refreshes.publish(started.id, started.fencing_token, publication, now=None)

    return run


def test_rest_tells_the_way_and_the_cost(client, refreshed):
    full, part = refreshed(REMOVED), refreshed(APPENDED)
    found = client.get(f"/api/v1/refreshes/{full.id}").json()
    assert [found[k] for k in ("way", "code", "detail", "cure")] == [
        "FULL", "ROWS_REMOVED", "sales: 1 commit removed 3 rows", "append only",
    ]  # fmt: skip
    assert found["seconds"] >= 0 and found["rowsWritten"] is None
    listed = client.get("/api/v1/caches/cube/refreshes").json()["refreshes"]
    assert [r["id"] for r in listed] == [part.id, full.id]
    names = ("way", "code", "cure", "changeEstimate", "fullEstimate", "changedRows", "changedBytes",
             "rowsWritten", "bytesWritten", "rows")  # fmt: skip
    told = [listed[0][name] for name in names]
    assert told == ["PARTIALS", None, None, 10, 100, 5, 50, 5, 60, 9]


def test_a_failed_run_keeps_its_way_and_is_tried_again_as_it_was_asked_for(client, refreshed):
    failed = refreshed(APPENDED, fails="[X] no")
    found = client.get(f"/api/v1/refreshes/{failed.id}").json()
    assert (found["state"], found["way"], found["mode"]) == ("FAILED", "PARTIALS", "PARTIALS")
    again = client.post(f"/api/v1/refreshes/{failed.id}/retry").json()
    assert again["mode"] is None, "a way is no mode: no refresh could be asked for by it"


def test_the_list_and_the_cure_of_the_most_frequent_code(run, refreshed):
    refreshed(RunAccount("FULL", "NEVER_REFRESHED", Message("it was never refreshed")))
    for account in (REMOVED, TWICE, APPENDED, REMOVED):
        refreshed(account)
    code, out, err = run("cache", "why-full", "cube")
    assert code == 0 and "NEVER_REFRESHED" not in out and "PARTIALS" not in out
    heading, *rows = out.splitlines()
    assert heading.split() == ["STARTED", "STATE", "CODE", "DETAIL", "WHAT", "TO", "DO"]
    assert [line.split()[3] for line in rows] == ["ROWS_REMOVED", "SEVERAL_TABLES", "ROWS_REMOVED"]
    assert "sales: 1 commit removed 3 rows" in rows[0] and "refresh after each load" in rows[1]
    assert "its last 5 refreshes: 4 FULL, 1 PARTIALS" in err
    assert err.splitlines()[-1] == "most often ROWS_REMOVED (2 times): append only"
    assert "took the change alone" not in err
    refreshed(APPENDED)
    assert (
        "the last one that computed anything took the change alone"
        in run("cache", "why-full", "cube")[2]
    )


def test_it_says_plainly_that_all_is_well(run, refreshed):
    assert "it was never refreshed" in run("cache", "why-full", "cube")[2]
    refreshed(RunAccount("FULL", "NEVER_REFRESHED", Message("never")))
    refreshed(APPENDED)
    refreshed(APPENDED)
    code, out, err = run("cache", "why-full", "cube", "--limit", "2")
    assert (code, out) == (0, "")
    assert "its last 2 refreshes: 2 PARTIALS; none computed everything where" in err
    assert json.loads(run("cache", "why-full", "cube", "-o", "json")[1]) == []


def test_one_that_was_to_be_incremental_only_is_told_of(run, refreshed):
    refused = RunAccount(None, "TOP_K", Message("its first 3 rows"), "leave LIMIT out")
    refreshed(refused, fails="[NOT_INCREMENTAL] no")
    out = run("cache", "why-full", "cube")[1]
    assert "FAILED" in out and "TOP_K" in out
    (found,) = json.loads(run("cache", "why-full", "cube", "-o", "json")[1])
    assert (found["state"], found["way"], found["code"]) == ("FAILED", None, "TOP_K")


def test_history_tells_the_code(run, refreshed):
    refreshed(REMOVED)
    out = run("cache", "history", "cube")[1]
    assert "CODE" in out and "ROWS_REMOVED" in out and "SECONDS" in out


def test_no_such_cache(run, cache):
    assert "did you mean cube?" in run("cache", "why-full", "cubes")[2]


def test_metrics_count_what_has_ended_since(store, cache, new_cache, refreshed):
    other = new_cache("other")
    refreshed(REMOVED)
    registry = CollectorRegistry()
    registry.register(CacheMetrics(store))

    def counted(way: str, state: str, code: str = "") -> float | None:
        generate_latest(registry)
        labels = {"way": way, "state": state, "code": code}
        return registry.get_sample_value("cachemgr_refreshes_total", labels)

    def caches(way: str, code: str = "") -> float | None:
        labels = {"way": way, "state": "PUBLISHED", "code": code}
        return registry.get_sample_value("cachemgr_caches_by_way", labels)

    refreshed(REMOVED)
    assert counted("FULL", "PUBLISHED", "ROWS_REMOVED") == 1, "before anybody looked"
    assert counted("APPEND", "PUBLISHED") == counted("NONE", "FAILED") == 0, "there from the start"
    assert caches("FULL", "ROWS_REMOVED") == 1
    assert counted("FULL", "PUBLISHED", "ROWS_REMOVED") == 1
    assert counted("FULL", "PUBLISHED", "ROWS_REMOVED") == 1, "once"
    for account in (APPENDED, APPENDED, REMOVED):
        refreshed(account)
    refreshed(APPENDED, fails="no", cache_id=other.id)
    assert counted("PARTIALS", "PUBLISHED") == 2
    assert counted("FULL", "PUBLISHED", "ROWS_REMOVED") == 2
    assert counted("PARTIALS", "FAILED") == 1
    running = store.refreshes.start(
        cache.id, "w", now=None, lease_seconds=60, mode="AUTO", reason="r"
    )
    before = counted("PARTIALS", "PUBLISHED")
    publication = Publication(2, 9, 90, (), facts=APPENDED.to_facts())
    store.refreshes.publish(running.id, running.fencing_token, publication, now=None)
    assert counted("PARTIALS", "PUBLISHED") == before + 1
    assert caches("PARTIALS") == 1 and caches("FULL", "ROWS_REMOVED") is None
