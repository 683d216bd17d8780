"""The steps of statements of the service, as the tests take them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from cachemgr.metastore import open_metastore
from cachemgr.metastore.statement_records import StatementRequest
from cachemgr.vocabulary import StatementState

PENDING, RUNNING, FINISHED, FAILED, CANCELED, EXPIRED, UNKNOWN = StatementState
HOUR = timedelta(hours=1)


def seconds(n: float) -> timedelta:
    return timedelta(seconds=n)


def asked(principal="ann", key=None, request="r1", **more) -> StatementRequest:
    values = {"text": "SELECT 1", "timeout_seconds": 600, "keep_seconds": 3600}
    return StatementRequest(principal, request, key=key, **{**values, **more})


def submit(store, now, request=None, most_waiting=10):
    return store.statements.submit(request or asked(), most_waiting=most_waiting, now=now)[0]


def claim(store, now, holder="w1", lease_seconds=20, most_running_each=10, **more):
    return store.statements.claim(
        holder, lease_seconds=lease_seconds, most_running_each=most_running_each, now=now, **more
    )


def finish(store, run, now, size=10, **more):
    return store.statements.finish(
        run.id, run.fencing_token, result={"bytes": size, "rows": 1}, now=now, **more
    )


def recover(store, now, most_attempts=3):
    return store.statements.recover(most_attempts=most_attempts, now=now)


def running(store, now, reads_only=None, handed_over=False, **more):
    """A statement that runs, analysed and handed over as said."""
    submit(store, now)
    run = claim(store, now, **more)
    if reads_only is not None:
        store.statements.analysed(run.id, run.fencing_token, reads_only=reads_only)
    if handed_over:
        store.statements.handed_over(run.id, run.fencing_token)
    return run


def finished(store, now, **more):
    submit(store, now, asked(**more))
    return finish(store, claim(store, now), now)


def at_once(url, *jobs):
    """What several threads, each with a metastore of its own, get when they begin together."""
    gate = threading.Barrier(len(jobs))

    def work(job):
        with open_metastore(url) as mine:
            gate.wait()
            return job(mine.statements)

    with ThreadPoolExecutor(len(jobs)) as threads:
        return [done.result() for done in [threads.submit(work, job) for job in jobs]]
