"""How statements that write end, whatever happens while Spark has them: by what the table's log
says, and never as not written what may be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from cachemgr.errors import CacheManagerError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.statement_records import StatementRecord, StatementRequest
from cachemgr.metastore.store import Metastore
from cachemgr.results.folders import Results
from cachemgr.vocabulary import StatementState
from cachemgr.worker import settling, statements
from cachemgr.worker.settling import without_rows
from cachemgr.worker.statements import Finished, StatementWorker
from tests.processes import until

INTO = {"table": "t", "place": "file:/t", "after": 7, "places": ["file:/t"]}
FINISHED, FAILED, CANCELED = (
    StatementState.FINISHED,
    StatementState.FAILED,
    StatementState.CANCELED,
)
UNKNOWN, PENDING = StatementState.UNKNOWN, StatementState.PENDING


@dataclass
class Spark:
    """A Spark that writes when it is told to, and whose log tells what it is told."""

    log: int | CacheManagerError | None = None
    lost: bool = False
    ends: Callable[[], None] = lambda: None
    has_it: threading.Event = field(default_factory=threading.Event)
    interrupted: threading.Event = field(default_factory=threading.Event)
    before: Callable[[], None] = lambda: None

    def prepare(self) -> None:
        pass

    def run(self, statement: StatementRecord, noted: Any) -> Finished:
        noted.analysed(reads_only=False)
        self.before()
        noted.handed_over(INTO)
        self.has_it.set()
        self.ends()
        return Finished(without_rows(statement.fencing_token, INTO, 8))

    def interrupt(self, statement_id: str) -> None:
        self.interrupted.set()

    def written(self, statement_id: str, into: Any) -> int | None:
        assert into == INTO
        if isinstance(self.log, CacheManagerError):
            raise self.log
        return self.log

    def is_lost(self) -> bool:
        return self.lost


@dataclass
class World:
    store: Metastore
    results: Results
    spark: Spark

    def worker(self, lease_seconds: float = 20) -> StatementWorker:
        return StatementWorker(
            self.store, self.results, self.spark, holder="w1", lease_seconds=lease_seconds
        )

    def submit(self, seconds: float = 600) -> str:
        request = StatementRequest("ann", "r", "INSERT", seconds, 3600)
        return self.store.statements.submit(request, most_waiting=9)[0].id

    def now(self, statement_id: str) -> StatementRecord:
        found = self.store.statements.get(statement_id)
        assert found is not None
        return found

    def over(self, worker: StatementWorker, statement_id: str) -> StatementRecord:
        """A statement once it is over, its worker looking after it."""

        def is_over() -> bool:
            worker.keep()
            return self.now(statement_id).state.is_over

        until(is_over, 20, "it is over", 0.02)
        return self.now(statement_id)


@pytest.fixture
def world(tmp_path: Any) -> Iterator[World]:
    with open_metastore(f"sqlite:///{tmp_path / 'metastore.db'}") as store:
        yield World(store, Results(str(tmp_path / "results")), Spark())


def fails() -> None:
    raise CacheManagerError("SPARK_SAYS", "it failed")


FOUND: dict[str, tuple[Any, StatementState, int | None]] = {
    "not written": (None, FAILED, None),
    "written": (8, FINISHED, 8),
    "not to be told": (CacheManagerError("LOG", "away"), UNKNOWN, None),
}


def test_one_that_ends_as_it_should(world: World) -> None:
    statement_id = world.submit()
    worker = world.worker()
    worker.take()
    found = world.over(worker, statement_id)
    assert (found.state, found.handed_over, found.reads_only) == (FINISHED, True, False)
    assert found.result == without_rows(1, INTO, 8)


@pytest.mark.parametrize("what", FOUND)
def test_one_that_fails(world: World, what: str) -> None:
    world.spark.log, state, version = FOUND[what]
    world.spark.ends = fails
    statement_id = world.submit()
    worker = world.worker()
    worker.take()
    found = world.over(worker, statement_id)
    assert (found.state, (found.result or {}).get("version")) == (state, version)
    if state is FAILED:
        assert (found.error_code, found.error) == ("SPARK_SAYS", "it failed")
    if state is UNKNOWN:
        assert "it failed" in str(found.error) and statement_id in str(found.error)
    assert worker.take() == 0, "it is not run again"


@pytest.mark.parametrize("what", FOUND)
@pytest.mark.parametrize("why", ["cancelled", "late"])
def test_one_that_is_ended(world: World, why: str, what: str) -> None:
    world.spark.log, state, version = FOUND[what]

    def ends() -> None:
        assert world.spark.interrupted.wait(20)
        fails()

    world.spark.ends = ends
    statement_id = world.submit(0.05 if why == "late" else 600)
    worker = world.worker()
    worker.take()
    assert world.spark.has_it.wait(20)
    if why == "cancelled":
        world.store.statements.cancel(statement_id, by="olga")
    found = world.over(worker, statement_id)
    expected = CANCELED if state is FAILED and why == "cancelled" else state
    assert (found.state, (found.result or {}).get("version")) == (expected, version)
    code = "STATEMENT_CANCELED" if why == "cancelled" else "STATEMENT_TIMED_OUT"
    ends_with = {FINISHED: None, UNKNOWN: "OWNER_LOST"}
    assert found.error_code == ends_with.get(state, code)


def test_one_that_commits_before_it_is_interrupted(world: World) -> None:
    world.spark.ends = lambda: world.spark.interrupted.wait(20) and None
    statement_id = world.submit()
    worker = world.worker()
    worker.take()
    assert world.spark.has_it.wait(20)
    world.store.statements.cancel(statement_id, by="ann")
    assert world.over(worker, statement_id).state is FINISHED


def test_one_that_is_cancelled_before_spark_has_it_never_runs(world: World) -> None:
    worker = world.worker()
    statement_id = world.submit()

    def cancel() -> None:
        world.store.statements.cancel(statement_id, by="ann")
        worker.keep()

    world.spark.before = cancel
    worker.take()
    found = world.over(worker, statement_id)
    assert (found.state, found.handed_over) == (CANCELED, False)
    assert not world.spark.has_it.is_set()


def test_one_whose_commit_does_not_end_is_given_up_late(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(statements, "_COMMIT_SECONDS", 1.0)
    go_on = threading.Event()
    world.spark.ends = lambda: go_on.wait(20) and None
    world.spark.log = 8
    statement_id = world.submit(0.05)
    worker = world.worker()
    worker.take()
    assert world.spark.has_it.wait(20)
    began = time.monotonic()
    found = world.over(worker, statement_id)
    assert found.state is UNKNOWN and time.monotonic() - began > 0.9
    assert "still executes it" in str(found.error)
    go_on.set()
    until(lambda: world.now(statement_id).state is FINISHED, 20, "it is settled")


def test_one_whose_spark_is_lost(world: World) -> None:
    world.spark.ends = fails
    world.spark.lost = True
    statement_id = world.submit()
    worker = world.worker()
    worker.take()
    found = world.over(worker, statement_id)
    assert found.state is UNKNOWN and "Spark" in str(found.error)


@pytest.mark.parametrize("log", [None, 8])
def test_one_whose_process_is_stopped(world: World, log: int | None) -> None:
    world.spark.log = log

    def ends() -> None:
        assert world.spark.interrupted.wait(20)
        fails()

    world.spark.ends = ends
    statement_id = world.submit()
    worker = world.worker()
    worker.take()
    assert world.spark.has_it.wait(20)
    assert worker.stop(0) == ()
    found = world.now(statement_id)
    assert found.state is (FAILED if log is None else FINISHED)
    assert log is not None or "nothing of it was written" in str(found.error)


def test_what_is_unknown_is_looked_for_until_it_is_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "_LOOK_SECONDS", 0.0)
    statement_id = world.submit()
    taken = world.store.statements.claim("gone", lease_seconds=0, most_running_each=9)
    assert taken is not None
    at = (statement_id, taken.fencing_token)
    world.store.statements.analysed(*at, reads_only=False)
    world.store.statements.handed_over(*at, into=INTO)
    worker = world.worker()
    for log in (None, CacheManagerError("LOG", "away")):
        world.spark.log = log
        worker.recover()
        assert world.now(statement_id).state is UNKNOWN
        assert worker.take() == 0
    world.spark.log = 9
    worker.recover()
    found = world.now(statement_id)
    assert (found.state, found.result) == (FINISHED, without_rows(1, INTO, 9))


def test_one_that_was_lost_before_spark_had_it_is_run_again(world: World) -> None:
    statement_id = world.submit()
    taken = world.store.statements.claim("gone", lease_seconds=0, most_running_each=9)
    assert taken is not None
    world.store.statements.analysed(statement_id, taken.fencing_token, reads_only=False)
    worker = world.worker()
    worker.recover()
    assert world.now(statement_id).state is PENDING
    worker.take()
    assert world.over(worker, statement_id).state is FINISHED
