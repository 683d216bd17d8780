"""What is left of statements that are over: read, expired, forgotten; and the clocks that say when;
on both databases."""

from __future__ import annotations

import pytest

from cachemgr.errors import ConflictError, NotFoundError
from tests.metastore.statement_steps import (
    EXPIRED,
    FINISHED,
    HOUR,
    asked,
    at_once,
    claim,
    finish,
    finished,
    recover,
    running,
    seconds,
    submit,
)


def test_expired_once_its_time_is_over(store, now):
    done = finished(store, now)
    assert store.statements.expire(now + HOUR - seconds(1)) == ()
    (gone,) = store.statements.expire(now + HOUR)
    assert (gone.id, gone.state, gone.result) == (done.id, EXPIRED, done.result)
    assert gone.asked == done.asked, "its text stays until it is forgotten"
    assert store.statements.get(done.id) == gone and store.statements.expire(now + HOUR) == ()


def test_so_many_expire_at_most_those_first_that_are_longest_over(store, now):
    ids = [finished(store, now + seconds(n)).id for n in range(3)]
    late = now + 2 * HOUR
    assert [s.id for s in store.statements.expire(late, most=2)] == ids[:2]
    assert [s.id for s in store.statements.expire(late, most=2)] == ids[2:]


def test_a_result_is_kept_while_it_is_read(store, now):
    done = finished(store, now)

    def read(at, until):
        return store.statements.reading(done.id, until=now + until, now=now + at).read_until - now

    assert read(seconds(0), HOUR / 2) == HOUR / 2
    assert store.statements.expire(now + HOUR - seconds(1)) == (), "not before its own time either"
    assert read(seconds(1), HOUR + seconds(60)) == HOUR + seconds(60)
    assert read(seconds(2), HOUR) == HOUR + seconds(60), "another reads it for longer"
    assert store.statements.expire(now + HOUR + seconds(59)) == ()
    assert read(HOUR + seconds(59), 5 * HOUR) == 2 * HOUR, "for twice its time at most"
    assert store.statements.expire(now + 2 * HOUR - seconds(1)) == ()
    with pytest.raises(ConflictError) as caught:
        read(2 * HOUR, 3 * HOUR)
    assert caught.value.code == "STATEMENT_EXPIRED"
    assert [s.id for s in store.statements.expire(now + 2 * HOUR)] == [done.id]


def test_what_has_expired_does_not_come_back(store, now):
    done = finished(store, now)
    with pytest.raises(ConflictError, match=done.id):
        store.statements.reading(done.id, until=now + 2 * HOUR, now=now + HOUR)
    store.statements.expire(now + HOUR)
    with pytest.raises(ConflictError) as caught:
        store.statements.reading(done.id, until=now + HOUR, now=now)
    assert caught.value.code == "STATEMENT_EXPIRED"
    assert store.statements.get(done.id).state is EXPIRED


def test_only_a_result_is_read(store, now):
    waiting = submit(store, now)

    def code(statement_id):
        with pytest.raises((ConflictError, NotFoundError)) as caught:
            store.statements.reading(statement_id, until=now + HOUR, now=now)
        return caught.value.code

    assert code("nothing") == "STATEMENT_NOT_FOUND"
    assert code(waiting.id) == "STATEMENT_NOT_FINISHED"
    run = claim(store, now)
    assert code(run.id) == "STATEMENT_NOT_FINISHED"
    store.statements.fail(run.id, run.fencing_token, code="X", error="x", now=now)
    assert code(run.id) == "STATEMENT_NOT_FINISHED"


def test_read_and_expired_at_once_it_is_one_of_both(store, metastore_url, now):
    moment = now + HOUR
    for _ in range(10):
        done = finished(store, now)

        def read(statements, done=done):
            try:
                # looks at the clock of a replica that was a moment earlier
                until = moment + seconds(60)
                return statements.reading(done.id, until=until, now=moment - seconds(1))
            except ConflictError:
                return None

        kept, gone = at_once(metastore_url, read, lambda s: s.expire(moment))
        assert bool(gone) is (kept is None)
        assert store.statements.get(done.id).state is (EXPIRED if gone else FINISHED)
        store.statements.expire(moment + HOUR)


