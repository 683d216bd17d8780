"""Leases, fencing, commit numbers and publishing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from cachemgr.errors import ConflictError, LeaseLostError, NotFoundError
from cachemgr.metastore.accounts import RunAccount
from cachemgr.metastore.records import GroupingSetRecord, Publication, SnapshotTableRecord
from cachemgr.serving.sources import MetastoreSource
from cachemgr.vocabulary import RunState

TABLES = (
    SnapshotTableRecord("lineorder", "/t/lo", "id-lo", 4, 1_700_000_000_123, "txn:a", "{}"),
    SnapshotTableRecord("files", "/t/f", None, None),
)
SETS = (GroupingSetRecord(1, 0, ("a",), 5, 50),)


def start(store, cache, now, holder="me", seconds=60):
    return store.refreshes.start(
        cache.id, holder, now=now, lease_seconds=seconds, mode="FULL", reason="first refresh"
    )


def publish(store, run, now, version=3, token=None, sets=SETS):
    return store.refreshes.publish(
        run.id,
        run.fencing_token if token is None else token,
        Publication(
            cache_version=version,
            rows=5,
            bytes=50,
            tables=TABLES,
            sets=sets,
            facts={"exact": {"a": True}},
            plan={"p": 1},
        ),
        now=now,
    )


def state_of(store, cache):
    return (
        store.caches.get(cache.id),
        store.snapshots.published(cache.id),
        store.caches.grouping_sets(cache.id),
        store.registry.revision(),
        store.refreshes.lease(cache.id),
        store.refreshes.of(cache.id),
    )


def test_facts_come_to_those_that_a_run_has(store, cache, now):
    store.queue.request(cache.id, why="w", mode="FULL")
    run = store.queue.claim("w1", lease_seconds=60)
    assert run.asked_mode == "FULL" and run.account == RunAccount()
    account = RunAccount("FULL", "ASKED_FOR")
    done = store.refreshes.update(run.id, run.fencing_token, facts=account.to_facts())
    assert (done.account, done.asked_mode, done.seconds) == (account, "FULL", None)
    failed = store.refreshes.fail(run.id, run.fencing_token, "no", now=None)
    assert failed.account == account and failed.seconds >= 0


def test_a_published_refresh_is_what_the_cache_serves_from(store, cache, now):
    assert store.snapshots.published(cache.id) is None
    run = start(store, cache, now)
    assert (run.state, run.fencing_token, run.started_at) == (RunState.RUNNING, 1, now)
    store.refreshes.update(run.id, 1, commit_number=8, parent_version=2, stages=[{"kind": "write"}])
    revision = store.registry.revision()
    done = publish(store, run, now + timedelta(seconds=9))
    snapshot = store.snapshots.published(cache.id)
    assert (snapshot.run, snapshot.tables) == (done, TABLES)
    assert (done.state, done.cache_version, done.facts) == ("PUBLISHED", 3, {"exact": {"a": True}})
    assert (done.commit_number, done.parent_version, done.stages) == (8, 2, ({"kind": "write"},))
    assert store.snapshots.get(run.id) == snapshot
    assert store.refreshes.get(run.id) == done
    assert store.caches.grouping_sets(cache.id) == SETS
    assert store.registry.revision() > revision
    assert store.refreshes.lease(cache.id).holder is None
    (entry,) = store.registry.state(revision).entries
    assert (entry.published, entry.grouping_sets) == (snapshot, SETS)
    # An ALTER based on a record read before the refresh is no conflict: it changes other fields.
    store.caches.update(cache.id, cache.version, now=now, paused=True)


def test_one_refresh_at_a_time(store, cache, now):
    start(store, cache, now, "first")
    with pytest.raises(ConflictError, match="by first until") as caught:
        start(store, cache, now + timedelta(seconds=59), "second")
    assert caught.value.code == "REFRESH_RUNNING"
    assert [r.state for r in store.refreshes.of(cache.id)] == ["RUNNING"]


def test_a_run_whose_lease_has_ended_is_told_as_lost(store, cache, now):
    def read():
        schedule = store.schedules.of(cache.id)
        (listed,) = store.refreshes.of(cache.id, limit=1)
        assert store.refreshes.get(listed.id) == listed
        assert schedule is not None and schedule.last == replace(listed, plan=None)
        return listed

    run = start(store, cache, None, "killed")
    assert read() == run and not run.is_lost
    store.refreshes.renew_lease(cache.id, run.fencing_token, now=now, lease_seconds=60)
    lost = read()
    assert lost.is_lost and lost.state is RunState.RUNNING
    assert lost.error.startswith("killed has not renewed its lease, which ended at ")
    store.refreshes.renew_lease(cache.id, run.fencing_token, now=None, lease_seconds=60)
    assert read() == run, "it was only late"
    store.refreshes.renew_lease(cache.id, run.fencing_token, now=now, lease_seconds=60)
    start(store, cache, None, "next")
    assert [(r.state, r.is_lost) for r in store.refreshes.of(cache.id)] == [
        (RunState.RUNNING, False), (RunState.SUPERSEDED, False)
    ]  # fmt: skip


def test_an_expired_lease_is_taken_over_and_the_old_run_cannot_publish(store, cache, now):
    first = publish(store, start(store, cache, now), now)
    old = start(store, cache, now, "old")
    new = start(store, cache, now + timedelta(seconds=60), "new")
    assert new.fencing_token > old.fencing_token > first.fencing_token
    assert store.refreshes.get(old.id).state is RunState.SUPERSEDED
    before = state_of(store, cache)
    with pytest.raises(LeaseLostError) as caught:
        publish(store, old, now, version=9, sets=())
    assert caught.value.code == "LEASE_LOST"
    for token in (old.fencing_token, new.fencing_token + 1):
        with pytest.raises(LeaseLostError):
            publish(store, new, now, token=token)
    with pytest.raises(LeaseLostError):
        publish(store, old, now, token=new.fencing_token)
    with pytest.raises(LeaseLostError):
        store.refreshes.finish_unchanged(old.id, old.fencing_token, now=now)
    with pytest.raises(LeaseLostError):
        store.refreshes.update(old.id, old.fencing_token, commit_number=1)
    with pytest.raises(LeaseLostError):
        store.refreshes.renew_lease(cache.id, old.fencing_token, now=now, lease_seconds=60)
    failed = store.refreshes.fail(old.id, old.fencing_token, "late", now=now)
    assert failed.state is RunState.SUPERSEDED
    assert state_of(store, cache) == before
    assert store.snapshots.published(cache.id).run == first
    publish(store, new, now + timedelta(seconds=61), version=4)
    assert store.snapshots.published(cache.id).run.id == new.id


def test_a_late_run_whose_lease_nobody_took_still_publishes(store, cache, now):
    run = start(store, cache, now)
    assert publish(store, run, now + timedelta(days=1)).state is RunState.PUBLISHED


def test_no_run_publishes_twice(store, cache, now):
    run = start(store, cache, now)
    publish(store, run, now)
    before = state_of(store, cache)
    with pytest.raises(LeaseLostError):
        publish(store, run, now, version=4)
    assert state_of(store, cache) == before


def test_a_renewed_lease_lasts(store, cache, now):
    run = start(store, cache, now)
    later = now + timedelta(seconds=50)
    lease = store.refreshes.renew_lease(cache.id, run.fencing_token, now=later, lease_seconds=60)
    assert lease.expires_at == now + timedelta(seconds=110)
    with pytest.raises(ConflictError):
        start(store, cache, now + timedelta(seconds=100))
    assert start(store, cache, now + timedelta(seconds=110)).fencing_token == 2


def test_a_failed_refresh_leaves_the_snapshot_before(store, cache, now):
    publish(store, start(store, cache, now), now)
    before = store.snapshots.published(cache.id), store.caches.grouping_sets(cache.id)
    run = start(store, cache, now)
    failed = store.refreshes.fail(run.id, run.fencing_token, "disk full", now=now)
    assert (failed.state, failed.error) == ("FAILED", "disk full")
    assert (store.snapshots.published(cache.id), store.caches.grouping_sets(cache.id)) == before
    assert start(store, cache, now).state is RunState.RUNNING


def test_a_snapshot_that_moves_on_is_published_by_a_run_that_is_unchanged(store, cache, now):
    first = publish(store, start(store, cache, now), now)
    revision = store.registry.revision()
    run = start(store, cache, now + timedelta(seconds=1))
    later = [replace(table, version=9) for table in TABLES]
    done = store.refreshes.publish(
        run.id,
        run.fencing_token,
        Publication(cache_version=3, rows=5, bytes=50, tables=later, unchanged=True),
        now=now + timedelta(seconds=2),
    )
    assert (done.state, done.cache_version) == (RunState.UNCHANGED, first.cache_version)
    published = store.snapshots.published(cache.id)
    assert published.run == done and {t.version for t in published.tables} == {9}
    (entry,) = store.registry.state(revision).entries
    assert entry.published == published
    # what is read of its table is what the refresh before wrote, though that be forgotten
    with store.engine.begin() as connection:
        connection.execute(text("DELETE FROM refresh_runs WHERE id = :id"), {"id": first.id})
    usage = store.snapshots.usage(cache.id, now + timedelta(seconds=9))
    assert (usage.oldest, usage.newest) == (3, 3)
    idle = start(store, cache, now + timedelta(seconds=3))
    store.refreshes.finish_unchanged(idle.id, idle.fencing_token, now=now + timedelta(seconds=4))
    assert store.snapshots.usage(cache.id, now + timedelta(seconds=9)) == usage
    assert store.refreshes.lease(cache.id).holder is None


def test_unchanged_keeps_the_snapshot_and_tells_nobody(store, cache, now):
    publish(store, start(store, cache, now), now)
    before, revision = store.snapshots.published(cache.id), store.registry.revision()
    run = start(store, cache, now)
    assert store.refreshes.finish_unchanged(run.id, run.fencing_token, now=now).state == "UNCHANGED"
    assert store.snapshots.published(cache.id) == before
    assert store.registry.revision() == revision


def test_a_cache_dropped_during_its_refresh_is_not_published(store, cache, now):
    run = start(store, cache, now)
    store.caches.drop(cache.id, now=now)
    with pytest.raises(LeaseLostError):
        publish(store, run, now)
    assert store.snapshots.published(cache.id) is None
    assert store.refreshes.get(run.id).state is RunState.SUPERSEDED
    with pytest.raises(NotFoundError):
        start(store, cache, now)


def test_refreshes_newest_first(store, cache, now):
    ids = [publish(store, start(store, cache, now), now).id for _ in range(3)]
    assert [r.id for r in store.refreshes.of(cache.id)] == ids[::-1]
    assert [r.id for r in store.refreshes.of(cache.id, limit=1)] == ids[2:]


def test_refreshes_in_one_state(store, cache, now):
    done = publish(store, start(store, cache, now), now)
    for seconds in (1, 2):
        idle = start(store, cache, now + timedelta(seconds=seconds))
        store.refreshes.finish_unchanged(idle.id, idle.fencing_token, now=idle.started_at)
    assert len(store.refreshes.of(cache.id)) == 3
    found = store.refreshes.of(cache.id, limit=1, state=RunState.PUBLISHED)
    assert [run.id for run in found] == [done.id]
    assert store.refreshes.of(cache.id, state=RunState.FAILED) == ()


def test_commit_numbers_grow_and_are_given_once(store, cache):
    assert [store.commit_numbers.next(cache.id) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(NotFoundError):
        store.commit_numbers.next("0" * 32)


def test_purge_takes_runs_and_snapshots_along(store, cache, now):
    run = publish(store, start(store, cache, now), now)
    store.caches.drop(cache.id, now=now)
    assert store.snapshots.get(run.id).tables == TABLES
    store.caches.purge(cache.id)
    assert store.snapshots.get(run.id) is None
    assert store.caches.grouping_sets(cache.id) == ()


def test_what_is_not_there(store):
    assert store.caches.get("x") is None
    assert store.refreshes.get("x") is None
    assert store.snapshots.get("x") is None
    assert store.snapshots.published("x") is None
    assert store.refreshes.lease("x") is None
    with pytest.raises(NotFoundError):
        store.refreshes.fail("x", 1, "e", now=0)
    with pytest.raises(NotFoundError):
        store.refreshes.publish(
            "x", 1, Publication(cache_version=0, rows=0, bytes=0, tables=()), now=0
        )


def test_damage_is_noted_for_what_is_published_and_mended_by_the_next_refresh(store, cache, now):
    def refreshed(location=None):
        run = store.refreshes.start(
            cache.id, "w", now=now, lease_seconds=60, mode="FULL", reason="test"
        )
        return store.refreshes.publish(
            run.id,
            run.fencing_token,
            Publication(cache_version=1, rows=1, bytes=1, tables=(), location=location),
            now=now,
        )

    first = refreshed()
    revision = store.registry.revision()
    assert store.snapshots.note_damage(cache.id, first.id, "its file f is gone")
    assert store.registry.revision() > revision
    (entry,) = store.registry.state(revision).entries
    assert entry.cache.damaged == "its file f is gone"
    assert not store.snapshots.note_damage(cache.id, first.id, "again")
    # taken back only by whoever looked for just that
    assert not store.snapshots.lift_damage(cache.id, first.id, "another file is gone")
    assert not store.snapshots.lift_damage(cache.id, "another refresh", "its file f is gone")
    revision = store.registry.revision()
    assert store.snapshots.lift_damage(cache.id, first.id, "its file f is gone")
    (entry,) = store.registry.state(revision).entries
    assert entry.cache.damaged is None
    assert not store.snapshots.lift_damage(cache.id, first.id, "its file f is gone")
    assert store.snapshots.note_damage(cache.id, first.id, "its file f is gone")
    second = refreshed(location="/caches/elsewhere")
    found = store.caches.get(cache.id)
    assert found.damaged is None and found.location == "/caches/elsewhere"
    assert not store.snapshots.note_damage(cache.id, first.id, "of the refresh before")
    store.caches.drop(cache.id, now=now)
    assert not store.snapshots.note_damage(cache.id, second.id, "dropped")


def test_a_metastore_put_back_goes_on_after_the_logs_last_number(store, cache, now):
    for _ in range(3):
        store.commit_numbers.next(cache.id)
    mark = store.registry.mark()
    assert not store.commit_numbers.catch_up(cache.id, 3) and store.registry.mark() == mark
    assert store.commit_numbers.catch_up(cache.id, 9)
    assert store.commit_numbers.next(cache.id) == 10
    after = store.registry.mark()
    assert after.epoch != mark.epoch and after.revision > mark.revision + 1000


def test_a_session_forgets_what_a_metastore_that_was_put_back_does_not_know(
    store, cache, now, new_cache
):
    """Whether it sees the revision go back, or finds it beyond its own again."""
    source = MetastoreSource(store)
    before = source.news(None)
    future = store.caches.create(new_cache("Future"), now=now)
    seen = source.news(before.revision)
    assert {e.cache.id for e in seen.entries} == {future.id}
    with store.engine.begin() as connection:  # what putting the copy back comes to
        connection.execute(text("DELETE FROM caches WHERE name = 'Future'"))
        connection.execute(text(f"UPDATE registry_revision SET revision = {before.revision}"))
    back = source.news(seen.revision)
    assert {e.cache.id for e in back.entries} == {cache.id} == set(back.live_ids)
    assert source.news(back.revision) is None
    assert store.commit_numbers.catch_up(cache.id, 9)
    again = source.news(back.revision)
    assert {e.cache.id for e in again.entries} == {cache.id}, "all of it, by another epoch"
    assert source.news(again.revision) is None
