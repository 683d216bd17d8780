"""Results whose time is over, and what is left behind of statements that have none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cachemgr.metastore.statement_records import StatementRequest
from cachemgr.results.folders import Results
from cachemgr.worker.expiry import Expiry


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(str(tmp_path / "results"))


def submitted(store, keep_seconds: float = 3600):
    asked = StatementRequest("ann", "r", "SELECT 1", 60, keep_seconds)
    return store.statements.submit(asked, most_waiting=10)[0]


def running(store, results: Results, **more):
    submitted(store, **more)
    run = store.statements.claim("w", lease_seconds=20, most_running_each=10)
    folder = results.make(run.id, run.fencing_token)
    with folder.create("part-0.parquet") as file:
        file.write(b"PAR1")
    return run


def finished(store, results: Results, **more):
    run = running(store, results, **more)
    return store.statements.finish(run.id, run.fencing_token, result={"bytes": 4})


def test_files_go_once_their_result_has_expired(store, results: Results) -> None:
    soon, later = finished(store, results, keep_seconds=0.2), finished(store, results)
    expiry = Expiry(store, results, history_days=30)
    time.sleep(0.3)
    expiry.look()
    assert results.statements() == {later.id: {1}}
    assert store.statements.get(soon.id).state == "EXPIRED"


def test_what_belongs_to_no_result_goes(store, results: Results) -> None:
    going_on, kept = running(store, results), finished(store, results)
    results.make(going_on.id, 0)  # of a run that was taken away
    results.make(kept.id, 7)
    results.make("unknown", 1)
    failed = running(store, results)
    store.statements.fail(failed.id, failed.fencing_token, code="X", error="x")
    expiry = Expiry(store, results, history_days=30)
    assert expiry.sweep() == 4
    assert results.statements() == {going_on.id: {1}, kept.id: {1}}
    # a task of the statement that failed wrote on meanwhile
    results.make(failed.id, 1)
    assert expiry.sweep() == 1 and expiry.sweep() == 0


def test_statements_that_are_long_over_are_forgotten(store, results: Results) -> None:
    failed = running(store, results)
    store.statements.fail(failed.id, failed.fencing_token, code="X", error="x")
    kept = finished(store, results)
    Expiry(store, results, history_days=1).look()
    assert store.statements.get(failed.id) is not None
    Expiry(store, results, history_days=0).look()
    assert store.statements.get(failed.id) is None and store.statements.get(kept.id) is not None
