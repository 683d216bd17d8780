"""`make chaos MINUTES=…`: replicas under random SIGKILL and SIGSTOP while they keep caches fresh,
base tables that change each second, and a client that checks every answer.

Exit code 1 if a refresh was lost or published twice, an answer was torn, or anything else was not
as it must be.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cachemgr.metastore import Metastore, open_metastore
from cachemgr.roles import Role
from tests import flaky
from tests.harness.chaos.client import Asked, Client
from tests.harness.chaos.damage import KINDS, Damages, has_files
from tests.harness.chaos.faults import KILL, Faults, Victim
from tests.harness.chaos.judge import judge
from tests.harness.chaos.report import Outcome
from tests.harness.chaos.stages import StageTail
from tests.harness.chaos.storage import Storage
from tests.harness.chaos.world import (
    CLOCK_AHEAD,
    SCHEMA,
    BaseTable,
    BaseWriter,
    CacheSpec,
    cache_specs,
)
from tests.processes import (
    SMALL_SPARK,
    Replica,
    exit_on_sigterm,
    postgres_server,
    replica_settings,
    until,
)

CLIENT = "client"
LEASE_SECONDS = 5.0
START_SECONDS = 120.0
# After a kill of its JVM alone a replica has to notice, hand over and end by itself.
END_SECONDS = 90.0
# Damaged files are looked for once a minute, and a refresh follows.
MEND_SECONDS = 150.0


@dataclass(frozen=True)
class Options:
    """How much chaos.

    Args:
        minutes: How long faults happen.
        seed: Of what is random.
        replicas: How many replicas.
        caches: How many caches.
        tables: Over how many base tables.
        kill_seconds: Mean seconds between kills.
        stop_seconds: Mean seconds between stops past the lease.
        settle_seconds: How long everything may take to be up to date after the last fault.
        pause: Seconds between two queries of the client.
    """

    minutes: float = 10.0
    seed: int = 1
    replicas: int = 3
    caches: int = 20
    tables: int = 4
    kill_seconds: float = 17.0
    stop_seconds: float = 48.0
    settle_seconds: float = 180.0
    pause: float = 0.5


@dataclass
class Supervisor(threading.Thread):
    """Starts replicas again that have ended, as an init system would."""

    victims: list[Victim]
    seed: int
    restarts: int = 0
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(name="chaos-supervisor", daemon=True)
        self._random = random.Random(self.seed)
        self._over = threading.Event()

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        """Look after the replicas until told to stop."""
        while not self._over.wait(0.2):
            for victim in self.victims:
                if not victim.replica.started.alive and victim.lock.acquire(blocking=False):
                    try:
                        self._restart(victim)
                    finally:
                        victim.lock.release()

    def stop(self) -> None:
        """Start nothing more."""
        self._over.set()
        self.join()

    def _restart(self, victim: Victim) -> None:
        if self._over.wait(self._random.uniform(0.2, 2.0)):
            return
        # a JVM that outlived its Python had so long to go on; it must not stay
        victim.replica.started.kill()
        victim.tail.catch_up()
        victim.tail.forget()
        victim.replica.start()
        self.restarts += 1


def chaos(options: Options, url: str, folder: Path) -> Outcome:
    """Run it.

    Args:
        options: How much.
        url: An empty PostgreSQL database.
        folder: An empty folder.
    """
    with ExitStack() as stack:
        store = stack.enter_context(open_metastore(url))
        _, token = store.tokens.create("chaos", Role.OPERATOR)
        specs = cache_specs(options.caches, options.tables)
        parts = -(-options.caches // options.tables)
        tables = [BaseTable(f"t{i}", folder, parts) for i in range(options.tables)]
        tables[-1].ahead = CLOCK_AHEAD
        names = [CLIENT, *(f"replica-{number}" for number in range(options.replicas))]
        storage = Storage({name: flaky.Flaky(folder / f"{name}.script") for name in names})
        victims = _start_replicas(stack, options, url, folder, tables, token)
        # their Spark starts with the first statement, when the tables are there
        session = stack.enter_context(_client_session(url, folder, tables))
        began = time.monotonic()
        _create(victims[0].replica, specs, store)
        # the start of a Spark on this machine, and some first refreshes on it
        warm_up = time.monotonic() - began
        _say(f"{len(specs)} caches are refreshed once: chaos begins")
        began = time.monotonic()
        writer = BaseWriter(tables)
        client = Client(
            session,
            specs,
            {t.name: t for t in tables},
            seed=options.seed,
            pause=options.pause,
            was_away=partial(storage.was_away, CLIENT),
        )
        supervisor = Supervisor(victims, options.seed)
        faults = Faults(
            victims,
            folder / "caches",
            seed=options.seed,
            kill_seconds=options.kill_seconds,
            stop_seconds=options.stop_seconds,
            lease_seconds=LEASE_SECONDS,
        )

        def logged() -> set[str]:
            for victim in victims:
                victim.tail.catch_up()
            return set().union(*(victim.tail.asked for victim in victims))

        damages = Damages(store, specs, tables, client, storage, logged, options.seed)
        for thread in (writer, client, supervisor, faults, damages):
            thread.start()
        time.sleep(options.minutes * 60)
        damages.stop()
        faults.stop()
        writer.stop()
        seconds = time.monotonic() - began
        _say("the last fault is over: waiting for what is due")
        problems, settled = _settle(options, store, specs, tables)
        problems += _mended(damages, specs) + damages.problems
        client.stop()
        supervisor.stop()
        problems += _stop(store, victims)
        for victim in victims:
            victim.replica.close()
            victim.tail.stop()
        asked = set().union(*(victim.tail.asked for victim in victims))
        kills = {f.refresh_id: f.wall for f in faults.done if f.kind == KILL and f.refresh_id}
        return Outcome(
            seed=options.seed,
            seconds=seconds,
            settled_seconds=settled,
            replicas=options.replicas,
            caches=options.caches,
            base_commits=writer.commits,
            restarts=supervisor.restarts,
            faults=faults.done,
            asked=client.seen,
            verdict=judge(
                store,
                specs,
                asked,
                kills,
                max(60.0, 2 * warm_up),
                damages.restored,
                damages.deleted,
                storage.back,
            ),
            problems=[*problems, *_silent(client.seen, faults, damages)],
            damages=damages.done,
            away=damages.ways,
        )


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def _mended(damages: Damages, specs: list[CacheSpec]) -> list[str]:
    """Delete files when no base table moves any more: a refresh has to write them all the same."""
    chosen = [spec for spec in specs if "EVERY" in spec.trigger or "COMMIT" in spec.trigger][:2]
    for spec in chosen:
        damages.delete_files(spec)
    try:
        for spec in chosen:
            what = f"the files of {spec.name} are written anew"
            until(partial(has_files, damages.store, spec), MEND_SECONDS, what, every=1.0)
    except AssertionError as error:
        return [str(error)]
    return []


def _silent(seen: Asked, faults: Faults, damages: Damages) -> list[str]:
    """What would make a run that proves nothing pass."""
    found = []
    if not seen.hits:
        found.append("no query was answered from a cache")
    if not faults.done:
        found.append("no fault happened")
    # a shorter run comes to some kinds alone
    if faults.over - faults.began > 90:
        found += [f"nothing came to: {kind}" for kind in KINDS if not damages.done[kind]]
    return found


@contextmanager
def _client_session(url: str, folder: Path, tables: list[BaseTable]) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    from cachemgr import configure_spark_with_cachemgr, enable

    builder = SparkSession.builder.master("local[1]").appName("chaos-client")
    conf = {
        **SMALL_SPARK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "client-warehouse"),
        "spark.cachemgr.metastore.url": url,
        "spark.cachemgr.location": f"{flaky.SCHEME}{folder / 'caches'}",
        **flaky.settings(folder / f"{CLIENT}.script"),
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = configure_spark_with_cachemgr(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        for table in tables:
            session.sql(f"CREATE TABLE {table.name} ({SCHEMA}) USING delta LOCATION '{table.path}'")
        enable(session)
        yield session
    finally:
        session.stop()


def _start_replicas(
    stack: ExitStack,
    options: Options,
    url: str,
    folder: Path,
    tables: list[BaseTable],
    token: str,
) -> list[Victim]:
    init = [f"CREATE TABLE {t.name} USING delta LOCATION '{t.path}'" for t in tables]
    victims = []
    for number in range(options.replicas):
        name = f"replica-{number}"
        conf = {"spark.sql.warehouse.dir": str(folder / f"warehouse-{number}")}
        conf |= flaky.settings(folder / f"{name}.script")
        settings = replica_settings(
            url,
            folder,
            init,
            conf=conf,
            location=f"{flaky.SCHEME}{folder / 'caches'}",
            lease_seconds=str(LEASE_SECONDS),
            log_level="DEBUG",
            stop_grace_seconds="10",
        )
        replica = Replica(name, folder, settings, token)
        stack.callback(replica.close)
        tail = StageTail(folder / f"{name}.log")
        victims.append(Victim(replica.start(), tail))
        tail.start()
        stack.callback(tail.stop)
    for victim in victims:
        until(victim.replica.ready, START_SECONDS, f"{victim.replica.name} answers")
    return victims


def _create(replica: Replica, specs: list[CacheSpec], store: Metastore) -> None:
    for spec in specs:
        answer = replica.client.post("/api/v1/caches", json={"ddl": spec.ddl})
        assert answer.status_code == 201, answer.text

    def first() -> bool:
        found = store.caches.matching(None)
        return sum(c.published_refresh_id is not None for c in found) == len(specs)

    until(first, START_SECONDS + 10 * len(specs), "every cache is refreshed once", every=1.0)


def _settle(
    options: Options, store: Metastore, specs: list[CacheSpec], tables: list[BaseTable]
) -> tuple[list[str], float]:
    """Wait until every cache is at its table's last version; what is not in time."""
    heads = {table.name: table.version for table in tables}
    began = time.monotonic()

    def behind() -> list[str]:
        late = []
        for spec in specs:
            cache = store.caches.named("default", spec.name)
            snapshot = None if cache is None else store.snapshots.published(cache.id)
            version = None if snapshot is None else snapshot.tables[0].version
            if version != heads[spec.table]:
                late.append(f"{spec.name} is at {version} of {heads[spec.table]}")
        return late

    while late := behind():
        if time.monotonic() - began > options.settle_seconds:
            return [f"not settled: {text}" for text in late], time.monotonic() - began
        time.sleep(1.0)
    return [], time.monotonic() - began


