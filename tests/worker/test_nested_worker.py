"""Nested caches on workers: the order in which they are refreshed, and what from."""

from __future__ import annotations

import threading

import pytest

from cachemgr.cache_spec import RefreshPolicy
from cachemgr.errors import CacheManagerError
from cachemgr.metastore.records import CacheRecord, RefreshRunRecord
from cachemgr.spark.refresher import SparkRefresher
from cachemgr.vocabulary import RunState
from cachemgr.worker.schedule import Watch, ask_for_due
from cachemgr.worker.worker import Worker
from matcher.model.ir import Block, Output
from matcher.normalize.stored_plan import plan_definition
from scheduler.triggers import OnCommit
from tests.worlds.refresh_star import DAY, Star, plain_plan, total

pytestmark = pytest.mark.spark


@pytest.fixture
def refresher(star: Star) -> SparkRefresher:
    return SparkRefresher(lambda: star.spark, star.store, lease_seconds=20.0)


@pytest.fixture
def pair(star: Star) -> tuple[CacheRecord, CacheRecord]:
    """`by_item`, and `days` over it; the tables' names mean nothing to this application."""
    refresh = RefreshPolicy(OnCommit())
    text = "SELECT item, SUM(amount) AS total FROM elsewhere.sales GROUP BY item"
    below = star.cache(plain_plan(star), definition=text, refresh=refresh)
    block = Block((star.relation("sales"),), (), (Output("days", total(DAY)),), ())
    above = star.cache(
        plan_definition("days", block),
        definition="SELECT SUM(days) AS days FROM by_item",
        depends_on=(below.id,),
        refresh=refresh,
    )
    return below, above


def wanted(star: Star) -> list[str]:
    names = {c.id: c.name for c in star.store.caches.all()}
    return [names[w.cache_id] for w in ask_for_due(star.store).wanted]


def work(star: Star, refresher: SparkRefresher) -> int:
    worker = Worker(star.store, refresher, holder="w1", lease_seconds=20.0)
    taken = worker.take()
    assert worker.stop(120) == ()
    return taken


def last(star: Star, cache: CacheRecord) -> RefreshRunRecord:
    return star.store.refreshes.of(cache.id, limit=1)[0]


def test_the_cache_below_first_and_the_one_above_from_it(star, pair, refresher):
    below, above = pair
    assert wanted(star) == ["by_item"]
    assert wanted(star) == [], "it waits for a worker, and the other for it"
    work(star, refresher)
    assert wanted(star) == ["days"]
    work(star, refresher)
    run = last(star, above)
    assert run.state is RunState.PUBLISHED
    assert run.facts["source"] == {"cache_id": below.id, "cache": "by_item", "version": 1}
    assert star.stored(above)[0][0] == 12
    star.sell((3, "cup", 9, 100, "1.00"))
    assert Watch(star.store, refresher).look() == 2
    assert wanted(star) == ["by_item"]
    work(star, refresher)
    assert wanted(star) == ["days"]
    work(star, refresher)
    assert last(star, above).facts["source"]["version"] == 2
    assert star.stored(above)[0][0] == 21


def test_a_commit_in_between_is_read_from_the_base(star, pair, refresher):
    _, above = pair
    wanted(star)
    work(star, refresher)
    star.sell((3, "cup", 9, 100, "1.00"))
    assert wanted(star) == ["days"], "its source was refreshed since it became due"
    work(star, refresher)
    run = last(star, above)
    assert "source" not in run.facts and "it holds version 0 of default.sales" in run.reason
    assert star.stored(above)[0][0] == 21


def test_a_paused_or_failing_cache_below_holds_nobody_up(star, pair, refresher, monkeypatch):
    below, above = pair
    real = refresher.refresh

    def failing(run, told):
        if run.cache_id == below.id:
            error = CacheManagerError("NO_ROOM", "no room")
            told(error)
            raise error
        return real(run, told)

    monkeypatch.setattr(refresher, "refresh", failing)
    assert wanted(star) == ["by_item"]
    work(star, refresher)
    assert last(star, below).state is RunState.FAILED
    assert wanted(star)[0] == "days"  # the other one too, once its time to try again has come
    work(star, refresher)
    run = last(star, above)
    assert run.state is RunState.PUBLISHED
    assert run.reason.endswith("from the base tables, since cache by_item: it was never refreshed")
    monkeypatch.undo()
    cache = star.store.caches.get(below.id)
    star.store.caches.update(below.id, cache.version, now=star.clock(), paused=True)
    star.sell((3, "cup", 9, 100, "1.00"))
    Watch(star.store, refresher).look()
    assert wanted(star) == ["days"]


def test_two_workers_and_two_schedulers_at_once(star, pair, refresher):
    """While one refreshes the cache below, nobody begins the one above; then one of them does."""
    below, above = pair
    asked: list[str] = []
    running = threading.Event()
    go_on = threading.Event()
    real = refresher.refresh

    class Slow:
        def prepare(self) -> None: ...

        def refresh(self, run, told):
            if run.cache_id == below.id:
                running.set()
                assert go_on.wait(60)
            return real(run, told)

    workers = [
        Worker(star.store, Slow(), holder=f"w{i}", lease_seconds=20.0)  # type: ignore[arg-type]
        for i in range(2)
    ]
    threads = [threading.Thread(target=lambda: asked.extend(wanted(star))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(asked) == {"by_item"}
    assert len(star.store.queue.waiting()) == 1
    assert sum(w.take() for w in workers) == 1
    assert running.wait(60)
    assert wanted(star) == [] and sum(w.take() for w in workers) == 0
    go_on.set()
    while any(w.running for w in workers):
        threading.Event().wait(0.2)
    assert wanted(star) == ["days"]
    assert sum(w.take() for w in workers) == 1
    for worker in workers:
        assert worker.stop(120) == ()
    assert last(star, above).facts["source"]["cache_id"] == below.id
    assert len(star.store.refreshes.of(below.id)) == len(star.store.refreshes.of(above.id))
