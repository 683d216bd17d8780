"""What is forgotten, what stays however old it is, and that nobody scans all runs each second."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy import event, insert, text

from cachemgr.metastore.history import RUNS_KEPT
from cachemgr.metastore.models import RefreshRunRow
from cachemgr.metastore.records import DecisionRecord, Publication, SnapshotTableRecord, new_id
from cachemgr.vocabulary import Outcome, RunState
from cachemgr.worker.housekeeping import forget_the_past
from cachemgr.worker.process import Process

TABLE = SnapshotTableRecord("t", "/t", "id", 7, 8)


def refresh(store, cache, at, publish=True):
    run = store.refreshes.start(cache.id, "me", now=at, lease_seconds=60, mode="FULL", reason="due")
    if publish:
        return store.refreshes.publish(
            run.id,
            run.fencing_token,
            Publication(cache_version=1, rows=1, bytes=1, tables=[TABLE]),
            now=at + timedelta(seconds=2),
        )
    return store.refreshes.finish_unchanged(run.id, run.fencing_token, now=at)


def ids(store, cache) -> list[str]:
    return [run.id for run in store.refreshes.of(cache.id, limit=10_000)]


def fill(store, cache, now, runs: int, state=RunState.UNCHANGED) -> None:
    """Many runs at once, one a minute up to a minute ago."""
    rows = [
        {
            "id": new_id(), "cache_id": cache.id, "state": state.value, "mode": "FULL",
            "reason": "due", "holder": "me", "fencing_token": -n,
            "started_at": now - timedelta(minutes=n), "finished_at": now - timedelta(minutes=n - 1),
            "stages": [], "facts": {}, "cancel_requested": False,
        }
        for n in range(1, runs + 1)
    ]  # fmt: skip
    with store.engine.begin() as connection:
        connection.execute(insert(RefreshRunRow), rows)


def test_the_last_runs_and_the_published_one_stay(store, cache, new_cache, now):
    served = refresh(store, cache, now)
    later = [
        refresh(store, cache, now + timedelta(hours=n), publish=False)
        for n in range(1, RUNS_KEPT + 5)
    ]
    few = store.caches.create(new_cache("few"), now=now)
    kept = refresh(store, few, now)

    assert store.refreshes.prune(now) == 0
    assert store.refreshes.prune(now + timedelta(days=365)) == 4
    assert ids(store, cache) == [r.id for r in reversed(later[4:])] + [served.id]
    assert store.snapshots.published(cache.id).tables == (TABLE,)
    assert ids(store, few) == [kept.id]
    assert store.refreshes.prune(now + timedelta(days=365)) == 0


def test_only_those_of_before_the_moment_with_their_snapshots(store, cache, now):
    runs = [refresh(store, cache, now + timedelta(hours=n)) for n in range(RUNS_KEPT + 10)]
    assert store.refreshes.prune(runs[3].started_at) == 3
    assert ids(store, cache) == [r.id for r in reversed(runs[3:])]
    assert store.snapshots.by_ids([r.id for r in runs[:3]]) == {}
    with store.engine.connect() as connection:
        assert connection.scalar(text("SELECT COUNT(*) FROM snapshot_tables")) == RUNS_KEPT + 7


def test_what_runs_stays(store, cache, now):
    running = store.refreshes.start(
        cache.id, "me", now=now - timedelta(days=9), lease_seconds=60, mode="FULL", reason="due"
    )
    fill(store, cache, now, RUNS_KEPT + 1)
    assert store.refreshes.prune(now) == 1
    assert running.id in ids(store, cache)


def test_in_portions(store, cache, new_cache, now):
    other = store.caches.create(new_cache("other"), now=now)
    for each in (cache, other):
        fill(store, each, now, RUNS_KEPT + 8)
    assert [store.refreshes.prune(now, limit=5) for _ in range(5)] == [5, 5, 5, 1, 0]
    assert len(ids(store, cache)) == len(ids(store, other)) == RUNS_KEPT


def test_decisions_in_portions(store, now):
    made = [
        DecisionRecord(now + timedelta(minutes=n), "s", f"q{n}", Outcome.MISS) for n in range(9)
    ]
    store.decisions.log(made)
    until = now + timedelta(minutes=7)
    assert [store.decisions.prune(until, limit=4) for _ in range(3)] == [4, 3, 0]
    assert [d.query_hash for d in store.decisions.latest()] == ["q8", "q7"]


def test_two_replicas_at_once(store, cache, now):
    fill(store, cache, now, 500)
    deleted: list[int] = []

    def prune() -> None:
        while found := store.refreshes.prune(now, limit=50):
            deleted.append(found)

    threads = [threading.Thread(target=prune) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.refreshes.prune(now)
    assert len(ids(store, cache)) == RUNS_KEPT and sum(deleted) <= 480


def test_a_process_keeps_house(store, cache, monkeypatch):
    now = store.clock.now()
    fill(store, cache, now - timedelta(days=3), RUNS_KEPT + 30)
    store.decisions.log([DecisionRecord(now - timedelta(days=3), "s", "q", Outcome.MISS)])
    assert forget_the_past(store, 4) == 0
    over = threading.Event()

    def keep_house() -> None:
        if forget_the_past(store, 2) == 0:
            over.set()

    monkeypatch.setattr("cachemgr.worker.process.HOUSEKEEPING_SECONDS", 0.2)
    process = Process(store, None, None, schedules=False, housekeeping=keep_house)
    process.start()
    assert over.wait(30)
    process.stop(0)
    assert len(ids(store, cache)) == RUNS_KEPT and store.decisions.latest() == ()


def test_the_last_runs_are_the_schedules(store, cache, new_cache, now):
    fill(store, cache, now - timedelta(days=1), 50, RunState.PUBLISHED)
    slow = refresh(store, cache, now)
    for hour in range(1, 4):
        refresh(store, cache, now + timedelta(hours=hour))
        last = refresh(store, cache, now + timedelta(hours=hour, minutes=1), publish=False)
    never = store.caches.create(new_cache("never"), now=now)
    found = {s.cache.id: s for s in store.schedules.all()}
    assert found[cache.id].last.id == last.id and found[never.id].last is None
    assert found[cache.id].usual_seconds == 60, "the fifth last took a minute"
    assert slow.state is RunState.PUBLISHED and found[never.id].usual_seconds == 0
    refresh(store, cache, now + timedelta(hours=9))
    assert store.schedules.of(cache.id).usual_seconds == 2


@pytest.mark.parametrize("state", [RunState.UNCHANGED, RunState.PUBLISHED])
def test_a_look_reads_no_more_runs_than_it_needs(store, new_cache, now, state):
    for number in range(4):
        made = store.caches.create(new_cache(f"c{number}"), now=now)
        fill(store, made, now, 3000, state)
    asked: list[tuple[str, object]] = []

    def note(connection, cursor, statement, parameters, context, many) -> None:
        if "refresh_runs" in statement:
            asked.append((statement, parameters))

    with store.engine.connect() as connection:
        connection.execute(text("ANALYZE"))
        connection.commit()
    event.listen(store.engine, "before_cursor_execute", note)
    store.schedules.all()
    event.remove(store.engine, "before_cursor_execute", note)
    assert len(asked) == 2
    seen = 0.0
    for statement, parameters in asked:
        with store.engine.connect() as connection:
            if store.url.startswith("sqlite"):
                plan = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, parameters)
                shown = "\n".join(str(row[-1]) for row in plan)
                assert "SEARCH refresh_runs" in shown and "SCAN refresh_runs" not in shown, shown
            else:
                explain = "EXPLAIN (ANALYZE, FORMAT JSON) " + statement
                plan = connection.exec_driver_sql(explain, parameters).scalar_one()
                seen += rows_read(plan[0]["Plan"])
    if store.url.startswith("postgres"):
        # of 12,000 runs the one or five last ones of four caches, each found, then read
        assert 0 < seen <= 100


def rows_read(node) -> float:
    """How many runs PostgreSQL looked at."""
    mine = node.get("Relation Name") == "refresh_runs"
    seen = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    here = seen * node["Actual Loops"] if mine else 0
    return here + sum(map(rows_read, node.get("Plans", ())))
