"""Replicas that stop or lose their Spark in the middle of a refresh, on PostgreSQL. The
lease lasts longer than the tests wait: whatever goes on elsewhere was handed over."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.records import RefreshRunRecord
from cachemgr.roles import Role
from cachemgr.vocabulary import RunState
from tests.harness.chaos.judge import read_log
from tests.harness.chaos.stages import StageTail
from tests.processes import Replica, replica_settings, replicas, until

pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.slow]
# Some seconds of work for one core.
HEAVY = "SELECT grp, MAX(md5(repeat(text, 3000))) AS digest FROM words GROUP BY grp"
LEASE_SECONDS = 300
WAIT_SECONDS = 180.0


@dataclass
class Pair:
    """Two replicas, of which only the first has Spark at the beginning."""

    first: Replica
    second: Replica
    store: Metastore
    cache_id: str

    def refreshing(self) -> str:
        """Ask for a refresh, and wait until the first writes; the run's id."""
        asked = self.first.client.post("/api/v1/caches/digests/refreshes")
        assert asked.status_code == 202, asked.text
        refresh_id: str = asked.json()["id"]
        tail = StageTail(self.first.started.log)
        until(
            lambda: tail.now() == (refresh_id, "writing"),
            WAIT_SECONDS,
            "the first writes",
            every=0.01,
        )
        return refresh_id

    def runs(self) -> tuple[RefreshRunRecord, ...]:
        """The cache's refreshes, oldest first."""
        return tuple(reversed(self.store.refreshes.of(self.cache_id)))

    def until_published(self) -> RefreshRunRecord:
        """The last run, once it is published."""
        until(lambda: self.runs()[-1].state is RunState.PUBLISHED, WAIT_SECONDS, "it is published")
        return self.runs()[-1]

    def commits(self) -> list[str]:
        """Refresh ids of the commits that hold rows."""
        cache = self.store.caches.get(self.cache_id)
        assert cache is not None
        return [str(c.stamp["refresh_id"]) for c in read_log(cache.location) if c.is_data]


@pytest.fixture
def pair(request, spark, postgres_url: str, tmp_path: Path) -> Iterator[Pair]:
    """The first replica stops with the grace that the test names."""
    words = spark.range(0, 60_000, 1, 1)
    words = words.selectExpr("id % 7 AS grp", "concat('word ', id, ' of many') AS text")
    words.write.format("delta").save(str(tmp_path / "words"))
    init = [f"CREATE TABLE words USING delta LOCATION '{tmp_path / 'words'}'"]
    with open_metastore(postgres_url) as store:
        _, token = store.tokens.create("ann", Role.OPERATOR)
        made = []
        for name, grace in (("first", request.param), ("second", 60)):
            settings = replica_settings(
                postgres_url,
                tmp_path,
                init,
                conf={"spark.sql.warehouse.dir": str(tmp_path / f"warehouse-{name}")},
                lease_seconds=str(LEASE_SECONDS),
                stop_grace_seconds=str(grace),
                log_level="DEBUG",
            )
            made.append(Replica(name, tmp_path, settings, token))
        first, second = made
        with replicas(first):
            until(first.ready, WAIT_SECONDS, "the first answers")
            ddl = f"CREATE RELATIONAL CACHE digests AS {HEAVY}"
            answer = first.client.post("/api/v1/caches", json={"ddl": ddl})
            assert answer.status_code == 201, answer.text
            try:
                yield Pair(first, second, store, answer.json()["id"])
            finally:
                second.close()


@pytest.mark.slow
@pytest.mark.parametrize("pair", [120], indirect=True)
def test_what_runs_may_finish(pair: Pair):
    refresh_id = pair.refreshing()
    assert pair.first.started.stop(150) == 0
    (run,) = pair.runs()
    assert (run.id, run.state) == (refresh_id, RunState.PUBLISHED)
    assert pair.commits() == [refresh_id] and pair.store.queue.waiting() == ()


@pytest.mark.parametrize("pair", [0], indirect=True)
def test_what_may_not_finish_is_handed_over(pair: Pair):
    refresh_id = pair.refreshing()
    began = time.monotonic()
    assert pair.first.started.stop(60) == 0
    assert time.monotonic() - began < 30
    (lost,) = pair.runs()
    assert (lost.id, lost.state) == (refresh_id, RunState.SUPERSEDED)
    assert "handed over" in lost.error
    pair.second.start()
    taken = pair.until_published()
    assert taken.fencing_token == lost.fencing_token + 1
    assert len(set(pair.commits())) == len(pair.commits())
    assert taken.requested_by == "ann"


@pytest.mark.slow
@pytest.mark.parametrize("pair", [60], indirect=True)
def test_a_replica_without_its_jvm_hands_over_and_ends(pair: Pair):
    """As after the JVM ran out of memory: the refresh is no failure of the cache."""
    pair.second.start()
    refresh_id = pair.refreshing()
    process = pair.first.started.process
    for child in psutil.Process(process.pid).children(recursive=True):
        if "java" in child.name():
            child.send_signal(signal.SIGKILL)
    assert process.wait(60) == 1
    assert "SPARK_LOST" in pair.first.started.text()
    taken = pair.until_published()
    lost = next(run for run in pair.runs() if run.id == refresh_id)
    assert lost.state is RunState.SUPERSEDED and "handed over" in lost.error
    assert taken.fencing_token == lost.fencing_token + 1
    schedule = pair.store.schedules.of(pair.cache_id)
    assert schedule is not None and schedule.failures == 0
