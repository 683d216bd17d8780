"""Workers on a real Spark: what is due gets done by itself, what cannot be done is paused."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from cachemgr.cache_spec import RefreshPolicy, trigger_of
from cachemgr.errors import DefinitionError
from cachemgr.metastore.records import CacheRecord, ScheduleRecord
from cachemgr.spark.refresher import SparkRefresher
from cachemgr.sparks import SPARK, minor_of
from cachemgr.vocabulary import Origin, RunState
from cachemgr.worker.process import Process
from cachemgr.worker.schedule import Watch, ask_for_due
from cachemgr.worker.worker import Worker
from scheduler.triggers import OnCommit
from tests.worlds.refresh_star import SALES, SALES_ROWS, Star, plain_plan, rows_of

pytestmark = pytest.mark.spark
LEASE = 20.0


@pytest.fixture
def refresher(star: Star) -> SparkRefresher:
    return SparkRefresher(lambda: star.spark, star.store, lease_seconds=LEASE)


def made(star: Star, kind: str = "ON_DEMAND", **trigger: int) -> CacheRecord:
    """A cache whose table names mean nothing to this application, only their places do."""
    text = "SELECT item, SUM(amount) AS total FROM elsewhere.sales GROUP BY item"
    return star.cache(
        plain_plan(star),
        definition=text,
        refresh=RefreshPolicy(trigger_of({"kind": kind, **trigger})),
    )


def work(star: Star, refresher: SparkRefresher, holder: str = "w1") -> int:
    """Let a worker take what waits, and finish it."""
    worker = Worker(star.store, refresher, holder=holder, lease_seconds=LEASE)
    taken = worker.take()
    assert worker.stop(60) == ()
    return taken


def test_on_commit_keeps_a_cache_up_to_date(star, refresher):
    cache = made(star, "ON_COMMIT")
    watch = Watch(star.store, refresher)
    assert watch.look() == 0, "it was never refreshed: that alone makes it due"
    assert len(ask_for_due(star.store).wanted) == 1
    assert ask_for_due(star.store).wanted == (), "it waits already"
    assert work(star, refresher) == 1
    (run,) = star.store.refreshes.of(cache.id)
    assert run.state is RunState.PUBLISHED and run.origin is Origin.SCHEDULE
    before = star.stored(cache)

    assert watch.look() == 0 and ask_for_due(star.store).wanted == ()
    star.sell((3, "cup", 9, 100, "1.00"))
    assert watch.look() == 1
    assert watch.look() == 0, "it is known already"
    assert star.store.schedules.of(cache.id).behind_since is not None
    assert len(ask_for_due(star.store).wanted) == 1
    assert work(star, refresher) == 1
    assert star.stored(cache) != before
    assert star.store.schedules.of(cache.id).behind_since is None
    assert watch.look() == 0 and ask_for_due(star.store).wanted == ()


@pytest.mark.parametrize(
    ("kind", "trigger"), [("ON_COMMIT", {}), ("TARGET_LAG", {"seconds": 1})], ids=str
)
def test_a_commit_that_changes_no_row_is_looked_at_once(star, refresher, kind, trigger):
    cache = made(star, kind, **trigger)
    star.sell((3, "cup", 9, 100, "1.00"))
    ask_for_due(star.store)
    assert work(star, refresher) == 1
    usual = star.store.schedules.of(cache.id).usual_seconds
    star.spark.sql(f"OPTIMIZE delta.`{star.path('sales')}`")
    watch = Watch(star.store, refresher)
    assert watch.look() == 1
    time.sleep(1)
    assert len(ask_for_due(star.store).wanted) == 1
    assert work(star, refresher) == 1
    run = star.store.refreshes.of(cache.id)[0]
    assert (run.mode, run.state) == ("UNCHANGED", RunState.UNCHANGED)
    assert watch.look() == 0 and ask_for_due(star.store).wanted == ()
    # how long a refresh takes is not learned from one that had nothing to do
    assert star.store.schedules.of(cache.id).usual_seconds == usual > 0


@pytest.mark.parametrize(
    ("kind", "trigger"), [("ON_COMMIT", {}), ("TARGET_LAG", {"seconds": 1})], ids=str
)
def test_a_commit_from_the_future_does_not_wait_until_then(star, refresher, kind, trigger):
    """A writer's clock, or a copied file's time."""
    cache = made(star, kind, **trigger)
    ask_for_due(star.store)
    work(star, refresher)
    published = star.store.snapshots.published(cache.id)
    star.sell((3, "cup", 9, 100, "1.00"))
    commit = max(Path(star.path("sales"), "_delta_log").glob("*.json"))
    os.utime(commit, (time.time() + 86_400,) * 2)
    star.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert Watch(star.store, refresher).look() == 1
    behind = star.store.schedules.of(cache.id).behind_since
    assert behind == published.run.started_at
    time.sleep(1)
    assert len(ask_for_due(star.store).wanted) == 1


def test_a_base_table_that_is_made_anew_pauses_nothing_and_one_that_is_lost_does(
    star, refresher, monkeypatch
):
    cache = made(star, "ON_COMMIT")
    ask_for_due(star.store)
    work(star, refresher)
    clock, ahead = star.store.clock, timedelta()
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + ahead)

    def lost(after: float) -> ScheduleRecord:
        """Try again at that many seconds after the table went."""
        nonlocal ahead
        ahead = timedelta(seconds=after)
        assert len(ask_for_due(star.store).wanted) == 1
        work(star, refresher)
        return star.store.schedules.of(cache.id)

    shutil.rmtree(Path(star.path("sales")))
    assert Watch(star.store, refresher).look() == 1
    for after in (0, 60, 120, 180, 240, 300, 560):
        found = lost(after)
        assert found.last.state is RunState.FAILED and "BASE_TABLE_LOST" in found.last.error
        assert not found.cache.paused and found.failures <= 3
        assert 0 < (found.retry_at - clock.now()).total_seconds() <= 20
    star.write("sales", SALES_ROWS, SALES, "overwrite")
    found = lost(590)
    assert found.last.state is RunState.PUBLISHED and (found.failures, found.retry_at) == (0, None)

    shutil.rmtree(Path(star.path("sales")))
    assert Watch(star.store, refresher).look() == 1
    found = lost(590)
    assert not found.cache.paused, "the table was there in between: another while begins"
    found = lost(1300)
    assert found.cache.paused and "BASE_TABLE_LOST" in found.paused_because
    assert found.last.state is RunState.FAILED
    assert ask_for_due(star.store).wanted == ()


def test_a_table_that_cannot_be_read_holds_up_its_own_caches_alone(star, refresher):
    """A feature that this Delta does not know, written by somebody else."""
    good = made(star, "ON_COMMIT")
    star.write("newer", SALES_ROWS, SALES, "overwrite")
    plan = replace(plain_plan(star, "over_newer"), relations=(star.relation("newer"),))
    text = "SELECT item, SUM(amount) AS total FROM elsewhere.newer GROUP BY item"
    bad = star.cache(plan, definition=text, refresh=RefreshPolicy(OnCommit()))
    watch = Watch(star.store, refresher)
    assert len(ask_for_due(star.store).wanted) == 2
    assert work(star, refresher) + work(star, refresher) == 2
    assert watch.look() == 0

    log = Path(star.path("newer")) / "_delta_log"
    newest = max(int(p.stem) for p in log.glob("*.json"))
    features = {"readerFeatures": ["ofTomorrow"], "writerFeatures": ["ofTomorrow"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (log / f"{newest + 1:020d}.json").write_text(json.dumps(protocol))
    star.sell((3, "cup", 9, 100, "1.00"))
    assert watch.look() == 2, "what cannot be read has moved: its refresh says why"
    assert len(ask_for_due(star.store).wanted) == 2
    assert work(star, refresher) + work(star, refresher) == 2
    assert star.store.refreshes.of(good.id)[0].state is RunState.PUBLISHED
    run = star.store.refreshes.of(bad.id)[0]
    assert run.state is RunState.FAILED and "default.newer" in run.error
    assert "cannot be read" in run.error and "ofTomorrow" in run.error
    schedule = star.store.schedules.of(bad.id)
    assert schedule.failures == 1 and schedule.retry_at is not None
    assert star.store.schedules.of(good.id).failures == 0


def test_failures_in_between_are_tried_again(star, refresher, monkeypatch):
    cache = made(star, "EVERY", seconds=3600)
    monkeypatch.setattr(
        "cachemgr.refresh.run.plan_refresh", lambda request: (_ for _ in ()).throw(OSError("disk"))
    )
    ask_for_due(star.store)
    work(star, refresher)
    found = star.store.schedules.of(cache.id)
    assert (found.failures, found.cache.paused) == (1, False)
    wait = (found.retry_at - found.last.finished_at).total_seconds()
    assert 2 <= wait <= 5
    assert ask_for_due(star.store).wanted == (), "not before the back-off is over"
    monkeypatch.undo()
    star.store.schedules.note_failure(
        cache.id, failures=1, retry_at=found.last.started_at, paused_because=None
    )
    ask_for_due(star.store)
    work(star, refresher)
    found = star.store.schedules.of(cache.id)
    assert (found.failures, found.last.state) == (0, RunState.PUBLISHED)


def test_a_failed_request_of_a_person_does_not_count(star, refresher):
    cache = made(star, "ON_COMMIT")
    shutil.rmtree(Path(star.path("sales")))
    star.store.queue.request(cache.id, why="asked", requested_by="ann")
    work(star, refresher)
    found = star.store.schedules.of(cache.id)
    assert (found.failures, found.cache.paused, found.last.state) == (0, False, RunState.FAILED)


@pytest.mark.parametrize("late", [False, True], ids=["", "before its next job begins"])
def test_a_running_refresh_is_cancelled(star, monkeypatch, late):
    """Spark's own jobs stop: the refresh sits in a job that would take minutes."""
    cache = made(star)
    refresher = SparkRefresher(lambda: star.spark, star.store, lease_seconds=1.5)
    star.store.queue.request(cache.id, why="asked")
    worker = Worker(star.store, refresher, holder="w1", lease_seconds=60)
    started = threading.Event()

    def sleepy(*args, **kwargs):
        started.set()
        if late:
            time.sleep(3)  # the next heartbeat is long over
        star.spark.range(0, 2, 1, 2).selectExpr(
            "java_method('java.lang.Thread', 'sleep', 300000L + id) AS x"
        ).collect()

    monkeypatch.setattr("cachemgr.refresh.run._prepare", sleepy)
    worker.take()
    assert started.wait(30)
    (run_id,) = worker.running
    star.store.queue.cancel(run_id, by="ann")
    until = time.monotonic() + 30
    while worker.running and time.monotonic() < until:
        time.sleep(0.05)
    assert worker.stop(1) == ()
    done = star.store.refreshes.get(run_id)
    assert done.state is RunState.CANCELLED and "REFRESH_CANCELLED" in done.error
    assert star.store.snapshots.published(cache.id) is None


