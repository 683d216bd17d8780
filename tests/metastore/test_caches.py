"""Caches, grouping sets, grants, joins and decisions: what is stored comes back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import text

from cachemgr.base_state import BaseState
from cachemgr.cache_spec import Freshness, RefreshPolicy
from cachemgr.errors import AlreadyExistsError, ConflictError, MetastoreError, NotFoundError
from cachemgr.metastore.caches import matches_like
from cachemgr.metastore.records import (
    ColumnRecord,
    DecisionRecord,
    GroupingSetRecord,
    JoinRecord,
    JoinSide,
)
from cachemgr.vocabulary import FreshnessKind, JoinState, Outcome, RefreshMode
from scheduler.triggers import Every, OnCommit

NS = "spark_catalog.default"
SETS = (GroupingSetRecord(3, 0, ("a", "b"), 10, 100), GroupingSetRecord(2**40, 1, ()))


def join(name="lo_dates", **changed) -> JoinRecord:
    values = {
        "definition": "lineorder INNER JOIN dates ON lo_orderdate = d_datekey",
        "left": JoinSide("lineorder", "/t/lo", "id-lo"),
        "right": JoinSide("dates", "/t/d", None),
        "keys": (("lo_orderdate", "d_datekey"),),
    }
    return JoinRecord(name=name, **{**values, **changed})


def test_every_field_of_a_cache_comes_back(store, new_cache, now):
    record = new_cache(
        "Würfel `1`",
        comment="it's a cube",
        given="/own",
        context={"catalog": "c", "schema": "s"},
        settings={"spark.sql.ansi.enabled": "true"},
        plan={"deep": [1, {"x": None}], "text": "ß"},
        plan_version="1:30.30.0",
        columns=(ColumnRecord("a", "decimal(38,2)", True), ColumnRecord("b", "int", False)),
        partitioned_by=("a",),
        cluster_by=("b",),
        properties={"k": "v"},
        refresh=RefreshPolicy(Every(3600), RefreshMode.INCREMENTAL_ONLY),
        freshness=Freshness(FreshnessKind.MAX_STALENESS, 2**40),
        rewrite_enabled=False,
        paused=True,
        owner="me",
    )
    stored = store.caches.create(record, SETS, now=now)
    read = store.caches.get(record.id)
    assert read == stored
    assert read == replace(record, created_at=now, updated_at=now, version=1, revision=1)
    assert store.caches.grouping_sets(record.id) == SETS


def test_clauses_are_stored_in_the_form_that_every_release_reads(store, new_cache, now):
    record = new_cache(
        context={"catalog": "c", "schema": "s", "claimed": True},
        given="/own",
        partitioned_by=("a", "b"),
        cluster_by=("c",),
        properties={"k": "v"},
        refresh=RefreshPolicy(OnCommit(60), RefreshMode.FULL),
        freshness=Freshness(FreshnessKind.MAX_STALENESS, 5),
    )
    store.caches.create(record, now=now)
    stored = {
        "context": {"catalog": "c", "schema": "s", "location": "/own", "claimed": True},
        "partition_by": ["a", "b"],
        "cluster_by": ["c"],
        "properties": {"k": "v"},
        "refresh_trigger": {"kind": "ON_COMMIT", "at_most_every_seconds": 60},
        "refresh_mode": "FULL",
        "freshness": "MAX_STALENESS",
        "max_staleness_seconds": 5,
    }
    (dump,) = store.dumps.take().caches
    read = {column: dump.cache[column] for column in stored}
    assert json.dumps(read) == json.dumps(stored), "order and all"


def test_a_freshness_that_contradicts_itself_promises_nothing(store, cache):
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE caches SET freshness = 'MAX_STALENESS'"))
    assert store.caches.get(cache.id).spec.freshness == Freshness(FreshnessKind.STRICT)


def test_names_are_found_and_taken_in_any_case(store, cache, new_cache, now):
    assert store.caches.named("SPARK_catalog.Default", "cUBE") == cache
    with pytest.raises(AlreadyExistsError, match="OR REPLACE") as caught:
        store.caches.create(new_cache("CUBE"), now=now)
    assert caught.value.code == "CACHE_EXISTS"
    assert store.caches.all() == (cache,)
    store.caches.create(new_cache("CUBE", namespace="other"), now=now)


def test_replace_keeps_the_old_row_and_passes_the_grants_on(store, cache, new_cache, now):
    store.grants.add(cache.id, "ann")
    later = now + timedelta(hours=1)
    new = store.caches.create(new_cache(definition="SELECT 2"), now=later, replace=True)
    assert store.caches.named(NS, "cube") == new
    assert new.narrowed
    assert store.grants.of(new.id) == ("ann",)
    old = store.caches.get(cache.id)
    assert old.dropped_at == later
    assert store.caches.all(include_dropped=True) == (new, old)


def test_a_dropped_name_is_free_and_the_row_waits_for_its_grace(store, cache, new_cache, now):
    with pytest.raises(MetastoreError, match="DROP RELATIONAL CACHE"):
        store.caches.purge(cache.id)
    store.caches.drop(cache.id, now=now)
    assert store.caches.named(NS, "Cube") is None
    assert store.caches.all() == ()
    with pytest.raises(NotFoundError):
        store.caches.drop(cache.id, now=now)
    with pytest.raises(NotFoundError):
        store.caches.update(cache.id, cache.version + 1, now=now, paused=True)
    for _ in range(2):
        again = store.caches.create(new_cache(), now=now)
        store.caches.drop(again.id, now=now)
    store.caches.purge(cache.id)
    assert store.caches.get(cache.id) is None


def test_update_is_by_compare_and_set(store, cache, now):
    changed = store.caches.update(
        cache.id,
        1,
        now=now + timedelta(1),
        paused=True,
        freshness=Freshness(FreshnessKind.UNLIMITED),
    )
    assert (changed.version, changed.paused) == (2, True)
    assert changed.spec.freshness.kind == "UNLIMITED"
    assert changed.updated_at == now + timedelta(1)
    before, revision = store.caches.get(cache.id), store.registry.revision()
    with pytest.raises(ConflictError, match="has 2") as caught:
        store.caches.update(cache.id, 1, now=now, paused=False)
    assert caught.value.code == "CACHE_CHANGED"
    assert store.caches.get(cache.id) == before
    assert store.registry.revision() == revision
    with pytest.raises(TypeError, match="version"):
        store.caches.update(cache.id, 2, now=now, version=9)


def test_rename(store, cache, new_cache, now):
    other = store.caches.create(new_cache("Other"), now=now)
    with pytest.raises(AlreadyExistsError, match="exists already: give another name"):
        store.caches.rename(cache.id, 1, "OTHER", now=now)
    assert store.caches.named(NS, "cube") == cache
    renamed = store.caches.rename(cache.id, 1, "New", namespace="n", now=now)
    assert store.caches.named("N", "new") == renamed
    assert store.caches.all() == (renamed, other)


def test_a_moment_without_a_zone_is_refused(store, new_cache):
    with pytest.raises(ValueError, match="time zone"):
        store.caches.create(new_cache(), now=datetime(2026, 1, 1))


def test_moments_keep_their_instant_whatever_the_zone(store, new_cache):
    far = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=9)))
    stored = store.caches.create(new_cache(), now=far)
    assert store.caches.get(stored.id).created_at == far
    millis = int(far.timestamp() * 1000)
    other = store.caches.create(new_cache("b"), now=millis)
    assert other.created_at == far
    assert other.created_at.tzinfo == UTC


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [("cube", True), ("CU*", True), ("x|c*e", True), ("cub", False), ("*", True), ("c.be", False)],
)
def test_like(pattern, fits, store, cache):
    assert matches_like(pattern, "Cube") is fits
    assert bool(store.caches.matching(pattern)) is fits


def test_grants_narrow_and_the_last_revoke_does_not_open(store, cache):
    assert store.grants.add(cache.id, "bob") is True
    assert store.grants.add(cache.id, "ann") is True
    assert store.grants.add(cache.id, "ann") is False
    assert store.grants.of(cache.id) == ("ann", "bob")
    with pytest.raises(NotFoundError, match="ann, bob"):
        store.grants.revoke(cache.id, "eve")
    store.grants.revoke(cache.id, "ann")
    store.grants.revoke(cache.id, "bob")
    assert store.grants.of(cache.id) == ()
    assert store.caches.get(cache.id).narrowed
    with pytest.raises(NotFoundError):
        store.grants.add("0" * 32, "ann")


def test_joins(store, now):
    stored = store.joins.create(join(), now=now)
    assert store.joins.named("LO_DATES") == stored == replace(join(id=stored.id), created_at=now)
    with pytest.raises(AlreadyExistsError):
        store.joins.create(join("LO_dates"), now=now)
    versions = {"/t/lo": BaseState("id-lo", 4, "txn:a", 9), "/t/d": BaseState(None, None)}
    valid = store.joins.update_state(
        stored.id, JoinState.VALID, validated_versions=versions, validated_at=now
    )
    assert valid.validated_versions == versions
    broken = store.joins.update_state(stored.id, JoinState.BROKEN, message="key 7 twice")
    assert (broken.state, broken.message) == ("BROKEN", "key 7 twice")
    assert store.joins.all() == (replace(broken, validated_versions=versions),)
    store.joins.drop("Lo_Dates")
    assert store.joins.named("lo_dates") is None
    with pytest.raises(NotFoundError, match="SHOW RECORD PRESERVING JOINS"):
        store.joins.drop("lo_dates")


def test_what_was_found_of_a_join_is_not_noted_of_another_under_its_name(store, now):
    before = store.joins.create(join(), now=now)
    store.joins.drop("lo_dates")
    assert store.joins.update_state(before.id, JoinState.VALID) is None
    after = store.joins.create(join(), now=now)
    assert store.joins.update_state(before.id, JoinState.VALID) is None
    assert store.joins.all() == (after,)


def test_decisions(store, now):
    def decision(minute, outcome, **more):
        at = now + timedelta(minutes=minute)
        return DecisionRecord(at, "s1", f"q{minute}", outcome, millis=1.25, **more)

    revision = store.registry.revision()
    hit = decision(1, Outcome.HIT, caches=("cube",), grouping_set="(a, b)")
    miss = decision(2, Outcome.MISS, caches=("cube2",), reasons=({"code": "X", "detail": "y"},))
    store.decisions.log([hit, miss])
    store.decisions.log([])
    found = store.decisions.latest()
    assert [replace(d, id=None) for d in found] == [miss, hit]
    assert [d.query_hash for d in store.decisions.latest(1)] == ["q2"]
    assert [d.query_hash for d in store.decisions.latest(cache="cube")] == ["q1"]
    assert [d.query_hash for d in store.decisions.latest(outcome=Outcome.HIT)] == ["q1"]
    assert [d.query_hash for d in store.decisions.latest(since=miss.at)] == ["q2"]
    assert store.decisions.latest(session_id="s2") == ()
    assert store.registry.revision() == revision
    assert store.decisions.prune(miss.at) == 1
    assert len(store.decisions.latest()) == 1


def test_the_revision_moves_with_each_change_that_sessions_must_see(store, cache, now, new_cache):
    declared = join()
    seen = [store.registry.revision()]

    def moved(action) -> bool:
        action()
        seen.append(store.registry.revision())
        return seen[-1] > seen[-2]

    assert moved(lambda: store.caches.update(cache.id, 1, now=now, rewrite_enabled=False))
    assert moved(lambda: store.grants.add(cache.id, "ann"))
    assert moved(lambda: store.grants.revoke(cache.id, "ann"))
    assert moved(lambda: store.joins.create(declared, now=now))
    assert moved(lambda: store.joins.update_state(declared.id, JoinState.BROKEN))
    assert moved(lambda: store.joins.drop("lo_dates"))
    assert moved(lambda: store.caches.create(new_cache(), now=now, replace=True))
    assert moved(lambda: store.caches.drop(store.caches.named(NS, "Cube").id, now=now))
    assert not moved(lambda: store.decisions.prune(now))


def test_registry_gives_only_what_is_new(store, new_cache, now):
    one = store.caches.create(new_cache("one"), SETS, now=now)
    two = store.caches.create(new_cache("two"), now=now)
    store.joins.create(join(), now=now)
    first = store.registry.state()
    assert {entry.cache.id for entry in first.entries} == first.live_ids == {one.id, two.id}
    assert {e.cache.name: e.grouping_sets for e in first.entries} == {"one": SETS, "two": ()}
    assert [j.name for j in first.joins] == ["lo_dates"]
    assert store.registry.state(first.revision).entries == ()
    store.grants.add(two.id, "ann")
    store.caches.drop(one.id, now=now)
    after = store.registry.state(first.revision)
    assert [(e.cache.id, e.grants, e.published) for e in after.entries] == [(two.id, {"ann"}, None)]
    assert after.live_ids == {two.id}
