"""Statements of the service: submitted once, taken once, ended by who holds them, given up; on both
databases."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from cachemgr.errors import ConflictError, LeaseLostError, NotFoundError, TooManyError
from cachemgr.metastore import open_metastore
from tests.metastore.statement_steps import (
    CANCELED,
    FAILED,
    FINISHED,
    HOUR,
    PENDING,
    RUNNING,
    UNKNOWN,
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

# submitting


def test_what_was_asked_is_kept(store, now):
    request = asked(
        key="k",
        catalog="spark_catalog",
        schema_name="sales",
        settings={"spark.sql.ansi.enabled": "false"},
        options={"max_rows": 5},
        timeout_seconds=1.5,
    )
    found, is_new = store.statements.submit(request, most_waiting=1, now=now)
    assert is_new and (found.asked, found.state, found.created_at) == (request, PENDING, now)
    assert (found.attempts, found.fencing_token, found.reads_only) == (0, 0, None)
    assert store.statements.get(found.id) == found
    assert store.statements.get("nothing") is None


def test_each_has_a_secret_that_is_not_shown(store, now):
    first, second = submit(store, now), submit(store, now)
    assert len(bytes.fromhex(first.secret)) == 32 and first.secret != second.secret
    assert first.secret not in repr(first)


def test_a_key_gives_its_statement_however_it_stands(store, now):
    first = submit(store, now, asked(key="k"))
    assert store.statements.submit(asked(key="k"), most_waiting=0, now=now) == (first, False)
    done = finish(store, claim(store, now), now)
    assert store.statements.submit(asked(key="k"), most_waiting=0, now=now) == (done, False)
    (gone,) = store.statements.expire(now + HOUR)
    assert store.statements.submit(asked(key="k"), most_waiting=0, now=now) == (gone, False)


def test_a_key_is_for_one_request(store, now):
    first = submit(store, now, asked(key="k"))
    with pytest.raises(ConflictError, match=first.id) as caught:
        submit(store, now, asked(key="k", request="r2"))
    assert caught.value.code == "STATEMENT_KEY_USED"
    assert submit(store, now, asked("bob", key="k", request="r2")).id != first.id
    assert submit(store, now, asked(key="l")).id != first.id
    assert submit(store, now).id != submit(store, now).id, "without a key each is a new one"


def test_no_more_wait_than_may(store, now):
    for _ in range(2):
        submit(store, now, most_waiting=2)
    with pytest.raises(TooManyError, match="ann") as caught:
        submit(store, now, most_waiting=2)
    assert caught.value.code == "TOO_MANY_STATEMENTS"
    submit(store, now + seconds(1), asked("bob"), most_waiting=1)
    claim(store, now)
    assert submit(store, now, most_waiting=2), "one that runs does not wait"


def test_sent_twice_at_once_it_is_one_statement(store, metastore_url):
    for turn in range(5):
        request = asked(key=f"k{turn}")
        send = [lambda s, r=request: s.submit(r, most_waiting=100)] * 3
        answers = at_once(metastore_url, *send)
        assert len({found.id for found, _ in answers}) == 1
        assert sorted(is_new for _, is_new in answers) == [False, False, True]
    assert len(store.statements.of("ann", limit=100)) == 5


def test_submitted_at_once_no_more_wait_than_may(store, metastore_url):
    def send(statements):
        try:
            return statements.submit(asked(), most_waiting=2)[1]
        except TooManyError:
            return False

    assert sorted(at_once(metastore_url, *[send] * 5)) == [False] * 3 + [True] * 2
    assert len(store.statements.of("ann", limit=9)) == 2


# looking up


def test_the_newest_first_page_by_page(store, now):
    mine = [submit(store, now + seconds(n // 2), asked()) for n in range(5)]
    other = submit(store, now, asked("bob"))
    newest = sorted(mine, key=lambda s: (s.created_at, s.id), reverse=True)
    seen, before = [], None
    while page := store.statements.of("ann", limit=2, before=before):
        seen += page
        before = (page[-1].created_at, page[-1].id)
    assert seen == newest
    assert set(s.id for s in store.statements.of(None, limit=9)) == {
        other.id, *(s.id for s in mine)
    }  # fmt: skip
    run = claim(store, now)
    assert store.statements.of(None, state=RUNNING, limit=9) == (run,)


def test_how_those_stand_whose_folders_are_there(store, now):
    done, waiting = finished(store, now), submit(store, now)
    many = [f"{n:032x}" for n in range(450)]
    assert store.statements.states([*many, done.id, waiting.id]) == {
        done.id: FINISHED,
        waiting.id: PENDING,
    }
    assert store.statements.states([]) == {}


# running


def test_first_come_first_served(store, now):
    waiting = [submit(store, now + seconds(n), asked(p)) for n, p in enumerate("bab")]
    runs = [claim(store, now + seconds(9), holder=f"w{n}") for n in range(3)]
    assert [run.id for run in runs] == [s.id for s in waiting]
    assert [run.holder for run in runs] == ["w0", "w1", "w2"]
    run = runs[0]
    assert (run.state, run.fencing_token, run.attempts) == (RUNNING, 1, 1)
    assert (run.started_at, run.lease_until) == (now + seconds(9), now + seconds(29))
    assert claim(store, now) is None


def test_some_are_left_to_others(store, now):
    first, second = submit(store, now), submit(store, now + seconds(1))
    assert claim(store, now, leaving=[first.id]).id == second.id


def test_of_a_principal_no_more_run_than_may(store, now):
    for n, principal in enumerate(["ann", "ann", "bob"]):
        submit(store, now + seconds(n), asked(principal))
    mine = claim(store, now, most_running_each=1)
    assert mine.principal == "ann"
    assert claim(store, now, most_running_each=1).principal == "bob"
    assert claim(store, now, most_running_each=1) is None
    finish(store, mine, now)
    assert claim(store, now, most_running_each=1).principal == "ann"


def test_taken_at_once_each_is_taken_once(store, metastore_url):
    ids = {submit(store, None).id for _ in range(8)}

    def take(statements):
        return [
            run.id
            for _ in range(4)
            if (run := statements.claim("w", lease_seconds=60, most_running_each=99))
        ]

    taken = [one for some in at_once(metastore_url, *[take] * 2) for one in some]
    assert len(taken) == 8 and set(taken) == ids


def test_taken_at_once_no_more_of_a_principal_run_than_may(store, metastore_url):
    for _ in range(5):
        for _ in range(4):
            submit(store, None, most_waiting=99)
        taken = at_once(
            metastore_url,
            *[lambda s: s.claim("w", lease_seconds=60, most_running_each=2)] * 4,
        )
        runs = [run for run in taken if run]
        assert len(runs) == 2
        for run in runs:
            finish(store, run, None)


@pytest.mark.postgres
def test_one_that_somebody_has_locked_is_passed_over(postgres_metastore_url, now):
    with open_metastore(postgres_metastore_url) as store:
        first, second = submit(store, now), submit(store, now + seconds(1))
        with store.engine.begin() as other:
            other.execute(text(f"SELECT 1 FROM statements WHERE id = '{first.id}' FOR UPDATE"))
            assert claim(store, now).id == second.id


def test_kept_for_longer(store, now):
    run = running(store, now)
    renewed = store.statements.renew(
        run.id, run.fencing_token, lease_seconds=20, now=now + seconds(15)
    )
    assert renewed.statement.lease_until == now + seconds(35) and renewed.at == now + seconds(15)
    assert not renewed.cancel_requested and not renewed.is_timed_out
    assert recover(store, now + seconds(34)) == ()
    assert [s.id for s in recover(store, now + seconds(35))] == [run.id]


def test_whoever_renews_hears_of_the_cancelling_and_of_the_time(store, now):
    run = running(store, now)

    def renew(at):
        return store.statements.renew(run.id, run.fencing_token, lease_seconds=20, now=at)

    assert not renew(now + seconds(599)).is_timed_out
    late = renew(now + seconds(600))
    assert late.is_timed_out and late.statement.times_out_at == now + seconds(600)
    assert not late.cancel_requested
    store.statements.cancel(run.id, by="ann", now=now)
    assert renew(now).cancel_requested


def test_what_analysing_found_is_noted(store, now):
    run = running(store, now, reads_only=True)
    found = store.statements.get(run.id)
    assert found.reads_only is True and not found.handed_over
    store.statements.handed_over(run.id, run.fencing_token)
    assert store.statements.get(run.id).handed_over


# ending


def test_a_result_is_kept_for_its_time(store, now):
    run = running(store, now)
    result = {"bytes": 3_000_000_000, "rows": 7, "files": ["a", "b"], "folder": "f"}
    end = now + seconds(5)
    done = store.statements.finish(
        run.id, run.fencing_token, result=result, hits=["by_shop"], now=end
    )
    assert (done.state, done.result, done.hits) == (FINISHED, result, ("by_shop",))
    assert (done.finished_at, done.expires_at) == (end, end + HOUR)
    assert (done.lease_until, done.error_code, done.error) == (None, None, None)
    assert store.statements.get(run.id) == done
    assert recover(store, now + HOUR) == () and claim(store, now) is None


@pytest.mark.parametrize(("canceled", "state"), [(False, FAILED), (True, CANCELED)])
def test_one_without_a_result(store, now, canceled, state):
    run = running(store, now)
    failed = store.statements.fail(
        run.id, run.fencing_token, code="FORBIDDEN", error="not granted", canceled=canceled, now=now
    )
    assert (failed.state, failed.finished_at, failed.expires_at) == (state, now, None)
    assert (failed.error_code, failed.error) == ("FORBIDDEN", "not granted")
    assert store.statements.get(run.id) == failed and failed.result is None


WITH_TOKEN = {
    "renew": lambda s, i, t: s.renew(i, t, lease_seconds=20),
    "analysed": lambda s, i, t: s.analysed(i, t, reads_only=True),
    "handed_over": lambda s, i, t: s.handed_over(i, t),
    "finish": lambda s, i, t: s.finish(i, t, result={"bytes": 1}),
    "fail": lambda s, i, t: s.fail(i, t, code="X", error="x"),
    "release": lambda s, i, t: s.release(i, t),
}


@pytest.mark.parametrize("how", WITH_TOKEN)
@pytest.mark.parametrize("why", ["waits", "again", "over", "forgotten"])
def test_nothing_is_noted_for_a_void_token(store, now, how, why):
    run = running(store, now)
    if why == "over":
        store.statements.fail(run.id, run.fencing_token, code="X", error="x", now=now)
    elif why == "forgotten":
        store.statements.fail(run.id, run.fencing_token, code="X", error="x", now=now)
        store.statements.forget(now + HOUR)
    else:
        recover(store, now + seconds(20))
        if why == "again":
            assert claim(store, now, holder="w2").fencing_token == 2
    before = store.statements.get(run.id)
    with pytest.raises(LeaseLostError, match=run.id) as caught:
        WITH_TOKEN[how](store.statements, run.id, run.fencing_token)
    assert caught.value.code == "LEASE_LOST"
    assert store.statements.get(run.id) == before


@pytest.mark.parametrize("how", WITH_TOKEN)
def test_whoever_has_not_lost_the_lease_still_holds_it_past_its_time(store, now, how):
    run = running(store, now)
    WITH_TOKEN[how](store.statements, run.id, run.fencing_token)
    assert store.statements.get(run.id) != run


def test_finished_and_recovered_at_once_it_is_one_of_both(store, metastore_url):
    for _ in range(10):
        submit(store, None)
        run = claim(store, None, lease_seconds=-1)

        def publish(statements, run=run):
            try:
                return statements.finish(run.id, 1, result={"bytes": 1}).state
            except LeaseLostError:
                return None

        state, lost = at_once(metastore_url, publish, lambda s: s.recover(most_attempts=1))
        now_is = store.statements.get(run.id).state
        assert (state, bool(lost), now_is) in {(FINISHED, False, FINISHED), (None, True, FAILED)}


# cancelling


def test_one_that_waits_is_cancelled_at_once(store, now):
    waiting = submit(store, now)
    gone = store.statements.cancel(waiting.id, by="root", now=now + seconds(2))
    assert (gone.state, gone.finished_at) == (CANCELED, now + seconds(2))
    assert (gone.error_code, gone.cancel_requested_by) == ("STATEMENT_CANCELED", "root")
    assert "root" in gone.error
    assert claim(store, now) is None


def test_one_that_runs_is_told_to_stop(store, now):
    run = running(store, now)
    told = store.statements.cancel(run.id, by="ann", now=now)
    assert (told.state, told.cancel_requested, told.cancel_requested_by) == (RUNNING, True, "ann")
    again = store.statements.cancel(run.id, by="bob", now=now)
    assert again == told, "who was first is kept"
    assert finish(store, run, now).state is FINISHED, "it was done before it heard of that"


def test_what_is_over_cannot_be_cancelled(store, now):
    done = finished(store, now)
    with pytest.raises(ConflictError, match="FINISHED") as caught:
        store.statements.cancel(done.id, by="ann", now=now)
    assert caught.value.code == "STATEMENT_OVER"
    with pytest.raises(NotFoundError) as caught:
        store.statements.cancel("nothing", by="ann", now=now)
    assert caught.value.code == "STATEMENT_NOT_FOUND"


def test_cancelled_and_taken_at_once_it_is_told_to_stop_or_never_begins(store, metastore_url):
    for _ in range(10):
        waiting = submit(store, None)
        canceled, run = at_once(
            metastore_url,
            lambda s, i=waiting.id: s.cancel(i, by="ann"),
            lambda s: s.claim("w", lease_seconds=60, most_running_each=99),
        )
        if canceled.state is CANCELED:
            assert run is None and store.statements.get(waiting.id).state is CANCELED
        else:
            assert canceled.state is RUNNING and canceled.fencing_token == run.fencing_token
            assert store.statements.get(waiting.id).cancel_requested
            finish(store, run, None)


# lost and given back


@pytest.mark.parametrize("canceled", [False, True])
@pytest.mark.parametrize(
    ("reads_only", "handed_over", "may_have_written"),
    [
        (None, False, False),
        (None, True, True),
        (True, False, False),
        (True, True, False),
        (False, False, False),
        (False, True, True),
    ],
)
@pytest.mark.parametrize("how", ["recover", "release"])
def test_what_becomes_of_one_without_its_process(
    store, now, how, reads_only, handed_over, may_have_written, canceled
):
    run = running(store, now, reads_only, handed_over)
    if canceled:
        store.statements.cancel(run.id, by="ann", now=now)
    late = now + seconds(20)
    if how == "recover":
        (left,) = recover(store, late)
    else:
        left = store.statements.release(run.id, run.fencing_token, now=late)
    assert left == store.statements.get(run.id)
    if may_have_written:
        assert (left.state, left.error_code, left.finished_at) == (UNKNOWN, "OWNER_LOST", late)
        assert "w1" in left.error
    elif canceled:
        assert (left.state, left.error_code) == (CANCELED, "STATEMENT_CANCELED")
        assert "ann" in left.error and left.cancel_requested_by == "ann"
    else:
        assert (left.state, left.started_at, left.lease_until) == (PENDING, None, None)
        assert (left.reads_only, left.handed_over) == (None, False), "it is analysed again"
        assert left.attempts == (1 if how == "recover" else 0)
        again = claim(store, late, holder="w2")
        assert (again.id, again.fencing_token, again.holder) == (run.id, 2, "w2")


def test_one_whose_lease_lasts_is_left_alone(store, now):
    run = running(store, now)
    assert recover(store, now + seconds(19)) == ()
    assert store.statements.get(run.id) == run


def test_one_that_waits_again_keeps_its_place(store, now):
    first = running(store, now)
    submit(store, now + seconds(1))
    recover(store, now + seconds(20))
    assert claim(store, now + seconds(20)).id == first.id


def test_one_that_was_lost_too_often_fails(store, now):
    run = running(store, now, True, True)
    for _ in range(2):
        now += seconds(20)
        assert recover(store, now)[0].state is PENDING
        run = claim(store, now)
    store.statements.release(run.id, run.fencing_token, now=now)
    run = claim(store, now)
    assert run.attempts == 3, "one that was given back does not count"
    (failed,) = recover(store, now + seconds(20))
    assert (failed.state, failed.error_code) == (FAILED, "OWNER_LOST")
    assert claim(store, now) is None


def test_recovered_at_once_each_is_recovered_once(store, metastore_url):
    for _ in range(4):
        submit(store, None)
        claim(store, None, lease_seconds=-1)
    found = at_once(metastore_url, *[lambda s: s.recover(most_attempts=3)] * 3)
    assert len([s.id for some in found for s in some]) == 4
