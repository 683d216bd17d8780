"""Caches, grouping sets, grants, joins and decisions: what is stored comes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cachemgr.base_state import BaseState
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
        context={"catalog": "c", "schema": "s"},
        settings={"spark.sql.ansi.enabled": "true"},
        plan={"deep": [1, {"x": None}], "text": "ß"},
        plan_version="1:30.30.0",
        columns=(ColumnRecord("a", "decimal(38,2)", True), ColumnRecord("b", "int", False)),
        partition_by=("a",),
        cluster_by=("b",),
        properties={"k": "v"},
        refresh_trigger={"kind": "EVERY", "seconds": 3600},
        refresh_mode=RefreshMode.INCREMENTAL_ONLY,
        freshness=FreshnessKind.MAX_STALENESS,
        max_staleness_seconds=2**40,
        rewrite_enabled=False,
        paused=True,
        owner="me",
    )
    stored = store.writer.create_cache(record, SETS, now=now)
    read = store.reader.cache_by_id(record.id)
    assert read == stored
    assert read == replace(record, created_at=now, updated_at=now, version=1, revision=1)
    assert store.reader.grouping_sets(record.id) == SETS


def test_names_are_found_and_taken_in_any_case(store, cache, new_cache, now):
    assert store.reader.cache("SPARK_catalog.Default", "cUBE") == cache
    with pytest.raises(AlreadyExistsError, match="OR REPLACE") as caught:
        store.writer.create_cache(new_cache("CUBE"), now=now)
    assert caught.value.code == "CACHE_EXISTS"
    assert store.reader.caches() == (cache,)
    store.writer.create_cache(new_cache("CUBE", namespace="other"), now=now)


def test_replace_keeps_the_old_row_and_passes_the_grants_on(store, cache, new_cache, now):
    store.writer.grant(cache.id, "ann")
    later = now + timedelta(hours=1)
    new = store.writer.create_cache(new_cache(definition="SELECT 2"), now=later, replace=True)
    assert store.reader.cache(NS, "cube") == new
    assert new.narrowed
    assert store.reader.grants(new.id) == ("ann",)
    old = store.reader.cache_by_id(cache.id)
    assert old.dropped_at == later
    assert store.reader.caches(include_dropped=True) == (new, old)


def test_a_dropped_name_is_free_and_the_row_waits_for_its_grace(store, cache, new_cache, now):
    with pytest.raises(MetastoreError, match="DROP RELATIONAL CACHE"):
        store.writer.purge_cache(cache.id)
    store.writer.drop_cache(cache.id, now=now)
    assert store.reader.cache(NS, "Cube") is None
    assert store.reader.caches() == ()
    with pytest.raises(NotFoundError):
        store.writer.drop_cache(cache.id, now=now)
    with pytest.raises(NotFoundError):
        store.writer.update_cache(cache.id, cache.version + 1, now=now, paused=True)
    for _ in range(2):
        again = store.writer.create_cache(new_cache(), now=now)
        store.writer.drop_cache(again.id, now=now)
    store.writer.purge_cache(cache.id)
    assert store.reader.cache_by_id(cache.id) is None


def test_update_is_by_compare_and_set(store, cache, now):
    changed = store.writer.update_cache(
        cache.id, 1, now=now + timedelta(1), paused=True, freshness=FreshnessKind.UNLIMITED
    )
    assert (changed.version, changed.paused, changed.freshness) == (2, True, "UNLIMITED")
    assert changed.updated_at == now + timedelta(1)
    before, revision = store.reader.cache_by_id(cache.id), store.reader.revision()
    with pytest.raises(ConflictError, match="has 2") as caught:
        store.writer.update_cache(cache.id, 1, now=now, paused=False)
    assert caught.value.code == "CACHE_CHANGED"
    assert store.reader.cache_by_id(cache.id) == before
    assert store.reader.revision() == revision
    with pytest.raises(TypeError, match="version"):
        store.writer.update_cache(cache.id, 2, now=now, version=9)


def test_rename(store, cache, new_cache, now):
    other = store.writer.create_cache(new_cache("Other"), now=now)
    with pytest.raises(AlreadyExistsError, match="exists already: give another name"):
        store.writer.rename_cache(cache.id, 1, "OTHER", now=now)
    assert store.reader.cache(NS, "cube") == cache
    renamed = store.writer.rename_cache(cache.id, 1, "New", namespace="n", now=now)
    assert store.reader.cache("N", "new") == renamed
    assert store.reader.caches() == (renamed, other)


def test_a_moment_without_a_zone_is_refused(store, new_cache):
    with pytest.raises(ValueError, match="time zone"):
        store.writer.create_cache(new_cache(), now=datetime(2026, 1, 1))


def test_moments_keep_their_instant_whatever_the_zone(store, new_cache):
    far = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=9)))
    stored = store.writer.create_cache(new_cache(), now=far)
    assert store.reader.cache_by_id(stored.id).created_at == far
    millis = int(far.timestamp() * 1000)
    other = store.writer.create_cache(new_cache("b"), now=millis)
    assert other.created_at == far
    assert other.created_at.tzinfo == UTC


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [("cube", True), ("CU*", True), ("x|c*e", True), ("cub", False), ("*", True), ("c.be", False)],
)
def test_like(pattern, fits, store, cache):
    assert matches_like(pattern, "Cube") is fits
    assert bool(store.reader.list_caches(pattern)) is fits


def test_grants_narrow_and_the_last_revoke_does_not_open(store, cache):
    assert store.writer.grant(cache.id, "bob") is True
    assert store.writer.grant(cache.id, "ann") is True
    assert store.writer.grant(cache.id, "ann") is False
    assert store.reader.grants(cache.id) == ("ann", "bob")
    with pytest.raises(NotFoundError, match="ann, bob"):
        store.writer.revoke(cache.id, "eve")
    store.writer.revoke(cache.id, "ann")
    store.writer.revoke(cache.id, "bob")
    assert store.reader.grants(cache.id) == ()
    assert store.reader.cache_by_id(cache.id).narrowed
    with pytest.raises(NotFoundError):
        store.writer.grant("0" * 32, "ann")


def test_joins(store, now):
    stored = store.writer.create_join(join(), now=now)
    assert store.reader.join("LO_DATES") == stored == replace(join(id=stored.id), created_at=now)
    with pytest.raises(AlreadyExistsError):
        store.writer.create_join(join("LO_dates"), now=now)
    versions = {"/t/lo": BaseState("id-lo", 4, "txn:a", 9), "/t/d": BaseState(None, None)}
    valid = store.writer.update_join_state(
        stored.id, JoinState.VALID, validated_versions=versions, validated_at=now
    )
    assert valid.validated_versions == versions
    broken = store.writer.update_join_state(stored.id, JoinState.BROKEN, message="key 7 twice")
    assert (broken.state, broken.message) == ("BROKEN", "key 7 twice")
    assert store.reader.joins() == (replace(broken, validated_versions=versions),)
    store.writer.drop_join("Lo_Dates")
    assert store.reader.join("lo_dates") is None
    with pytest.raises(NotFoundError, match="SHOW RECORD PRESERVING JOINS"):
        store.writer.drop_join("lo_dates")


def test_what_was_found_of_a_join_is_not_noted_of_another_under_its_name(store, now):
    before = store.writer.create_join(join(), now=now)
    store.writer.drop_join("lo_dates")
    assert store.writer.update_join_state(before.id, JoinState.VALID) is None
    after = store.writer.create_join(join(), now=now)
    assert store.writer.update_join_state(before.id, JoinState.VALID) is None
    assert store.reader.joins() == (after,)


def test_decisions(store, now):
    def decision(minute, outcome, **more):
        at = now + timedelta(minutes=minute)
        return DecisionRecord(at, "s1", f"q{minute}", outcome, millis=1.25, **more)

    revision = store.reader.revision()
    hit = decision(1, Outcome.HIT, caches=("cube",), grouping_set="(a, b)")
    miss = decision(2, Outcome.MISS, caches=("cube2",), reasons=({"code": "X", "detail": "y"},))
    store.writer.log_decisions([hit, miss])
    store.writer.log_decisions([])
    found = store.reader.decisions()
    assert [replace(d, id=None) for d in found] == [miss, hit]
    assert [d.query_hash for d in store.reader.decisions(1)] == ["q2"]
    assert [d.query_hash for d in store.reader.decisions(cache="cube")] == ["q1"]
    assert [d.query_hash for d in store.reader.decisions(outcome=Outcome.HIT)] == ["q1"]
    assert [d.query_hash for d in store.reader.decisions(since=miss.at)] == ["q2"]
    assert store.reader.decisions(session_id="s2") == ()
    assert store.reader.revision() == revision
    assert store.writer.prune_decisions(miss.at) == 1
    assert len(store.reader.decisions()) == 1


def test_the_revision_moves_with_each_change_that_sessions_must_see(store, cache, now, new_cache):
    writer, declared = store.writer, join()
    seen = [store.reader.revision()]

    def moved(action) -> bool:
        action()
        seen.append(store.reader.revision())
        return seen[-1] > seen[-2]

    assert moved(lambda: writer.update_cache(cache.id, 1, now=now, rewrite_enabled=False))
    assert moved(lambda: writer.grant(cache.id, "ann"))
    assert moved(lambda: writer.revoke(cache.id, "ann"))
    assert moved(lambda: writer.create_join(declared, now=now))
    assert moved(lambda: writer.update_join_state(declared.id, JoinState.BROKEN))
    assert moved(lambda: writer.drop_join("lo_dates"))
    assert moved(lambda: writer.create_cache(new_cache(), now=now, replace=True))
    assert moved(lambda: writer.drop_cache(store.reader.cache(NS, "Cube").id, now=now))
    assert not moved(lambda: writer.prune_decisions(now))


def test_registry_gives_only_what_is_new(store, new_cache, now):
    one = store.writer.create_cache(new_cache("one"), SETS, now=now)
    two = store.writer.create_cache(new_cache("two"), now=now)
    store.writer.create_join(join(), now=now)
    first = store.reader.registry()
    assert {entry.cache.id for entry in first.entries} == first.live_ids == {one.id, two.id}
    assert {e.cache.name: e.grouping_sets for e in first.entries} == {"one": SETS, "two": ()}
    assert [j.name for j in first.joins] == ["lo_dates"]
    assert store.reader.registry(first.revision).entries == ()
    store.writer.grant(two.id, "ann")
    store.writer.drop_cache(one.id, now=now)
    after = store.reader.registry(first.revision)
    assert [(e.cache.id, e.grants, e.published) for e in after.entries] == [(two.id, {"ann"}, None)]
    assert after.live_ids == {two.id}