def _stop(store: Metastore, victims: list[Victim]) -> list[str]:
    """Let what runs come to its end and stop the replicas in good order; what did not."""
    for cache in store.caches.matching(None):
        if not cache.paused:
            store.caches.update(cache.id, cache.version, now=store.clock.now(), paused=True)
    try:
        until(lambda: not any(s.busy for s in store.schedules.all()), END_SECONDS, "all is over")
    except AssertionError as error:
        return [str(error)]
    problems = []
    for victim in victims:
        if victim.replica.started.alive:
            code = victim.replica.started.stop()
            if code != 0:
                problems.append(f"{victim.replica.name} stopped with exit code {code}")
    return problems


def main() -> int:
    """Run with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--caches", type=int, default=20)
    parser.add_argument("--kill-seconds", type=float, default=17.0)
    parser.add_argument("--stop-seconds", type=float, default=48.0)
    parser.add_argument("--out", type=Path, default=Path("build/chaos"))
    parser.add_argument("--keep", action="store_true", help="keep logs and tables in --out")
    chosen = parser.parse_args()
    options = Options(
        minutes=chosen.minutes,
        seed=chosen.seed,
        replicas=chosen.replicas,
        caches=chosen.caches,
        kill_seconds=chosen.kill_seconds,
        stop_seconds=chosen.stop_seconds,
    )
    exit_on_sigterm()
    folder = Path(tempfile.mkdtemp(prefix="cachemgr-chaos-"))
    try:
        with postgres_server() as url:
            outcome = chaos(options, url, folder)
    finally:
        chosen.out.mkdir(parents=True, exist_ok=True)
        if chosen.keep:
            shutil.copytree(folder, chosen.out / f"run-{chosen.seed}", dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    name = f"seed-{options.seed}"
    (chosen.out / f"{name}.json").write_text(json.dumps(outcome.to_json(), indent=1) + "\n")
    (chosen.out / f"{name}.txt").write_text(outcome.text())
    sys.stdout.write(outcome.text())
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