def test_a_process_that_stops_while_spark_starts_takes_nothing_more(star):
    cache = made(star)
    starting, started, told = threading.Event(), threading.Event(), threading.Event()

    class Told(Worker):
        def take_no_more(self):
            super().take_no_more()
            told.set()

    class Slow(SparkRefresher):
        def prepare(self):
            starting.set()
            assert started.wait(60)

    slow = Slow(lambda: star.spark, star.store, lease_seconds=LEASE)
    star.store.queue.request(cache.id, why="asked", requested_by="ann")
    worker = Told(star.store, slow, holder="w1", lease_seconds=LEASE)
    process = Process(star.store, slow, worker, schedules=False)
    process.start()
    assert starting.wait(30)
    handed = []
    stopping = threading.Thread(target=lambda: handed.append(process.stop(60)))
    stopping.start()
    assert told.wait(30), "before the clock, which waits for Spark"
    started.set()
    stopping.join(60)
    assert handed == [()]
    (waiting,) = star.store.queue.waiting()
    assert waiting.requested_by == "ann"
    assert star.store.refreshes.of(cache.id) == ()


def test_stopping_hands_over_what_does_not_finish(star, refresher):
    cache = made(star)
    release, entered = threading.Event(), threading.Event()

    class Stuck(SparkRefresher):
        def refresh(self, run, failing):
            entered.set()
            release.wait(60)
            return super().refresh(run, failing)

    stuck = Stuck(lambda: star.spark, star.store, lease_seconds=LEASE)
    star.store.queue.request(cache.id, why="asked", requested_by="ann")
    worker = Worker(star.store, stuck, holder="w1", lease_seconds=LEASE)
    worker.take()
    assert entered.wait(30)
    (run_id,) = worker.stop(0.1)
    assert star.store.refreshes.get(run_id).state is RunState.SUPERSEDED
    (waiting,) = star.store.queue.waiting()
    assert waiting.requested_by == "ann" and "w1" in waiting.why
    assert work(star, refresher, holder="w2") == 1
    release.set()
    until = time.monotonic() + 60
    while worker.running and time.monotonic() < until:
        time.sleep(0.05)
    assert not worker.running
    states = [r.state for r in star.store.refreshes.of(cache.id)]
    assert sorted(states) == [RunState.PUBLISHED, RunState.SUPERSEDED]
    assert rows_of(star.spark.read.format("delta").load(cache.location))


