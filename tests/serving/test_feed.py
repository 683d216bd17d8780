"""The registry follows the metastore; what cannot be asked fails closed."""

from __future__ import annotations

import gc
import json
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cachemgr.base_state import BaseState
from cachemgr.config.result_settings import TIME_ZONE, fingerprint
from cachemgr.delta.storage import LocalFiles
from cachemgr.delta.stored_files import LOOK_SECONDS, StoredFiles
from cachemgr.errors import MetastoreError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.records import (
    CacheRecord,
    DecisionRecord,
    JoinRecord,
    JoinSide,
    Publication,
)
from cachemgr.serving.feed import Feed, acquire_feed, release_feed
from cachemgr.serving.served_cache import joins_holding
from cachemgr.serving.sources import STALE_SECONDS, MetastoreSource
from cachemgr.vocabulary import JoinState, Outcome
from matcher.model.codec import PLAN_VERSION, encode_plan
from matcher.model.expr import Agg, Col
from matcher.model.ir import CachePlan, Measure, RecordPreservingJoin, Relation, StoredColumn

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def plan(name="c", *tables):
    relations = tuple(Relation(t, t) for t in tables or ("file:/t",))
    key = StoredColumn("k", Col(0, "k", "string"))
    return CachePlan(
        name, relations, (), (key,), (Measure("n", Agg("count", (), "bigint", False)),)
    )


def record(name="c", *tables, **fields):
    return CacheRecord(
        namespace="default",
        name=name,
        definition="SELECT 1",
        definition_hash="h",
        location="file:/cache",
        plan=encode_plan(plan(name, *tables)),
        plan_version=PLAN_VERSION,
        **fields,
    )


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def metastore(metastore_url):
    with open_metastore(metastore_url) as found:
        yield found


@pytest.fixture
def feed(metastore):
    return Feed(MetastoreSource(metastore), clock=Clock())


def test_nothing_is_answered_before_the_first_load(feed):
    assert "being loaded" in feed.why_not_ready().detail
    feed.sync()
    assert feed.why_not_ready() is None


def test_who_watches_is_told_before_and_after_each_change(feed, metastore):
    """What he keeps must hold neither while a change is made nor afterwards."""
    seen = []

    class Watcher:
        def changing(self):
            seen.append(tuple(cache.name for cache in feed.caches()))

    feed.sync()
    watcher = Watcher()
    feed.watch(watcher)
    assert not feed.sync() and seen == []
    created = metastore.caches.create(record(), now=metastore.clock.now())
    feed.sync()
    assert seen == [(), ("c",)]
    (cache,) = feed.caches()
    feed.notes.note_unread(replace(cache, refresh_id="r"), "test")
    feed.notes.note_damage(replace(cache, refresh_id="r"), "test")
    assert len(seen) == 4
    metastore.caches.drop(created.id, now=metastore.clock.now())
    feed.sync()
    assert seen[4:] == [("c",), ()]
    feed.unwatch(watcher)
    metastore.caches.create(record("d"), now=metastore.clock.now())
    feed.sync()
    assert len(seen) == 6


def test_a_load_that_takes_longer_than_the_feed_is_patient(feed, metastore, monkeypatch):
    """A thousand caches on a busy machine: it was loaded, and answered REGISTRY_LOADING."""
    metastore.caches.create(record(), now=metastore.clock.now())
    ask = MetastoreSource.news

    def slowly(self, since):
        found = ask(self, since)
        feed._clock.now += 2 * STALE_SECONDS if since is None else 0.1
        return found

    monkeypatch.setattr(MetastoreSource, "news", slowly)
    assert feed.sync()
    assert feed.why_not_ready() is None and feed.wait_loaded(0)
    feed._clock.now += 2 * STALE_SECONDS
    assert feed.why_not_ready() is not None and not feed.wait_loaded(0)


def test_a_source_that_is_always_slow_is_asked_a_few_times_and_not_for_ever(feed, monkeypatch):
    ask, asked = MetastoreSource.news, []

    def slowly(self, since):
        asked.append(since)
        feed._clock.now += STALE_SECONDS
        return ask(self, None)

    monkeypatch.setattr(MetastoreSource, "news", slowly)
    assert feed.sync()
    assert 1 < len(asked) < 10


@pytest.mark.parametrize("collecting", [True, False])
def test_a_load_leaves_the_collector_as_it_was_also_when_it_fails(feed, monkeypatch, collecting):
    def fail(self, since=0):
        assert not gc.isenabled()
        raise MetastoreError("GONE", "the metastore is gone")

    monkeypatch.setattr(type(feed.source.metastore.registry), "state", fail)
    try:
        gc.enable() if collecting else gc.disable()
        with pytest.raises(MetastoreError):
            feed.sync()
        assert gc.isenabled() is collecting
    finally:
        gc.enable()


def test_creates_renames_and_drops_arrive(feed, metastore):
    made = metastore.caches.create(record(), now=NOW)
    assert feed.sync()
    assert feed.registry.names() == ("c",) and feed.served("c").id == made.id
    assert not feed.sync()
    metastore.caches.rename(made.id, made.version, "d", now=NOW)
    feed.sync()
    assert feed.registry.names() == ("d",) and feed.served("c") is None
    metastore.caches.drop(made.id, now=NOW)
    feed.sync()
    assert feed.registry.names() == () and feed.served("d") is None


