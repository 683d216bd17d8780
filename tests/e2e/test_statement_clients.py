"""Statements by the command line and in Python, and what becomes of them when a process dies."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cachemgr import statements
from cachemgr.errors import CacheManagerError
from cachemgr.metastore import open_metastore
from cachemgr.roles import Role
from tests.processes import CACHEMGR, ROOT, Replica, replica_settings, replicas, until
from tests.worlds.statement_world import BIG, BY_REGION, ENDLESS, World


def test_a_query_by_the_command_line(world: World, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert world.query("SELECT * FROM big", "-o", str(out))[0] == 0
    assert pq.read_table(out).num_rows == BIG and list(tmp_path.iterdir()) == [out]
    code, _, told = world.query("SELECT 1", "-o", str(out))
    assert code == 1 and "FILE_EXISTS" in told and pq.read_table(out).num_rows == BIG
    code, _, told = world.query(f"{BY_REGION}", "-o", str(out), "--force")
    assert code == 0 and pq.read_table(out).num_rows == 4 and ".by_region" in told
    code, piped, told = world.query("SELECT id FROM big", "-o", "-", "--max-rows", "7")
    assert code == 3 and pa.ipc.open_stream(piped).read_all().num_rows == 7
    code, shown, told = world.query("SELECT 'a\\u001b[31m' AS `x`, NULL AS y")
    assert code == 0 and b"\x1b" not in shown and b"NULL" in shown
    for wrong, says in (
        (("SELECT 1", "-o", str(tmp_path / "none" / "x.parquet")), "there is no folder"),
        (("SELECT 1", "-o", str(tmp_path / "x.csv")), "--format says which of"),
        (("SELECT 1", "--statement", "s"), "leave out the SQL"),
        (("--statement", "s", "--max-rows", "3"), "leave out the SQL"),
    ):
        code, _, told = world.query(*wrong)
        assert code == 1 and says in " ".join(told.split()), told
    code, _, told = world.query("SELECT * FROM cust", who="bob")
    assert code == 1 and "SELECT_NOT_GRANTED" in told and "Traceback" not in told


def test_a_result_is_kept_for_another_time(world: World, tmp_path: Path) -> None:
    code, _, told = world.query("SELECT id FROM big", "-o", str(tmp_path / "a.arrow"), "--keep")
    (statement,) = re.findall(r"--statement\s+(\S+)", told)
    assert code == 0
    code, piped, _ = world.query("--statement", statement, "-o", "-")
    assert code == 0 and pa.ipc.open_stream(piped).read_all().num_rows == BIG


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("twice", [False, True])
def test_ctrl_c_cancels_the_query_at_the_service(
    world: World, tmp_path: Path, number: signal.Signals, twice: bool
) -> None:
    out = tmp_path / "out.parquet"
    process = world.cli("query", ENDLESS, "-o", str(out))
    with world.http() as http:

        def running() -> list[Any]:
            listed = http.get("/statements", params={"state": "RUNNING"}).json()
            return list(listed["statements"])

        until(running, 60, "it runs")
        (one,) = running()
        process.send_signal(number)
        if twice:  # as `timeout` does, which also tells the group
            time.sleep(0.01)
            process.send_signal(number)
        assert process.wait(60) == 130
        seen = http.get(f"/statements/{one['id']}", params={"waitSeconds": 60}).json()
        assert seen["state"] == "CANCELED" and not list(tmp_path.iterdir())


def test_fetch_reads_on_after_the_service_was_killed(world: World) -> None:
    query = "SELECT id, s FROM big ORDER BY id"
    asked = {"server": world.serve.address, "token": world.tokens["ann"]}
    found = []
    for number, batch in enumerate(statements.fetch(query, **asked)):
        found += batch.column("id").to_pylist()
        if number == 0:
            world.serve.started.kill()
            world.serve.start()
    assert found == list(range(BIG))
    with pytest.raises(CacheManagerError, match="SELECT_NOT_GRANTED"):
        next(statements.fetch("SELECT * FROM cust", **asked))


def test_what_a_killed_process_ran_is_run_again(world: World) -> None:
    few = "(SELECT id FROM big LIMIT 40) b"
    sums = "SELECT SUM(hash(a.id, b.id)) AS s, 1 AS one FROM big a CROSS JOIN"
    statement_id = world.submitted(f"{sums} {few}")
    world.worker.started.kill()
    world.worker.start()
    with world.client() as client:
        done = client.finished(client.get(statement_id))
        (batch,) = client.batches(statement_id)
    assert batch.num_rows == 1 and done["rows"] == 1
    runs = {p.name for p in (world.folder / "results" / statement_id).iterdir()}
    assert "2" in runs


def test_what_a_stopped_process_ran_is_run_by_another(world: World) -> None:
    statement_id = world.submitted(ENDLESS)
    assert world.worker.started.stop() == 0
    with world.http() as http:
        assert http.get(f"/statements/{statement_id}").json()["state"] == "PENDING"
        http.post(f"/statements/{statement_id}/cancel")
    world.worker.start()
    assert world.rows("SELECT 7 AS n") == [(7,)]


def test_a_statement_that_takes_all_memory_costs_its_process_alone(world: World) -> None:
    found = world.run(
        "SELECT size(collect_list(concat(a.s, b.s))) AS n FROM big a CROSS JOIN big b"
    )
    assert found["state"] == "FAILED", found
    assert found["error"]["type"] in ("SPARK_LOST", "OWNER_LOST"), found
    with world.http() as http:
        assert http.get("/statements").status_code == 200
    until(lambda: not world.worker.started.alive, 60, "its process ends")
    assert world.worker.started.process.returncode == 1
    world.worker.start()
    assert world.rows("SELECT 7 AS n") == [(7,)]


def test_where_nothing_is_configured_nothing_is_run(world: World, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    with open_metastore(url) as store:
        token = store.tokens.create("ann", Role.VIEWER)[1]
    given = replica_settings(url, tmp_path, [])
    with replicas(Replica("bare", tmp_path, given, token, ("serve", "--no-scheduler"))) as (bare,):
        until(bare.ready, 120, "it is ready")
        told = bare.client.post("/api/v1/statements", json={"sql": "SELECT 1"})
        assert (told.status_code, told.json()["error"]["type"]) == (404, "STATEMENTS_OFF")
    environment = {**os.environ, **given, "PYTHONPATH": str(ROOT)}
    refused = subprocess.run(
        [*CACHEMGR, "worker", "--statements"], env=environment, capture_output=True, check=False
    )
    assert refused.returncode == 1 and b"results_location" in refused.stderr
    shutil.rmtree(tmp_path, ignore_errors=True)
    assert json.dumps(given)