def test_the_bytes_of_results_count_while_they_are_kept(store, now):
    assert store.statements.bytes_of("ann") == 0
    for size in (3_000_000_000, 2_000_000_000):
        submit(store, now)
        finish(store, claim(store, now), now, size=size)
    finished(store, now, principal="bob")
    running(store, now)
    assert store.statements.bytes_of("ann") == 5_000_000_000
    assert store.statements.bytes_of("bob") == 10
    store.statements.expire(now + HOUR)
    assert store.statements.bytes_of("ann") == 0


# forgetting


def test_what_is_over_is_forgotten_and_its_text_with_it(store, now):
    failed = running(store, now)
    store.statements.fail(failed.id, failed.fencing_token, code="X", error="x", now=now)
    canceled = submit(store, now + seconds(1))
    store.statements.cancel(canceled.id, by="ann", now=now + seconds(1))
    unknown = running(store, now, False, True, lease_seconds=2)
    recover(store, now + seconds(2))
    expired = finished(store, now + seconds(3))
    store.statements.expire(now + 2 * HOUR)
    later = running(store, now)
    store.statements.fail(later.id, later.fencing_token, code="X", error="x", now=now + seconds(9))
    assert store.statements.forget(now) == ()
    over = [failed.id, canceled.id, unknown.id, expired.id]
    assert [s.id for s in store.statements.forget(now + seconds(9), most=3)] == over[:3]
    assert [s.id for s in store.statements.forget(now + seconds(9), most=3)] == over[3:]
    assert [s.id for s in store.statements.of(None, limit=9)] == [later.id]


def test_what_is_not_over_or_kept_is_not_forgotten(store, now):
    kept = [finished(store, now).id, running(store, now).id, submit(store, now).id]
    assert store.statements.forget(now + 100 * HOUR) == ()
    assert {s.id for s in store.statements.of(None, limit=9)} == set(kept)


def test_the_key_of_a_forgotten_one_is_free(store, now):
    first = submit(store, now, asked(key="k"))
    store.statements.cancel(first.id, by="ann", now=now)
    store.statements.forget(now + HOUR)
    assert submit(store, now, asked(key="k", request="r2")).id != first.id


# clocks


def test_a_clock_that_was_set_back_for_a_while_ends_nothing_early(store, now):
    submit(store, now)
    run = claim(store, now - HOUR, lease_seconds=3 * 3600)
    assert run.started_at == now, "not before it was asked for"
    renewed = store.statements.renew(run.id, 1, lease_seconds=3600, now=now + seconds(5))
    assert not renewed.is_timed_out
    done = finish(store, run, now - HOUR)
    assert (done.finished_at, done.expires_at) == (now, now + HOUR)
    assert store.statements.expire(now + HOUR - seconds(1)) == ()


def test_moments_are_by_the_databases_clock(store):
    before = store.clock.now()
    run = running(store, None)
    after = store.clock.now()
    assert before <= run.created_at <= run.started_at <= after
    assert before + seconds(20) <= run.lease_until <= after + seconds(20)
    assert recover(store, None) == ()
    done = finish(store, run, None)
    assert after <= done.finished_at <= store.clock.now()
    assert store.statements.expire() == ()
    until = store.clock.now() + seconds(5)
    assert store.statements.reading(done.id, until=until).read_until == until


def test_a_result_can_be_given_up_before_its_time(store):
    waiting = submit(store, None)
    assert store.statements.unfinished([waiting.id, "nothing"]) == {waiting.id}

    def code():
        with pytest.raises(ConflictError) as caught:
            store.statements.discard(waiting.id)
        return caught.value.code

    assert code() == "STATEMENT_NOT_FINISHED"
    done = finish(store, claim(store, None), None)
    assert store.statements.unfinished([done.id]) == frozenset()
    assert store.statements.discard(done.id).state is EXPIRED
    assert code() == "STATEMENT_EXPIRED"
