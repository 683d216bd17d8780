"""A process that runs statements is killed at each step of one: another runs it to its end, its
rows come once, and nothing is left behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cachemgr.metastore import open_metastore
from cachemgr.results.client import StatementClient
from cachemgr.results.folders import Results
from cachemgr.roles import Role
from cachemgr.worker.expiry import Expiry
from tests.processes import Replica, replica_settings, replicas, until

STEPS = ("taken", "analysed", "writing", "written", "named", "finished")
ROWS = 30_000
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
    mark = folder / f"paused-{step}"
    with replicas(worker(serve, mark.name, step)) as (paused,):
        asked = client.submit(QUERY, wait_seconds=0)
        until(mark.exists, 120, f"it is {step}")
        paused.started.kill()
    with replicas(worker(serve, f"other-{step}")):
        done = client.finished(client.get(asked["id"]))
        ids = [n for b in client.batches(done["id"]) for n in b.column(0).to_pylist()]
    assert ids == list(range(ROWS - 1, -1, -1)) and done["rows"] == ROWS
    with open_metastore(url) as store:
        results = Results(str(folder / "results"))
        found = store.statements.get(done["id"])
        assert found is not None and found.attempts == (1 if step == "finished" else 2)
        Expiry(store, results, 30).look()
        assert results.statements()[done["id"]] == {found.fencing_token}
        store.statements.discard(done["id"])
        Expiry(store, results, 30).look()
        assert done["id"] not in results.statements()


def test_what_nobody_ran_waits_for_whoever_comes(serve: Replica) -> None:
    client = StatementClient(serve.address, serve.token)
    asked = client.submit("SELECT 1 AS one", wait_seconds=0)
    serve.started.kill()
    serve.start()
    with replicas(worker(serve, "late")):
        assert client.finished(client.get(asked["id"]))["rows"] == 1


def test_the_steps_are_those_that_can_be_paused_at() -> None:
    from tests.harness.results.paused import PAUSED

    assert set(PAUSED) == set(STEPS)
