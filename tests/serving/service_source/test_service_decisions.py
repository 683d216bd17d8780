"""Decisions that a feed hands over to the service: in batches, once, and up to a bound."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

from cachemgr.errors import CacheManagerError
from cachemgr.metastore.records import DecisionRecord
from cachemgr.serving import service_source
from cachemgr.serving.feed import acquire_feed_of, release_feed
from cachemgr.vocabulary import Outcome
from tests.serving.service_source.followed import until


def test_a_feed_closes_at_once_though_a_poll_waits(source_for, store):
    feed = acquire_feed_of(source_for())
    until(lambda: feed.why_not_ready() is None, "the feed has loaded")
    time.sleep(0.5)
    feed.log(lambda: decision(1))
    started = time.monotonic()
    release_feed(feed)
    assert time.monotonic() - started < 2
    assert [d.query_hash for d in store.decisions.latest()] == ["q1"]


def decision(number: int) -> DecisionRecord:
    return DecisionRecord(datetime.now(UTC), "s", f"q{number}", Outcome.HIT, ("c",))


def flushed(feed, store, count: int) -> None:
    """Hand over until so many have arrived: what a busy service does not take in time is sent
    again."""

    def arrived() -> bool:
        feed.flush_log()
        return len(store.decisions.latest(1000)) >= count

    until(arrived, f"{count} decisions", 60)


def test_decisions_arrive_in_batches_and_once(feed, store):
    for i in range(450):
        feed.log(lambda i=i: decision(i))
    flushed(feed, store, 450)
    found = store.decisions.latest(1000)
    assert len({d.query_hash for d in found}) == len(found) == 450
    assert {d.principal for d in found} == {"ann"}


def test_a_hit_without_a_job_arrives_as_one(feed, store):
    feed.log(lambda: replace(decision(1), local=True))
    feed.log(lambda: decision(2))
    flushed(feed, store, 2)
    assert {d.query_hash: d.local for d in store.decisions.latest()} == {"q1": True, "q2": False}


def test_a_service_of_an_earlier_release_takes_it_as_any_other(feed, store, monkeypatch):
    post = feed.source._post

    def strict(batch_id, decisions):
        if any("local" in each for each in decisions):
            raise service_source._NotTaken("BAD_REQUEST", "local: Extra inputs are not permitted")
        post(batch_id, decisions)

    monkeypatch.setattr(feed.source, "_post", strict)
    feed.log(lambda: replace(decision(1), local=True))
    feed.log(lambda: decision(2))
    flushed(feed, store, 2)
    assert not any(d.local for d in store.decisions.latest())


FILTERS = ({"cache": "c", "columns": [{"column": "day", "kind": "range", "width": 30.0}]},)


def test_filters_arrive_and_are_left_out_for_a_service_that_knows_none(feed, store, monkeypatch):
    feed.log(lambda: replace(decision(1), filters=FILTERS))
    feed.log(lambda: decision(2))
    flushed(feed, store, 2)
    assert {d.query_hash: d.filters for d in store.decisions.latest()} == {
        "q1": FILTERS,
        "q2": None,
    }
    post = feed.source._post

    def strict(batch_id, decisions):
        if any("filters" in each for each in decisions):
            raise service_source._NotTaken("BAD_REQUEST", "filters: Extra inputs not permitted")
        post(batch_id, decisions)

    monkeypatch.setattr(feed.source, "_post", strict)
    feed.log(lambda: replace(decision(3), filters=FILTERS))
    flushed(feed, store, 3)
    assert store.decisions.latest()[0].filters is None


def test_a_batch_whose_answer_was_lost_is_not_stored_twice(feed, store, monkeypatch):
    send, lost = feed.source.send, []

    def losing(batch, batch_id):
        send(batch, batch_id)
        if not lost:
            lost.append(batch_id)
            raise CacheManagerError("SERVICE_UNREACHABLE", "the answer was lost")

    monkeypatch.setattr(feed.source, "send", losing)
    feed.log(lambda: decision(1))
    feed.flush_log()
    feed.log(lambda: decision(2))
    flushed(feed, store, 2)
    assert sorted(d.query_hash for d in store.decisions.latest()) == ["q1", "q2"]


def test_decisions_wait_for_a_service_that_is_down_up_to_a_bound(feed, server, store, monkeypatch):
    from cachemgr.serving import decision_log

    monkeypatch.setattr(decision_log, "MAX_PENDING", 5)
    server.stop()
    started = time.monotonic()
    for i in range(8):
        feed.log(lambda i=i: decision(i))
    assert time.monotonic() - started < 0.1
    feed.flush_log()
    assert feed.telemetry.counters()["decisions_not_logged"] == 3
    server.start()
    flushed(feed, store, 5)
    assert len(store.decisions.latest()) == 5


def test_a_batch_that_is_refused_does_not_hold_up_the_others(feed, store, monkeypatch):
    monkeypatch.setattr(service_source, "encode_decision", lambda d: {"nonsense": d.query_hash})
    feed.log(lambda: decision(1))

    def is_refused() -> bool:  # a busy service may not even have looked at it
        feed.flush_log()
        return feed.telemetry.counters().get("decisions_not_logged", 0) == 1

    until(is_refused, "it is refused", 60)
    monkeypatch.undo()
    feed.log(lambda: decision(2))
    flushed(feed, store, 1)
    assert [d.query_hash for d in store.decisions.latest()] == ["q2"]
    assert feed.telemetry.counters()["decisions_not_logged"] == 1
