"""Statements that write: run once, and what is known of one whose process is gone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cachemgr.errors import ConflictError, LeaseLostError
from cachemgr.metastore.statement_records import commit_mark
from tests.metastore.statement_steps import (
    CANCELED,
    EXPIRED,
    FINISHED,
    HOUR,
    PENDING,
    RUNNING,
    UNKNOWN,
    asked,
    claim,
    finish,
    recover,
    running,
    seconds,
    submit,
)

INTO = {"table": "sales.orders", "place": "file:/t", "after": 7, "places": ["file:/t"]}
DONE = {"table": "sales.orders", "version": 8, "bytes": 0, "rows": 0, "files": 0}


def writing(store, now, **more):
    """A statement that Spark is about to execute."""
    run = running(store, now, reads_only=False, **more)
    store.statements.handed_over(run.id, run.fencing_token, into=INTO)
    return store.statements.get(run.id)


def test_what_it_writes_to_is_noted(store, now):
    run = writing(store, now)
    assert (run.state, run.handed_over, run.result) == (RUNNING, True, INTO)
    done = finish(store, run, now)
    assert done.result == {"bytes": 10, "rows": 1}


@pytest.mark.parametrize("how", ["recover", "release", "lose"])
def test_one_without_its_process_says_where_to_look(store, now, how):
    run = writing(store, now)
    if how == "recover":
        (left,) = recover(store, now + seconds(20))
    elif how == "release":
        left = store.statements.release(run.id, run.fencing_token, now=now)
    else:
        left = store.statements.lose(run.id, run.fencing_token, why="Spark ended", now=now)
    assert (left.state, left.error_code, left.result) == (UNKNOWN, "OWNER_LOST", INTO)
    assert "sales.orders" in left.error and commit_mark(run.id) in left.error
    assert claim(store, now + seconds(30)) is None, "it is never run again"
    with pytest.raises(LeaseLostError):
        finish(store, run, now)


def test_one_that_was_analysed_alone_is_run_again(store, now):
    run = running(store, now, reads_only=False)
    (left,) = recover(store, now + seconds(20))
    assert (left.state, left.result) == (PENDING, None)
    assert claim(store, now + seconds(20)).id == run.id


def test_what_is_unknown_is_settled_once(store, now):
    run = writing(store, now)
    recover(store, now + seconds(20))
    (found,) = store.statements.unsettled(now)
    assert (found.id, found.result) == (run.id, INTO)
    assert store.statements.unsettled(now + seconds(20)) == ()
    late = now + HOUR
    settled = store.statements.settle(run.id, result=DONE, now=late)
    assert (settled.state, settled.result, settled.error, settled.error_code) == (
        FINISHED, DONE, None, None,
    )  # fmt: skip
    assert settled.expires_at == late + timedelta(seconds=settled.asked.keep_seconds)
    assert store.statements.unsettled(now) == ()
    again = store.statements.settle(run.id, result={**DONE, "version": 9}, now=late)
    assert again == settled


def test_what_is_over_otherwise_is_not_settled(store, now):
    run = submit(store, now)
    store.statements.cancel(run.id, by="ann", now=now)
    assert store.statements.settle(run.id, result=DONE, now=now).state is CANCELED


def test_one_of_which_nothing_is_known_is_not_looked_for(store, now):
    running(store, now, reads_only=False, handed_over=True)
    recover(store, now + seconds(20))
    assert store.statements.unsettled(now) == ()


def test_who_reads_a_write_that_has_expired_is_not_told_to_write_again(store, now):
    run = writing(store, now)
    finish(store, run, now)
    (gone,) = store.statements.expire(now + HOUR)
    assert gone.state is EXPIRED
    with pytest.raises(ConflictError, match="what it wrote is written"):
        store.statements.reading(run.id, until=now + HOUR, now=now + HOUR)


@pytest.mark.parametrize("end", ["finish", "lose", "expire"])
def test_its_key_stays_taken(store, now, end):
    request = asked(key="nightly")
    first = submit(store, now, request)
    run = claim(store, now)
    store.statements.analysed(run.id, run.fencing_token, reads_only=False)
    store.statements.handed_over(run.id, run.fencing_token, into=INTO)
    if end == "lose":
        store.statements.lose(run.id, run.fencing_token, why="Spark ended", now=now)
    else:
        finish(store, run, now)
    if end == "expire":
        store.statements.expire(now + HOUR)
    again = submit(store, now + HOUR, request)
    assert again.id == first.id and again.state.is_over
    assert claim(store, now + HOUR) is None
