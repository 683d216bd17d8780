"""Whoever runs a statement, serves it or reads it is killed at each step of one: its rows come
once, or it is said to have failed, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cachemgr.errors import CacheManagerError
from cachemgr.metastore import open_metastore
from cachemgr.results.client import Statement, StatementClient
from cachemgr.results.folders import Results
from cachemgr.roles import Role
from cachemgr.vocabulary import StatementState
from cachemgr.worker.expiry import Expiry
from tests.processes import Replica, replica_settings, replicas, until

STEPS = ("taken", "analysed", "writing", "written", "named", "finished")
ROWS = 30_000
IDS = list(range(ROWS - 1, -1, -1))
QUERY = f"SELECT id FROM range(0, {ROWS}, 1, 4) ORDER BY id DESC"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'metastore.db'}"


@pytest.fixture(scope="module")
def serve(folder: Path, url: str) -> Iterator[Replica]:
    with open_metastore(url) as store:
        token = store.tokens.create("ann", Role.VIEWER)[1]
    given = replica_settings(
        url, folder, [], results_location=str(folder / "results"), lease_seconds="3"
    )
    made = Replica("serve", folder, given, token, ("serve", "--no-scheduler"))
    with replicas(made):
        until(made.ready, 120, "the service is ready")
        yield made


def worker(serve: Replica, name: str, step: str = "") -> Replica:
    """A process that runs statements, and waits at a step."""
    given = {**serve.settings, "STATEMENT_STEP": step, "STATEMENT_MARK": str(serve.folder / name)}
    program = (sys.executable, "-m", "tests.harness.results.paused") if step else serve.program
    return Replica(name, serve.folder, given, "", ("worker", "--statements"), program)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at(serve: Replica, url: str, folder: Path, step: str) -> None:
    client = StatementClient(serve.address, serve.token)
    asked = client.submit(QUERY, wait_seconds=0)
    _kill_worker_at(step, serve, folder / f"once-{step}")
    with replicas(worker(serve, f"other-{step}")):
        done = client.finished(client.get(asked["id"]))
        assert _ids(client, done) == IDS and done["rows"] == ROWS
    with open_metastore(url) as store:
        results = Results(str(folder / "results"))
        found = store.statements.get(done["id"])
        assert found is not None and found.attempts == (1 if step == "finished" else 2)
        Expiry(store, results, 30).look()
        assert results.statements()[done["id"]] == {found.fencing_token}
        store.statements.discard(done["id"])
        Expiry(store, results, 30).look()
        assert done["id"] not in results.statements()


@pytest.mark.parametrize("step", [step for step in STEPS if step != "finished"])
def test_killed_twice_at(serve: Replica, url: str, folder: Path, step: str) -> None:
    client = StatementClient(serve.address, serve.token)
    asked = client.submit(QUERY, wait_seconds=0)
    for number in range(2):
        _kill_worker_at(step, serve, folder / f"twice-{step}-{number}")
    with replicas(worker(serve, f"third-{step}")):
        with pytest.raises(CacheManagerError, match="OWNER_LOST"):
            client.finished(client.get(asked["id"]))
    with open_metastore(url) as store:
        results = Results(str(folder / "results"))
        Expiry(store, results, 30).look()
        assert asked["id"] not in results.statements()


@pytest.mark.parametrize("step", STEPS)
def test_the_service_is_killed_twice_at(serve: Replica, folder: Path, step: str) -> None:
    client = StatementClient(serve.address, serve.token)
    mark = folder / f"service-{step}"
    asked = client.submit(QUERY, wait_seconds=0)
    with replicas(worker(serve, mark.name, step)):
        until(mark.exists, 120, f"it is {step}")
        for _ in range(2):
            _kill_service(serve)
        mark.with_name(f"{mark.name}.go").touch()
        assert _ids(client, client.finished(client.get(asked["id"]))) == IDS


def test_the_service_is_killed_twice_while_it_sends(serve: Replica) -> None:
    client = StatementClient(serve.address, serve.token)
    rows, ids = 20 * ROWS, []
    with replicas(worker(serve, "sending")):
        done = client.finished(client.submit(f"SELECT id FROM range({rows}) ORDER BY id"))
        for number, batch in enumerate(client.batches(done["id"])):
            ids += batch.column(0).to_pylist()
            if number < 2:
                _kill_service(serve)
    assert ids == list(range(rows))


def test_clients_that_are_killed_cost_nothing_after_their_time(
    serve: Replica, url: str, folder: Path
) -> None:
    client = StatementClient(serve.address, serve.token)
    with replicas(worker(serve, "abandoned")):
        done = client.finished(client.submit("SELECT id FROM range(9000000)", keepSeconds=3))
        for _ in range(2):
            command = (*serve.program, "query", "--statement", done["id"], "-o", "-")
            asked = {"CACHEMGR_SERVER": serve.address, "CACHEMGR_TOKEN": serve.token}
            with subprocess.Popen(
                command, env={**os.environ, **asked}, stdout=subprocess.PIPE
            ) as reader:
                assert reader.stdout is not None and reader.stdout.read(100_000)
                reader.kill()
    with open_metastore(url) as store:
        results = Results(str(folder / "results"))

        def is_gone() -> bool:
            Expiry(store, results, 30).look()
            return done["id"] not in results.statements()

        until(is_gone, 60, "its files are deleted")
        found = store.statements.get(done["id"])
        assert found is not None and found.state == StatementState.EXPIRED


def test_killed_twice_while_it_deletes(serve: Replica, url: str, folder: Path) -> None:
    client = StatementClient(serve.address, serve.token)
    with replicas(worker(serve, "kept")):
        done = client.finished(client.submit(QUERY, keepSeconds=1))
    results = Results(str(folder / "results"))
    for number in range(2):
        _kill_worker_at("expiring", serve, folder / f"expiring-{number}")
        assert done["id"] in results.statements()
    with open_metastore(url) as store:
        Expiry(store, results, 30).look()
        assert done["id"] not in results.statements()


def _kill_worker_at(step: str, serve: Replica, mark: Path) -> None:
    with replicas(worker(serve, mark.name, step)) as (paused,):
        until(mark.exists, 120, f"it is {step}")
        paused.started.kill()


def _kill_service(serve: Replica) -> None:
    serve.started.kill()
    serve.start()
    until(serve.ready, 120, "the service is ready")


def _ids(client: StatementClient, done: Statement) -> list[int]:
    return [n for b in client.batches(done["id"]) for n in b.column(0).to_pylist()]


def test_what_nobody_ran_waits_for_whoever_comes(serve: Replica) -> None:
    client = StatementClient(serve.address, serve.token)
    asked = client.submit("SELECT 1 AS one", wait_seconds=0)
    serve.started.kill()
    serve.start()
    with replicas(worker(serve, "late")):
        assert client.finished(client.get(asked["id"]))["rows"] == 1


def test_the_steps_are_those_that_can_be_paused_at() -> None:
    from tests.harness.results.paused import PAUSED

    assert set(PAUSED) == {*STEPS, "expiring"}