def test_a_replaced_cache_keeps_the_name_for_the_new_one(feed, metastore):
    old = metastore.caches.create(record(), now=NOW)
    feed.sync()
    new = metastore.caches.create(record("c", "file:/u"), now=NOW, replace=True)
    feed.sync()
    assert feed.served("c").id == new.id != old.id
    assert feed.registry.tables() == frozenset({"file:/u"})


def test_each_change_raises_the_stamp_so_that_older_decisions_can_tell(feed, metastore):
    made = metastore.caches.create(record(), now=NOW)
    feed.sync()
    before = feed.stamp
    assert feed.served("c").stamp <= before
    metastore.caches.update(made.id, made.version, now=NOW, rewrite_enabled=False)
    feed.sync()
    assert feed.served("c").stamp > before
    assert not feed.served("c").rewrite_enabled


def test_grants_and_revokes_arrive(feed, metastore):
    made = metastore.caches.create(record(), now=NOW)
    feed.sync()
    assert feed.served("c").principals is None
    metastore.grants.add(made.id, "ann")
    feed.sync()
    assert feed.served("c").principals == frozenset({"ann"})
    metastore.grants.revoke(made.id, "ann")
    feed.sync()
    assert feed.served("c").principals == frozenset()


def test_a_plan_of_another_version_is_left_out_and_said_so(feed, metastore, caplog):
    broken = {**encode_plan(plan()), "version": "0"}
    metastore.caches.create(replace(record(), plan=broken), now=NOW)
    metastore.caches.create(record("fine"), now=NOW)
    feed.sync()
    assert feed.registry.names() == ("fine",)
    assert feed.telemetry.counters()["plans_not_read"] == 1
    assert "REFRESH RELATIONAL CACHE c FULL" in caplog.text


def test_a_metastore_that_cannot_be_asked_stops_all_hits_within_the_bound(feed, monkeypatch):
    feed.sync()
    clock = feed._clock

    def fail():
        raise MetastoreError("GONE", "gone")

    monkeypatch.setattr(feed.source.metastore.registry, "mark", fail)
    with pytest.raises(MetastoreError):
        feed.sync()
    assert feed.why_not_ready() is None
    clock.now += STALE_SECONDS + 1
    assert "could not be asked" in feed.why_not_ready().detail
    monkeypatch.undo()
    feed.sync()
    assert feed.why_not_ready() is None


def test_decisions_are_written_in_the_background(feed, metastore):
    made = DecisionRecord(NOW, "s", "q", Outcome.HIT, ("c",))
    feed.log(lambda: made)
    assert metastore.decisions.latest() == ()
    feed.flush_log()
    assert [d.caches for d in metastore.decisions.latest()] == [("c",)]


def test_one_feed_for_all_sessions_of_a_metastore(metastore_url):
    one, two = acquire_feed(metastore_url), acquire_feed(metastore_url)
    assert one is two
    release_feed(two)
    assert one.wait_loaded(10)
    release_feed(one)
    three = acquire_feed(metastore_url)
    assert three is not one
    release_feed(three)


def test_a_running_feed_sees_another_process_within_five_seconds(metastore_url):
    feed = acquire_feed(metastore_url)
    try:
        assert feed.wait_loaded(10)
        with open_metastore(metastore_url) as other:
            other.caches.create(record(), now=NOW)
        until = time.monotonic() + STALE_SECONDS
        while feed.served("c") is None and time.monotonic() < until:
            time.sleep(0.05)
        assert feed.served("c") is not None
    finally:
        release_feed(feed)


# -- which joins a snapshot may rely on ----------------------------------------------------

A, B = "file:/a", "file:/b"
SNAPSHOT = {A: BaseState("ia", 1, "txn:a"), B: BaseState("ib", 2, "", 7)}
HELD = RecordPreservingJoin("j", A, B, (("x", "y"),))


def join(**fields):
    given = {
        "left": JoinSide("a", A, "ia"),
        "right": JoinSide("b", B, "ib"),
        "keys": (("x", "y"),),
        "validated": True,
        "state": JoinState.VALID,
        "validated_versions": SNAPSHOT,
        "validated_under": {TIME_ZONE: "UTC"},
    }
    return JoinRecord(name="j", definition="", **{**given, **fields})


def holding(declared, *in_plan):
    found = replace(plan("c", A, B), joins=in_plan)
    return joins_holding(found, SNAPSHOT, declared, fingerprint({TIME_ZONE: "UTC"}))


def test_a_join_that_held_at_the_refresh_serves():
    assert holding([join(validated_versions={})], HELD) == (HELD,)


def test_a_join_validated_at_the_very_versions_serves_though_declared_later():
    assert holding([join()]) == (HELD,)


@pytest.mark.parametrize("under", [None, {}, {TIME_ZONE: "Europe/Oslo"}])
def test_noop_a_join_validated_at_the_very_versions_under_other_settings(under):
    assert holding([join(validated_under=under)]) == ()


