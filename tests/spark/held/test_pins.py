"""Pins: rows in memory under a plan of our own, bounded, dropped with their snapshot, and never a
reason for a query to fail."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame

from cachemgr.delta.tables import TableRead, run_select
from cachemgr.spark import hook
from cachemgr.spark.held.pins import PinKey, PinStore
from tests.worlds.hook_star import Star, StarDecider, reads_cache, rows

QUERY = (
    "SELECT region, sum(amount) AS total FROM {s}.sales JOIN {s}.shops ON shop = id "
    "GROUP BY region ORDER BY region"
)
KEY = PinKey("star", 0)


@pytest.fixture
def store(star: Star) -> Iterator[PinStore]:
    made = PinStore(star.spark, 10_000_000)
    yield made
    made.close()


def pin(store: PinStore, star: Star, key: PinKey = KEY) -> None:
    read = {"__cache": TableRead(star.cache, 0)}
    rows = lambda: run_select(star.spark, "SELECT * FROM __cache", read)  # noqa: E731
    future = store.request(key, rows, "the star at 0")
    assert future is not None
    future.result(120)


def test_a_pin_answers_without_files_or_shuffle_and_survives_clear_cache(
    star: Star, store: PinStore
) -> None:
    assert store.get(KEY) is None
    pin(store, star)
    held = store.get(KEY)
    assert held is not None and held.rows == 4 and 0 < held.bytes < 100_000
    assert store.request(KEY, lambda: pytest.fail("pinned twice")) is None
    hook.install(star.spark, StarDecider(star, relation=held))
    text = QUERY.format(s=star.schema)
    frame = star.spark.sql(text)
    assert [tuple(r) for r in frame.collect()] == [(None, 4), ("north", 22)]
    assert not reads_cache(frame, star)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Scan In-memory table the star at 0" in plan and "Exchange" not in plan
    star.spark.catalog.clearCache()
    assert store.get(KEY) is held
    both = f"SELECT a.total + b.total AS t FROM ({text}) a JOIN ({text}) b ON a.region = b.region"
    assert rows(star.spark.sql(both)) == [(44,)]
    assert store.stats().hits == 2


def test_a_lost_block_is_computed_again_and_noticed(star: Star, store: PinStore) -> None:
    pin(store, star)
    held = store.get(KEY)
    hook.install(star.spark, StarDecider(star, relation=held))
    frame = star.spark.sql(QUERY.format(s=star.schema))
    for rdd in star.spark.sparkContext._jsc.getPersistentRDDs().values():
        rdd.unpersist(True)
    assert rows(frame) == [("north", 22), (None, 4)]
    assert store.get(KEY) is None
    pin(store, star)
    assert store.get(KEY) is not None


def test_a_new_snapshot_drops_the_pins_and_planned_queries_still_run(
    star: Star,
) -> None:
    published = {0, 1}
    store = PinStore(star.spark, 10_000_000, lambda key: key.version in published)
    pin(store, star)
    pin(store, star, PinKey("star", 1, 3))
    hook.install(star.spark, StarDecider(star, relation=store.get(KEY)))
    frame = star.spark.sql(QUERY.format(s=star.schema))
    frame._jdf.queryExecution().executedPlan()
    published.remove(KEY.version)
    store.sweep()
    assert store.get(KEY) is None
    assert store.get(PinKey("star", 1, 3)) is not None
    assert rows(frame) == [("north", 22), (None, 4)]
    pin(store, star)
    assert store.get(KEY) is None  # nobody wants it any more
    published.clear()
    store.sweep()
    assert store.stats().pins == 0
    store.close()


def in_memory(star: Star) -> int:
    """How many pins' rows are in memory or on disk, whoever knows of them."""
    held = star.spark.sparkContext._jsc.getPersistentRDDs().values()
    return sum("the star at 0" in str(rdd.name()) for rdd in held)


def test_a_query_that_was_planned_over_a_dropped_pin_does_not_hold_it_again(star: Star) -> None:
    store = PinStore(star.spark, 10_000_000)
    pin(store, star)
    hook.install(star.spark, StarDecider(star, relation=store.get(KEY)))
    frame = star.spark.sql(QUERY.format(s=star.schema))
    assert in_memory(star) == 1
    store.close()
    assert in_memory(star) == 0
    assert rows(frame) == [("north", 22), (None, 4)]
    assert in_memory(star) == 0, "nobody would let go of it any more"


def test_rows_that_cannot_be_computed_leave_nothing_in_memory(star: Star, store: PinStore) -> None:
    wrong = "SELECT id, IF(id = 9, CAST(raise_error('no such row') AS INT), 1) AS n FROM range(10)"
    future = store.request(KEY, lambda: star.spark.sql(wrong), "the star at 0")
    assert future is not None
    future.result(60)
    assert store.stats().failed == 1 and in_memory(star) == 0


def test_the_store_is_bounded_and_evicts_the_least_recently_used(star: Star) -> None:
    probe = PinStore(star.spark, 10_000_000)
    pin(probe, star)
    size = probe.stats().bytes
    probe.close()
    store = PinStore(star.spark, int(size * 2.5))
    keys = [PinKey("star", 0, i) for i in range(3)]
    pin(store, star, keys[0])
    pin(store, star, keys[1])
    assert store.get(keys[0])
    pin(store, star, keys[2])
    assert [bool(store.get(k)) for k in keys] == [True, False, True]
    assert store.stats().evicted == 1 and store.stats().bytes <= size * 2.5
    store.close()
    assert store.stats().pins == 0
    assert PinStore(star.spark, 0).request(KEY, lambda: pytest.fail("pins nothing")) is None


def test_a_set_that_cannot_be_pinned_is_not_tried_again(star: Star, store: PinStore) -> None:
    future = store.request(KEY, lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert future is not None
    future.result(60)
    assert store.get(KEY) is None and store.stats().failed == 1
    assert store.request(KEY, lambda: pytest.fail("tried again")) is None


def test_what_nobody_wants_when_its_turn_comes_is_not_loaded(star: Star) -> None:
    wanted, may_go_on = [True], threading.Event()
    store = PinStore(star.spark, 10_000_000, lambda key: wanted[0])

    def first() -> DataFrame:
        may_go_on.wait(60)
        return star.spark.range(1)

    assert store.request(KEY, first) is not None
    loaded: list[int] = []
    later = KEY._replace(version=KEY.version + 1)
    second = store.request(later, lambda: loaded.append(1))  # type: ignore[arg-type, return-value]
    assert second is not None
    wanted[0] = False
    may_go_on.set()
    second.result(60)
    assert not loaded and store.stats().pins == 0 and store.stats().failed == 0
    store.close()


def test_a_set_whose_loading_was_cancelled_is_tried_again(
    star: Star, store: PinStore, caplog
) -> None:
    """Ctrl-C in a shell cancels all jobs, the one that pins among them: nobody's failure."""

    def cancelled():
        raise RuntimeError("[SPARK_JOB_CANCELLED] Job 9 cancelled as part of all jobs")

    future = store.request(KEY, cancelled)
    assert future is not None
    future.result(60)
    assert store.stats().failed == 0
    assert not [r for r in caplog.records if r.levelname == "WARNING"]
    assert store.request(KEY, cancelled) is not None
