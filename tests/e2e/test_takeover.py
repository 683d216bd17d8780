"""The whole story on real PostgreSQL and a Spark standalone cluster: two replicas, a cache made by
REST, a session of another process that hits it, rows that arrive, and a replica that is killed
in the middle of a refresh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cachemgr.metastore import Metastore, open_metastore
from cachemgr.roles import Role
from cachemgr.vocabulary import RunState
from tests import watchdog
from tests.harness.chaos.judge import read_log
from tests.harness.chaos.stages import StageTail
from tests.processes import (
    ROOT,
    SMALL_JVM,
    SMALL_SPARK,
    Replica,
    replica_settings,
    replicas,
    spark_cluster,
    until,
)

pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.slow]
QUERY = "SELECT region, SUM(amount) AS total FROM sales GROUP BY region"
DDL = f"CREATE RELATIONAL CACHE totals REFRESH ON COMMIT AUTO STRICT AS {QUERY}"
CLUSTER_CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.executor.extraJavaOptions": SMALL_JVM,
}
# A user's program: it reads one query a line and answers with what it got and how.
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import cachemgr
conf, table = json.loads(sys.argv[1]), sys.argv[2]
builder = SparkSession.builder.master("local[1]").appName("user")
for key, value in conf.items():
    builder = builder.config(key, value)
spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
spark.sql(f"CREATE TABLE sales USING delta LOCATION '{table}'")
cachemgr.enable(spark)
print("READY", flush=True)
for line in sys.stdin:
    before = cachemgr.counters(spark).get("hits", 0)
    rows = [list(row) for row in spark.sql(line).collect()]
    hit = cachemgr.counters(spark).get("hits", 0) > before
    print("ANSWER " + json.dumps({"rows": rows, "hit": hit}), flush=True)
"""


