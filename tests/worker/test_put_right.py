"""A cache that paused for what its base tables are goes on once one of these is another one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cachemgr.base_state import BaseState
from cachemgr.metastore import open_metastore
from cachemgr.metastore.records import CacheRecord
from cachemgr.worker import put_right
from cachemgr.worker.put_right import PutRight

PLACE = "file:/t"
PLAN = {"relations": [[PLACE, "s.t"]]}


class Logs:
    """The heads of Delta logs."""

    def __init__(self) -> None:
        self.state: BaseState | None = BaseState("id", 3, "c3", 0)

    def heads(self, places):
        return {place: self.state for place in places}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(put_right, "_FIRST_SECONDS", 0.0)
    with open_metastore(f"sqlite:///{tmp_path / 'metastore.db'}") as opened:
        yield opened


def paused(store, why: str = "[BASE_COLUMN_CHANGED] column k …") -> CacheRecord:
    record = CacheRecord("default", "c", "SELECT 1", "h", "file:/caches/c", plan=PLAN)
    cache = store.caches.create(record, now=store.clock.now())
    run = store.refreshes.start(cache.id, "w", now=None, lease_seconds=60, mode="FULL", reason="r")
    store.schedules.note_failure(cache.id, failures=1, retry_at=None, paused_because=why)
    store.refreshes.fail(run.id, run.fencing_token, why, now=None)
    return cache


def test_it_tries_again_after_each_commit_and_no_oftener(store):
    logs, cache = Logs(), paused(store)
    look = PutRight(store, logs)
    for _ in range(2):
        assert look.look(store.schedules.all()) == 0
    logs.state = BaseState("id", 4, "c4", 0)
    assert look.look(store.schedules.all()) == 1
    found = store.schedules.of(cache.id)
    assert not found.cache.paused and found.retry_at is not None and found.failures == 1
    store.schedules.note_failure(
        cache.id, failures=2, retry_at=None, paused_because="[BASE_COLUMN_LOST]"
    )
    assert look.look(store.schedules.all()) == 0
    logs.state = None
    assert look.look(store.schedules.all()) == 1, "dropped, to be made again"


def test_a_process_that_has_just_started_goes_by_the_commits_time(store):
    logs, cache = Logs(), paused(store)
    late = datetime.now(UTC) + timedelta(seconds=60)
    logs.state = BaseState("id", 4, "c4", int(late.timestamp() * 1000))
    assert PutRight(store, logs).look(store.schedules.all()) == 1
    assert not store.caches.get(cache.id).paused


@pytest.mark.parametrize("why", ["[NOT_INCREMENTAL] …", "[REFRESH_FAILED] the disk is full"])
def test_noop_what_no_table_puts_right(store, why):
    logs = Logs()
    paused(store, why)
    look = PutRight(store, logs)
    look.look(store.schedules.all())
    logs.state = BaseState("id", 4, "c4", 0)
    assert look.look(store.schedules.all()) == 0


def test_noop_one_that_somebody_paused_by_hand_as_well(store):
    logs, cache = Logs(), paused(store)
    look = PutRight(store, logs)
    look.look(store.schedules.all())
    now = store.caches.get(cache.id)
    store.caches.update(cache.id, now.version, now=store.clock.now(), paused=True)
    logs.state = BaseState("id", 4, "c4", 0)
    assert look.look(store.schedules.all()) == 0
    assert store.caches.get(cache.id).paused


def test_a_table_that_is_written_to_all_the_time_has_it_try_less_and_less_often(store, monkeypatch):
    monkeypatch.setattr(put_right, "_FIRST_SECONDS", 5.0)
    logs, cache = Logs(), paused(store)
    look, ahead = PutRight(store, logs), timedelta()
    real = store.clock.now
    monkeypatch.setattr(store.clock, "now", lambda: real() + ahead)
    waits = []
    for failures in (1, 2, 3, 9):
        store.schedules.note_failure(
            cache.id, failures=failures, retry_at=None, paused_because="[BASE_COLUMN_CHANGED]"
        )
        for seconds in range(0, 1400, 10):
            ahead = timedelta(seconds=seconds)
            logs.state = BaseState("id", len(waits) * 10_000 + seconds, f"c{seconds}", 0)
            if look.look(store.schedules.all()):
                waits.append(seconds)
                break
    assert waits == [10, 10, 20, 1280]