@pytest.mark.parametrize("state", JoinState)
def test_a_cache_that_was_never_refreshed_lacks_no_join_that_is_declared(state):
    """It answers nothing by them, and a miss names the refresh."""
    found = joins_holding(plan("c", A, B), {}, [join(state=state)], frozenset())
    assert found == ((HELD,) if state is JoinState.VALID else ())


def test_noop_a_join_validated_at_other_versions_does_not_serve():
    assert holding([join(validated_versions={**SNAPSHOT, B: BaseState("ib", 3)})]) == ()


@pytest.mark.parametrize(
    "checked",
    [
        {A: BaseState("ia", 1, "txn:other")}, {B: BaseState("ib", 2, "", 8)},
        {A: BaseState("ia", 1)}, {B: BaseState("ib", 2)},
    ],
)  # fmt: skip
def test_noop_a_join_validated_at_the_same_number_of_another_history(checked):
    assert holding([join(validated_versions={**SNAPSHOT, **checked})]) == ()


def test_a_left_join_holds_while_the_joined_table_is_as_it_was_validated():
    grown = {**SNAPSHOT, A: BaseState("ia", 3)}
    (found,) = holding([join(validated_versions=grown, finds_each=False)])
    assert not found.finds_each
    assert holding([join(validated_versions=grown)]) == ()
    changed = {**SNAPSHOT, B: BaseState("ib", 3)}
    assert holding([join(validated_versions=changed, finds_each=False)]) == ()


def test_noop_a_left_join_declared_anew_as_an_inner_one_does_not_inherit():
    loose = replace(HELD, finds_each=False)
    assert holding([join(validated_versions={})], loose) == ()
    assert holding([join(validated_versions={}, finds_each=False)], loose) == (loose,)


def test_noop_a_dropped_join_does_not_serve():
    assert holding([], HELD) == ()


def test_noop_a_broken_join_does_not_serve_though_it_held():
    assert holding([join(state=JoinState.BROKEN)], HELD) == ()


def test_noop_a_join_declared_anew_with_other_keys_does_not_inherit():
    assert holding([join(keys=(("x", "z"),), validated_versions={})], HELD) == ()


def test_an_unvalidated_join_is_marked_so():
    found = holding([join(validated=False, state=JoinState.NOT_VALIDATED, validated_versions={})])
    assert [j.validated for j in found] == [False]


def test_noop_a_join_over_a_table_that_the_cache_does_not_read():
    elsewhere = join(left=JoinSide("z", "file:/z", "iz"))
    assert holding([elsewhere]) == ()


def test_a_mark_reaches_the_session_with_the_revision_and_goes_with_it(metastore, feed):
    cache = metastore.caches.create(record("c", "file:/t"), now=NOW)
    nested = record("n", f"file:/caches/{cache.id}")
    metastore.caches.create(nested, now=NOW)
    feed.sync()
    assert feed.restricted() == {}
    mark = metastore.tables.restrict("t", "file:/t", None, by="root")
    assert feed.sync()
    assert {"file:/t", cache.id, nested.id} <= feed.restricted().keys()
    metastore.tables.unrestrict(mark.id)
    assert feed.sync() and feed.restricted() == {}


def test_damage_is_taken_back_by_a_look_after_it_was_noted_alone(feed, metastore, tmp_path):
    """What was found whole some seconds before says nothing of a file that is gone since."""
    place = tmp_path / "cache"
    (place / "_delta_log").mkdir(parents=True)
    file = place / "a.parquet"
    file.write_bytes(b"x")
    add = {"path": "a.parquet", "partitionValues": {}, "size": 1}
    (place / "_delta_log" / f"{0:020d}.json").write_text(json.dumps({"add": add}))
    cache = metastore.caches.create(
        replace(record(), location=str(place)), now=metastore.clock.now()
    )
    run = metastore.refreshes.start(
        cache.id, "w", now=None, lease_seconds=60, mode="FULL", reason="test"
    )
    told = Publication(cache_version=0, rows=1, bytes=1, tables=[], plan=encode_plan(plan()))
    metastore.refreshes.publish(run.id, run.fencing_token, told, now=None)
    stored = StoredFiles(lambda place: LocalFiles(), clock=feed._clock)

    def looked():
        feed.sync()
        (served,) = feed.caches()
        return served, feed.notes.files(served, None, stored).damage

    assert looked()[1] == ""
    file.unlink()
    served, found = looked()
    assert found == "", "it is not looked at for each query"
    feed.notes.note_damage(served, "its file a.parquet is gone")
    assert looked()[1] == "its file a.parquet is gone"
    feed.notes.tell()
    assert metastore.caches.get(cache.id).damaged
    file.write_bytes(b"x")
    feed._clock.now += LOOK_SECONDS
    assert looked()[1] == ""
    feed.notes.tell()
    assert metastore.caches.get(cache.id).damaged is None

    # of another process's note it knows no more than that
    file.unlink()
    assert metastore.snapshots.note_damage(cache.id, run.id, "its file a.parquet is gone")
    assert looked()[1] == "its file a.parquet is gone"
    assert metastore.caches.get(cache.id).damaged