class User:
    """A program of its own, with the hook, that is asked queries."""

    def __init__(self, folder: Path, conf: dict[str, str]) -> None:
        shown = {**SMALL_SPARK, **conf}
        shown["spark.sql.warehouse.dir"] = str(folder / "user-warehouse")
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
        with (folder / "user.log").open("w") as log:
            self.process = subprocess.Popen(
                [*command, json.dumps(shown), str(folder / "sales")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
        watchdog.watch_group(self.process.pid)

    def ready(self) -> None:
        """Wait until it can be asked."""
        self._line("READY")

    def ask(self, query: str) -> tuple[set[tuple[Any, ...]], bool]:
        """The rows of a query, and whether a cache answered."""
        assert self.process.stdin is not None
        self.process.stdin.write(query + "\n")
        self.process.stdin.flush()
        answer = json.loads(self._line("ANSWER "))
        return {tuple(row) for row in answer["rows"]}, answer["hit"]

    def _line(self, start: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(start):
                return line.removeprefix(start)
        raise AssertionError("the user's program ended")

    def kill(self) -> None:
        """End it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        watchdog.forget(self.process.pid)


@dataclass
class Stage:
    """Two replicas, a user, and the metastore."""

    pair: tuple[Replica, Replica]
    user: User
    store: Metastore
    spark: Any
    folder: Path

    def append(self, *rows: tuple[str | None, int]) -> None:
        """Commit rows to the fact."""
        frame = self.spark.createDataFrame(list(rows), "region string, amount bigint")
        frame.write.format("delta").mode("append").save(str(self.folder / "sales"))

    def until_hit(self, seconds: float) -> set[tuple[Any, ...]]:
        """Ask until a cache answers; its rows."""
        end = time.monotonic() + seconds
        while True:
            rows, hit = self.user.ask(QUERY)
            if hit:
                return rows
            assert time.monotonic() < end, self._logs()
            time.sleep(0.5)

    def _logs(self) -> str:
        return "\n".join(r.started.text()[-3000:] for r in self.pair)


def make_stage(
    stack: ExitStack, spark: Any, url: str, folder: Path, master: str, lease_seconds: int
) -> Stage:
    """Start everything; `master` is what both replicas refresh on."""
    rows = [("north", 1), ("north", 2), ("south", 40), (None, 5)]
    frame = spark.createDataFrame(rows, "region string, amount bigint")
    frame.write.format("delta").save(str(folder / "sales"))
    store = stack.enter_context(open_metastore(url))
    _, token = store.tokens.create("ann", Role.OPERATOR)
    init = [f"CREATE TABLE sales USING delta LOCATION '{folder / 'sales'}'"]
    pair = []
    for name in ("one", "two"):
        settings = replica_settings(
            url,
            folder,
            init,
            master=master,
            conf={
                **(CLUSTER_CONF if master.startswith("spark:") else {}),
                "spark.sql.warehouse.dir": str(folder / f"warehouse-{name}"),
            },
            lease_seconds=str(lease_seconds),
            log_level="DEBUG",
        )
        pair.append(Replica(name, folder, settings, token))
    first, second = stack.enter_context(replicas(*pair))
    # It knows the service alone, and starts while nobody answers yet.
    conf = {
        "spark.cachemgr.freshHits": "false",  # what is looked at is who refreshes
        "spark.cachemgr.url": f"http://127.0.0.1:{first.port},http://127.0.0.1:{second.port}",
        "spark.cachemgr.token": token,
    }
    user = User(folder, conf)
    stack.callback(user.kill)
    for replica in (first, second):
        until(replica.ready, 90, f"{replica.name} answers")
    return Stage((first, second), user, store, spark, folder)


def tell_the_story(stage: Stage) -> None:
    """Create, hit, append, miss, hit again, kill, take over."""
    client = stage.pair[0].client
    made = client.post("/api/v1/caches", json={"ddl": DDL})
    assert made.status_code == 201, made.text
    before = {("north", 3), ("south", 40), (None, 5)}
    stage.user.ready()
    assert stage.until_hit(120) == before

    stage.append(("south", 2), ("west", 5))
    after = {("north", 3), ("south", 42), ("west", 5), (None, 5)}
    rows, hit = stage.user.ask(QUERY)
    assert rows == after and not hit, "STRICT: stale at once, and the tables are read"
    assert stage.until_hit(120) == after, "fresh again by itself"

    killed, refresh_id = _kill_in_the_middle(stage)
    dead = time.time()
    survivor = next(r for r in stage.pair if r is not killed)
    last = {("north", 3), ("south", 42), ("west", 5), ("east", 7), (None, 5)}
    rows, hit = stage.user.ask(QUERY)
    assert rows == last, "whatever happens to replicas, the rows are right"
    assert stage.until_hit(120) == last
    cache = stage.store.caches.named("default", "totals")
    assert cache is not None
    runs = stage.store.refreshes.of(cache.id)
    lost = next(run for run in runs if run.id == refresh_id)
    assert lost.state is RunState.SUPERSEDED
    taken = next(run for run in runs if run.fencing_token == lost.fencing_token + 1)
    assert taken.state is RunState.PUBLISHED
    assert taken.holder.endswith(f":{survivor.started.process.pid}")
    assert taken.started_at.timestamp() - dead < 30

    commits = [c for c in read_log(cache.location) if c.is_data]
    ids = [c.stamp["refresh_id"] for c in commits]
    assert len(ids) == len(set(ids)), "one commit for each refresh"
    published = [run for run in runs if run.state is RunState.PUBLISHED]
    for run in published:
        (commit,) = [c for c in commits if c.version == run.cache_version]
        assert commit.stamp["parent_version"] == commit.version - 1
        adopted = run.mode == "ADOPT"
        assert commit.stamp["refresh_id"] == (refresh_id if adopted else run.id)
    assert len({run.cache_version for run in published}) == len(published)


def _kill_in_the_middle(stage: Stage) -> tuple[Replica, str]:
    """Append rows, and SIGKILL the replica that refreshes when it is about to write."""
    with ExitStack() as stack:
        tails = []
        for replica in stage.pair:
            tail = StageTail(replica.started.log)
            tail.catch_up()
            tails.append((replica, tail))
            tail.start()
            stack.callback(tail.stop)
        stage.append(("east", 7))
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for replica, tail in tails:
                running = tail.now()
                if running is not None and running[1] == "writing":
                    replica.started.kill()
                    return replica, running[0]
            time.sleep(0.005)
    raise AssertionError("no replica came to write")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def test_the_survivor_takes_over(spark, postgres_url: str, tmp_path: Path, stack: ExitStack):
    """The short form: each replica has its own local Spark."""
    tell_the_story(make_stage(stack, spark, postgres_url, tmp_path, "local[1]", lease_seconds=6))


@pytest.mark.slow
def test_the_whole_story_on_a_cluster(spark, postgres_url: str, tmp_path: Path, stack: ExitStack):
    """With the lease that replicas have by default: taken over within 30 s."""
    cluster = stack.enter_context(spark_cluster(tmp_path))
    stage = make_stage(stack, spark, postgres_url, tmp_path, cluster.url, lease_seconds=20)
    tell_the_story(stage)
    assert len(cluster.state()["activeapps"]) >= 1