def test_what_this_spark_cannot_build_is_left_to_another(star, refresher, monkeypatch):
    cache = made(star, "EVERY", seconds=3600)
    read_by_another = replace(cache, context={**cache.context, SPARK: "4.9"})
    monkeypatch.setattr(type(star.store.caches), "get", lambda self, cache_id: read_by_another)

    def lacking(*args):
        raise DefinitionError("UNRESOLVED_ROUTINE", "cannot resolve routine `of_a_later_minor`")

    monkeypatch.setattr("cachemgr.spark.refresher.replan_anywhere", lacking)
    star.store.queue.request(cache.id, why="asked", requested_by="ann")
    worker = Worker(star.store, refresher, holder="w1", lease_seconds=LEASE)
    assert worker.take() == 1
    until = time.monotonic() + 60
    while worker.running and time.monotonic() < until:
        time.sleep(0.05)
    (waiting,) = star.store.queue.waiting()
    for said in ("w1", "Spark 4.9", "of_a_later_minor", "waits for a worker of Spark 4.9"):
        assert said in waiting.why
    assert star.store.schedules.of(cache.id).failures == 0
    assert worker.take() == 0, "it is left to others for a while"
    monkeypatch.undo()
    assert work(star, refresher, holder="w2") == 1
    states = [r.state for r in star.store.refreshes.of(cache.id)]
    assert sorted(states) == [RunState.PUBLISHED, RunState.SUPERSEDED]
    worker.stop(10)


def test_what_its_own_spark_cannot_read_has_failed(star, refresher, monkeypatch):
    cache = made(star)

    def lacking(*args):
        raise DefinitionError("UNRESOLVED_ROUTINE", "cannot resolve routine `gone`")

    monkeypatch.setattr("cachemgr.spark.refresher.replan_anywhere", lacking)
    now_read = replace(cache, context={**cache.context, SPARK: minor_of(star.spark.version)})
    monkeypatch.setattr(type(star.store.caches), "get", lambda self, cache_id: now_read)
    star.store.queue.request(cache.id, why="asked", requested_by="ann")
    assert work(star, refresher) == 1
    (run,) = star.store.refreshes.of(cache.id)
    assert run.state is RunState.FAILED and star.store.queue.waiting() == ()
