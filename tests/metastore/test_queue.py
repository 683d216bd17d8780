"""The queue of refreshes: asked for once, taken once, cancelled, taken over; on both databases."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from cachemgr.cache_spec import RefreshPolicy, trigger_of
from cachemgr.errors import ConflictError, LeaseLostError, NotFoundError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.queue import DueRefresh
from cachemgr.metastore.records import Publication
from cachemgr.vocabulary import Origin, RunState
from cachemgr.worker.schedule import ask_for_due
from scheduler.triggers import Every

LASTING = 3e9  # a lease that has not ended by the real clock either


def ask(store, cache, now, **more):
    return store.queue.request(cache.id, why="asked", now=now, **more)


def claim(store, now, holder="w1", lease_seconds=20, **more):
    return store.queue.claim(holder, lease_seconds=lease_seconds, now=now, **more)


def schedule(store, cache):
    return next(s for s in store.schedules.all() if s.cache.id == cache.id)


def publish(store, run, now):
    return store.refreshes.publish(
        run.id, run.fencing_token, Publication(cache_version=1, rows=1, bytes=1, tables=()), now=now
    )


def test_the_run_has_the_id_of_its_request(store, cache, now):
    asked = ask(store, cache, now, mode="FULL", requested_by="ann")
    assert store.queue.get(asked.id) == asked
    assert schedule(store, cache).busy
    run = claim(store, now + timedelta(seconds=3), lease_seconds=LASTING)
    assert (run.id, run.mode, run.state, run.holder) == (asked.id, "FULL", RunState.RUNNING, "w1")
    assert (run.requested_by, run.requested_at, run.origin) == ("ann", now, Origin.REQUEST)
    assert run.fencing_token == 1 and run.started_at == now + timedelta(seconds=3)
    assert store.queue.waiting() == () and store.queue.get(asked.id) is None
    assert schedule(store, cache).busy and schedule(store, cache).last == run
    assert store.refreshes.get(asked.id) == run


def test_asking_while_one_waits_gives_that_one(store, cache, now):
    first = ask(store, cache, now)
    assert ask(store, cache, now + timedelta(seconds=1)) == first
    run = claim(store, now)
    second = ask(store, cache, now)
    assert second.id != run.id, "one that runs may have read its tables already"
    assert claim(store, now) is None, "the cache is being refreshed"
    publish(store, run, now)
    assert claim(store, now).id == second.id


def test_first_come_first_served(store, now, new_cache):
    caches = [store.caches.create(new_cache(n), now=now) for n in ("b", "a", "c")]
    asked = [ask(store, c, now + timedelta(seconds=i)) for i, c in enumerate(caches)]
    assert [claim(store, now).id for _ in asked] == [a.id for a in asked]
    assert claim(store, now) is None


def test_no_more_at_once_than_allowed(store, now, new_cache):
    caches = [store.caches.create(new_cache(n), now=now) for n in ("a", "b")]
    for cache in caches:
        ask(store, cache, now)
    run = claim(store, now, most_running=1)
    assert claim(store, now, most_running=1) is None
    publish(store, run, now)
    assert claim(store, now, most_running=1) is not None


def test_of_two_schedulers_one_gets_to_ask(store, cache, now):
    seen = schedule(store, cache).epoch
    first = ask(store, cache, now, epoch=seen, origin=Origin.SCHEDULE)
    publish(store, claim(store, now), now)
    assert first is not None and ask(store, cache, now, epoch=seen) is None
    assert store.queue.waiting() == ()
    assert ask(store, cache, now, epoch=schedule(store, cache).epoch) is not None


def test_a_request_for_nothing(store, cache, now):
    with pytest.raises(NotFoundError):
        store.queue.request("nothing", why="x", now=now)
    store.caches.drop(cache.id, now=now)
    with pytest.raises(NotFoundError):
        ask(store, cache, now)


def test_a_dropped_cache_is_not_refreshed(store, cache, now):
    asked = ask(store, cache, now)
    store.caches.drop(cache.id, now=now)
    assert store.queue.get(asked.id) is None
    assert claim(store, now) is None


def test_cancel_before_it_begins(store, cache, now):
    asked = ask(store, cache, now)
    run = store.queue.cancel(asked.id, by="ann", now=now)
    assert (run.id, run.state, run.finished_at) == (asked.id, RunState.CANCELLED, now)
    assert "ann" in run.error
    assert store.refreshes.get(asked.id) == run and not schedule(store, cache).busy
    assert claim(store, now) is None
    with pytest.raises(ConflictError, match="CANCELLED") as caught:
        store.queue.cancel(asked.id, by="bob", now=now)
    assert caught.value.code == "REFRESH_OVER"


def test_cancel_while_it_runs(store, cache, now):
    ask(store, cache, now)
    run = claim(store, now)
    told = store.queue.cancel(run.id, by="ann", now=now)
    assert told.state is RunState.RUNNING and told.cancel_requested
    assert store.refreshes.get(run.id).cancel_requested


def test_cancel_of_nothing(store, now):
    with pytest.raises(NotFoundError):
        store.queue.cancel("nothing", by="ann", now=now)


def test_what_a_dead_worker_held_is_asked_for_again(store, cache, now):
    ask(store, cache, now, requested_by="ann")
    run = claim(store, now)
    assert store.queue.requeue_abandoned(now=now + timedelta(seconds=19)) == 0
    late = now + timedelta(seconds=21)
    assert store.queue.requeue_abandoned(now=late) == 1
    assert store.queue.requeue_abandoned(now=late) == 0, "it waits already"
    again = claim(store, late, holder="w2")
    assert (again.holder, again.fencing_token, again.requested_by) == ("w2", 2, "ann")
    assert "w1" in again.reason
    assert store.refreshes.get(run.id).state is RunState.SUPERSEDED
    with pytest.raises(LeaseLostError):
        publish(store, run, late)


def test_what_a_dead_worker_held_keeps_its_place(store, now, new_cache):
    first, second = [store.caches.create(new_cache(n), now=now) for n in ("a", "b")]
    ask(store, first, now)
    claim(store, now)
    ask(store, second, now + timedelta(seconds=1))
    late = now + timedelta(seconds=21)
    assert store.queue.requeue_abandoned(now=late) == 1
    again = claim(store, late)
    assert (again.cache_id, again.requested_at) == (first.id, now)


def test_what_a_dead_worker_held_keeps_its_place_when_it_was_asked_for_again(store, now, new_cache):
    first, second = [store.caches.create(new_cache(n), now=now) for n in ("a", "b")]
    ask(store, first, now)
    claim(store, now)
    ask(store, second, now + timedelta(seconds=1))
    waiting = ask(store, first, now + timedelta(seconds=2))
    late = now + timedelta(seconds=21)
    assert store.queue.requeue_abandoned(now=late) == 1
    again = claim(store, late)
    assert (again.id, again.cache_id, again.requested_at) == (waiting.id, first.id, now)


@pytest.mark.parametrize("spark_lost", [False, True])
def test_a_worker_that_is_told_to_stop_is_not_a_lost_one(store, now, new_cache, spark_lost):
    """Some releases one after the other would else send a long refresh to the end of the queue."""
    first, second = [store.caches.create(new_cache(n), now=now) for n in ("a", "b")]
    ask(store, first, now)
    ask(store, second, now + timedelta(seconds=1))
    taken = []
    for seconds in range(5):
        run = claim(store, now + timedelta(seconds=seconds + 2))
        taken.append(run.cache_id)
        store.queue.hand_over(
            run.id, by="w1", spark_lost=spark_lost, now=now + timedelta(seconds=seconds + 2)
        )
    kept = 3 if spark_lost else 5
    assert taken == [first.id] * kept + [second.id] * (5 - kept)


def test_one_that_loses_its_worker_each_time_lets_others_go_first(store, now, new_cache):
    killer, other = [store.caches.create(new_cache(n), now=now) for n in ("a", "b")]
    ask(store, killer, now)
    ask(store, other, now + timedelta(seconds=1))
    moment, taken = now, []
    for _ in range(4):
        taken.append(claim(store, moment).cache_id)
        moment += timedelta(seconds=21)
        store.queue.requeue_abandoned(now=moment)
    assert taken == [killer.id, killer.id, killer.id, other.id]


def test_a_cancelled_refresh_of_a_dead_worker_is_over(store, cache, now):
    """Left RUNNING, it would keep its cache busy for ever: nothing would be asked for any more."""
    ask(store, cache, now)
    run = claim(store, now)
    store.queue.cancel(run.id, by="ann", now=now)
    late = now + timedelta(seconds=30)
    assert store.queue.requeue_abandoned(now=late) == 0
    over = store.refreshes.get(run.id)
    assert (over.state, over.finished_at) == (RunState.CANCELLED, late)
    assert not schedule(store, cache).busy and store.refreshes.lease(cache.id).holder is None
    assert store.queue.requeue_abandoned(now=late) == 0


def test_what_was_taken_over_and_cancelled_does_not_come_back(store, cache, now):
    ask(store, cache, now)
    claim(store, now)
    late = now + timedelta(seconds=30)
    assert store.queue.requeue_abandoned(now=late) == 1
    (waiting,) = store.queue.waiting()
    store.queue.cancel(waiting.id, by="ann", now=late)
    assert store.queue.requeue_abandoned(now=late) == 0
    assert store.queue.waiting() == () and not schedule(store, cache).busy


def test_a_lease_that_was_taken_from_its_holder_is_not_renewed(store, cache, now):
    ask(store, cache, now)
    run = claim(store, now)
    late = now + timedelta(seconds=30)
    store.queue.requeue_abandoned(now=late)
    with pytest.raises(LeaseLostError):
        store.refreshes.renew_lease(cache.id, run.fencing_token, now=late, lease_seconds=20)
    with pytest.raises(LeaseLostError):
        publish(store, run, late)


def test_what_is_handed_over_may_be_adopted(store, cache, now):
    """Nobody else held the lease in between: the next token says so."""
    ask(store, cache, now)
    run = claim(store, now)
    assert store.queue.hand_over(run.id, by="w1 {x}", now=now)
    with pytest.raises(LeaseLostError):
        publish(store, run, now)
    again = claim(store, now, holder="w2")
    assert again.fencing_token == run.fencing_token + 1 and "w1 {x}" in again.reason
    assert not store.queue.hand_over(run.id, by="w1", now=now)
    assert store.refreshes.get(again.id).state is RunState.RUNNING


def test_the_failure_of_one_that_was_taken_over_does_not_count(store, cache, now):
    ask(store, cache, now)
    stale = claim(store, now)
    late = now + timedelta(seconds=30)
    store.queue.requeue_abandoned(now=late)
    publish(store, claim(store, late, holder="w2"), late)
    before = schedule(store, cache)
    for because in (None, "five in a row"):
        noted = store.schedules.note_failure(
            cache.id, failures=5, retry_at=late, paused_because=because, token=stale.fencing_token
        )
        assert not noted
    found = schedule(store, cache)
    assert (found.failures, found.retry_at, found.cache.paused) == (0, None, False)
    assert found.cache.version == before.cache.version


def test_failures_are_noted_until_one_succeeds(store, cache, now):
    later = now + timedelta(seconds=9)
    store.schedules.note_failure(cache.id, failures=2, retry_at=later, paused_because=None)
    found = schedule(store, cache)
    assert (found.failures, found.retry_at, found.cache.paused) == (2, later, False)
    store.schedules.note_behind({cache.id: now})
    assert schedule(store, cache).behind_since == now
    ask(store, cache, now)
    publish(store, claim(store, now), now)
    found = schedule(store, cache)
    assert (found.failures, found.retry_at, found.behind_since) == (0, None, None)


def test_a_pause_says_why_and_resume_forgets_it(store, cache, now):
    before = store.registry.revision()
    store.schedules.note_failure(
        cache.id, failures=5, retry_at=None, paused_because="no table", now=now
    )
    found = schedule(store, cache)
    assert found.cache.paused and found.paused_because == "no table"
    assert found.cache.version == cache.version + 1 and store.registry.revision() > before
    store.caches.update(cache.id, found.cache.version, now=now, paused=False)
    found = schedule(store, cache)
    assert (found.failures, found.paused_because, found.cache.paused) == (0, None, False)


def test_how_long_refreshes_take(store, cache, now):
    assert schedule(store, cache).usual_seconds == 0
    for seconds in (50, 4, 9, 3, 2, 1):
        ask(store, cache, now)
        publish(store, claim(store, now), now + timedelta(seconds=seconds))
    assert schedule(store, cache).usual_seconds == 9, "the longest of the last five"


def test_times_by_the_databases_clock(store, cache):
    store.queue.request(cache.id, why="asked")
    run = store.queue.claim("w1", lease_seconds=20)
    lease = store.refreshes.lease(cache.id)
    assert lease.expires_at - run.started_at == timedelta(seconds=20)
    assert store.queue.requeue_abandoned() == 0
    renewed = store.refreshes.renew_lease(cache.id, 1, now=None, lease_seconds=60)
    assert renewed.expires_at > lease.expires_at
    done = store.refreshes.finish_unchanged(run.id, 1, now=None)
    assert done.finished_at >= run.started_at


def test_many_workers_take_each_refresh_once(metastore_url, now, new_cache):
    with open_metastore(metastore_url) as store:
        caches = [store.caches.create(new_cache(f"c{i}"), now=now) for i in range(12)]
        for cache in caches:
            ask(store, cache, now)
    taken: list[str] = []

    def work(name: str) -> None:
        with open_metastore(metastore_url) as mine:
            while (run := claim(mine, now, holder=name)) is not None:
                taken.append(run.cache_id)

    threads = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(cache.id for cache in caches)


def test_schedules_of_some_caches_are_those_among_all(store, now, new_cache):
    caches = [store.caches.create(new_cache(n), now=now) for n in ("a", "b", "c")]
    ask(store, caches[0], now)
    publish(store, claim(store, now), now)
    ask(store, caches[1], now)
    claim(store, now)
    ask(store, caches[2], now)
    for chosen in ([], [caches[1]], caches[:2], caches):
        ids = {c.id for c in chosen}
        wanted = tuple(s for s in store.schedules.all() if s.cache.id in ids)
        assert store.schedules.all(ids) == wanted and len(wanted) == len(chosen)
    assert store.schedules.of(caches[0].id).last.state is RunState.PUBLISHED
    assert store.schedules.of("gone") is None


def test_a_schedule_that_cannot_be_read_holds_up_its_own_cache_alone(store, now, new_cache):
    """A time zone of a newer tzdata, or a trigger of another release."""
    odd = {
        "moon": {"kind": "CRON", "expression": "0 6 * * *", "time_zone": "Moon/Tranquility"},
        "later": {"kind": "WHENEVER"},
    }
    odd["good"] = {"kind": "EVERY", "seconds": 60}
    made = {
        n: store.caches.create(new_cache(n, refresh=RefreshPolicy(trigger_of(t))), now=now)
        for n, t in odd.items()
    }
    good = made.pop("good")
    assert [w.cache_id for w in ask_for_due(store).wanted] == [good.id]
    assert [w.cache_id for w in ask_for_due(store).wanted] == []
    for name, cache in made.items():
        found = schedule(store, cache)
        assert found.cache.paused and "cannot be read" in found.paused_because
        assert ("Moon/Tranquility" in found.paused_because) is (name == "moon")


def test_the_mode_that_was_asked_for_outlives_the_worker(store, cache, now):
    ask(store, cache, now, mode="FULL")
    run = claim(store, now)
    store.refreshes.update(run.id, run.fencing_token, mode="UNCHANGED")
    assert store.queue.hand_over(run.id, by="w1", now=now)
    (waiting,) = store.queue.waiting()
    assert waiting.mode == "FULL"


def test_a_second_request_with_another_mode_is_not_swallowed(store, cache, now):
    first = ask(store, cache, now)
    assert ask(store, cache, now, mode="INCREMENTAL").mode == "INCREMENTAL"
    again = ask(store, cache, now, mode="FULL")
    assert again.id == first.id and again.mode == "FULL"
    assert ask(store, cache, now, mode="AUTO").mode == "FULL", "it does what AUTO would"
    assert ask(store, cache, now).mode == "FULL"


def test_what_is_due_is_asked_for_at_once_in_its_order(store, now, new_cache):
    caches = [store.caches.create(new_cache(f"c{i}"), now=now) for i in range(450)]
    gone, waits, moved, *others = caches
    store.caches.drop(gone.id, now=now)
    ask(store, waits, now - timedelta(days=1))
    due = [DueRefresh(c.id, f"why {c.name}", 0) for c in (*reversed(others), gone, waits, moved)]
    due[-2] = DueRefresh(waits.id, "again", 1)
    store.queue.request(moved.id, why="somebody was first", now=now - timedelta(days=2))
    asked = store.queue.request_due(due)
    assert set(asked) == {c.id for c in others}
    waiting = store.queue.waiting()
    assert [r.cache_id for r in waiting] == [
        moved.id,
        waits.id,
        *(c.id for c in reversed(others)),
    ]
    assert {r.id for r in waiting[2:]} == set(asked.values())
    assert {(r.origin, r.mode) for r in waiting[2:]} == {(Origin.SCHEDULE, None)}
    assert waiting[-1].why == f"why {others[0].name}"
    assert store.queue.request_due(due) == {}, "each schedule has moved on"


def test_a_look_that_remembers_sees_every_change(store, cache, metastore_url, now):
    def seen():
        with open_metastore(metastore_url) as anew:
            expected = anew.schedules.all()
        assert store.schedules.all() == expected
        return expected[0]

    seen()
    for step in range(3):
        ask(store, cache, now)
        assert seen().busy
        run = claim(store, now + timedelta(minutes=step))
        assert seen().last.state is RunState.RUNNING
        if step == 1:
            store.refreshes.fail(run.id, run.fencing_token, "[X] no", now=now)
        else:
            publish(store, run, now + timedelta(minutes=step, seconds=7))
        assert seen().last.state is not RunState.RUNNING
    assert seen().usual_seconds == 7
    store.snapshots.note_damage(cache.id, run.id, "gone")
    assert seen().cache.damaged == "gone"
    store.schedules.note_behind({cache.id: now})
    store.schedules.note_failure(cache.id, failures=2, retry_at=now, paused_because="why")
    assert seen().cache.paused and seen().paused_because == "why"
    found = store.caches.get(cache.id)
    store.caches.update(
        cache.id, found.version, now=now, paused=False, refresh=RefreshPolicy(Every(60))
    )
    assert seen().cache.spec.refresh == RefreshPolicy(Every(60))
    store.grants.add(cache.id, "ann")
    assert seen().cache.narrowed


def test_since_when_a_cache_fails_with_one_error(store, cache, now):
    def refreshed(minute, error=None):
        moment = now + timedelta(minutes=minute)
        ask(store, cache, moment)
        run = claim(store, moment)
        if error is None:
            publish(store, run, moment)
        else:
            store.refreshes.fail(run.id, run.fencing_token, f"[{error}] …", now=moment)
        return store.refreshes.failing_since(cache.id, "LOST")

    assert store.refreshes.failing_since(cache.id, "LOST") is None
    assert refreshed(1, "LOST") == now + timedelta(minutes=1)
    assert refreshed(2, "LOST") == now + timedelta(minutes=1)
    assert refreshed(3, "OTHER") is None
    assert refreshed(4, "LOST") == refreshed(5, "LOST") == now + timedelta(minutes=4)
    assert refreshed(6) is None
    assert refreshed(7, "LOST") == now + timedelta(minutes=7)
