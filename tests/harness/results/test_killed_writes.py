"""A process that runs statements is killed at each step of one that writes; so are the service and
the client meanwhile: it is written once or not at all, and what is told of it is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cachemgr.errors import CacheManagerError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.statement_records import commit_mark
from cachemgr.results.client import StatementClient
from cachemgr.roles import Role
from tests.processes import CACHEMGR, ROOT, Replica, replica_settings, replicas, until

# the step, how it ends once another process runs, how many commits there are of it
STEPS: dict[str, tuple[str, int]] = {
    "taken": ("FINISHED", 1),
    "analysed": ("FINISHED", 1),
    "handed_over": ("UNKNOWN", 0),
    "committed": ("FINISHED", 1),
    "named": ("FINISHED", 1),
    "finished": ("FINISHED", 1),
}
UPDATE = "UPDATE t SET n = n + 1"
# some seconds of it
SLOW = (
    "INSERT INTO t SELECT sum(hash(a.id, b.id)), {n} FROM range(0, 2500, 1, 2) a CROSS JOIN "
    "range(2500) b"
)


@dataclass
class World:
    """A service, and the log of the one table that is written to."""

    serve: Replica
    url: str
    folder: Path

    def client(self) -> StatementClient:
        return StatementClient(self.serve.address, self.serve.token)

    def commits(self, statement_id: str) -> list[int]:
        """The versions of the table that a statement has made."""
        found = []
        for file in sorted((self.folder / "t" / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            said = [a["commitInfo"].get("userMetadata") for a in actions if "commitInfo" in a]
            if commit_mark(statement_id) in said:
                found.append(int(file.stem))
        return found

    def worker(self, name: str, step: str = "") -> Replica:
        """A process that runs statements, and waits at a step."""
        mark = {"STATEMENT_STEP": step, "STATEMENT_MARK": str(self.folder / name)}
        module = (sys.executable, "-m", "tests.harness.results.paused")
        program = module if step else self.serve.program
        given = {**self.serve.settings, **mark}
        return Replica(name, self.folder, given, "", ("worker", "--statements"), program)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("killed-writes")
    url = f"sqlite:///{folder / 'metastore.db'}"
    with open_metastore(url) as store:
        token = store.tokens.create("ann", Role.VIEWER)[1]
        store.select_grants.add(f"file:{folder}/t", "ann", "t")
    given = replica_settings(
        url,
        folder,
        [f"CREATE TABLE t (id BIGINT, n INT) USING delta LOCATION '{folder}/t'"],
        master="local[2]",
        results_location=str(folder / "results"),
        lease_seconds="3",
        statement_writers="bob, ann",
    )
    serve = Replica("serve", folder, given, token, ("serve", "--no-scheduler"))
    made = World(serve, url, folder)
    with replicas(serve):
        until(serve.ready, 120, "the service is ready")
        with replicas(made.worker("first")), made.client() as client:
            client.finished(client.submit("INSERT INTO t VALUES (1, 0)"))
        yield made


def over(client: StatementClient, statement_id: str) -> dict[str, Any]:
    """A statement once it is over."""
    found = client.get(statement_id)
    while found["state"] in ("PENDING", "RUNNING"):
        found = client.get(statement_id, wait_seconds=30)
    return dict(found)


@pytest.mark.parametrize("step", STEPS)
def test_its_process_is_killed_at(world: World, step: str) -> None:
    state, count = STEPS[step]
    client, mark, key = world.client(), world.folder / f"paused-{step}", f"key-{step}"
    with replicas(world.worker(mark.name, step)) as (paused,):
        asked = client.submit(UPDATE, key=key, wait_seconds=0)
        until(mark.exists, 120, f"it is {step}")
        paused.started.kill()
    with replicas(world.worker(f"other-{step}")):
        found = over(client, asked["id"])
        if state == "FINISHED":  # at once, or once its table was looked at
            until(lambda: client.get(asked["id"])["state"] == state, 60, "it is settled")
        else:  # as long as one likes to wait
            time.sleep(5)
        found = dict(client.get(asked["id"]))
        assert client.submit(UPDATE, key=key)["id"] == asked["id"], "it is sent again"
        commits = world.commits(asked["id"])
        assert (found["state"], len(commits)) == (state, count), found
        assert found["written"] == {"table": "t", "version": commits[0] if commits else None}
        if state == "UNKNOWN":
            assert commit_mark(asked["id"]) in found["error"]["message"]
            with pytest.raises(CacheManagerError, match="OWNER_LOST"):
                client.finished(found)
            return
        rows = [row for b in client.batches(asked["id"]) for row in b.to_pylist()]
        known = step in ("taken", "analysed", "finished")
        assert rows == ([{"num_affected_rows": 1}] if known else [])
    with open_metastore(world.url) as store:
        kept = store.statements.get(asked["id"])
        assert kept is not None and kept.attempts == (2 if step in ("taken", "analysed") else 1)


def test_the_service_is_killed_while_it_is_asked(world: World) -> None:
    text = SLOW.format(n=2)
    with replicas(world.worker("service-killed")), ThreadPoolExecutor(1) as pool:
        client = world.client()
        asked = pool.submit(client.submit, text)
        until(lambda: running(world, text), 60, "it runs")
        world.serve.started.kill()
        time.sleep(2)
        world.serve.start()
        found = client.finished(asked.result(120))
    assert len(world.commits(found["id"])) == 1
    assert sum(s["sql"] == text for s in listed(world)) == 1


def test_the_client_is_killed_and_sends_it_again(world: World) -> None:
    text = SLOW.format(n=3)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "CACHEMGR_SERVER": world.serve.address,
        "CACHEMGR_TOKEN": world.serve.token,
    }
    command = [*CACHEMGR, "query", text, "--key", "nightly"]
    with replicas(world.worker("client-killed")):
        first = subprocess.Popen(command, env=environment)
        until(lambda: running(world, text), 60, "it runs")
        first.kill()
        first.wait()
        for _ in range(2):
            again = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert again.returncode == 0, again.stderr
            assert "of t is written" in again.stderr
    (one,) = [s for s in listed(world) if s["sql"] == text]
    assert len(world.commits(one["id"])) == 1


def listed(world: World) -> list[dict[str, Any]]:
    answer = world.serve.client.get("/api/v1/statements", params={"pageSize": 100})
    return list(answer.json()["statements"])


def running(world: World, text: str) -> bool:
    return any(s["sql"] == text and s["state"] == "RUNNING" for s in listed(world))


def test_the_steps_are_those_that_can_be_paused_at() -> None:
    from tests.harness.results.paused import WRITES

    assert set(WRITES) == set(STEPS)
