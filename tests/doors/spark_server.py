"""Spark's own servers with our extension, as processes: no Python program of ours drives them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from cachemgr.jvm.jar import jar_for
from cachemgr.sparks import minor_of
from tests import spark_start
from tests.processes import SMALL_SPARK, Started, free_port, until

# Between statements of a script, whatever it is told to print.
_PROMPT: Final = re.compile(r"(?:\rnull *)+")
CLASS_PATH: Final = "spark.driver.extraClassPath"


def spark_home() -> Path:
    """Where the installed PySpark has its jars and scripts."""
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def reads_cache(plan: str, cache: str = "") -> bool:
    """Whether a plan that Spark shows scans a cache's files or pinned rows, or is what was computed
    from these.

    Args:
        plan: The plan.
        cache: The cache's name; any one if it is empty.
    """
    scans = f"relational_cache.{cache}" in plan
    return scans or ("LocalTableScan" in plan and "FileScan" not in plan)


def server_conf(folder: Path, **more: str) -> dict[str, str]:
    """The configuration of a server over small data.

    Args:
        folder: Where tables, caches and the metastore go.
        more: More settings of ours by their names, `_` for a dot.
    """
    jars = f"{spark_start.class_path()}:{jar_for(minor_of(version('pyspark')))}"
    return {
        **SMALL_SPARK,
        CLASS_PATH: jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,relationalcache.Extension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.cachemgr.metastore.url": f"sqlite:///{folder}/metastore.db",
        "spark.cachemgr.location": str(folder / "caches"),
        "spark.cachemgr.sidecar.python": sys.executable,
        # what a plan reads is told by the place of its files
        "spark.sql.maxMetadataStringLength": "1000",
        # other tests keep the machine busy
        "spark.cachemgr.sidecar.timeout": "5s",
        **{f"spark.cachemgr.{name.replace('_', '.')}": value for name, value in more.items()},
    }


def submit(conf: Mapping[str, str], *rest: str) -> list[str]:
    """The command that starts a main class of Spark's."""
    pairs = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    master = conf.get("spark.master", "local[2]")
    return [str(spark_home() / "bin" / "spark-submit"), "--master", master, *pairs, *rest]


def spark_sql(
    folder: Path, conf: Mapping[str, str], texts: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Statements by `spark-sql`, in a JVM of their own; rows come as lines, a tab between values.

    Args:
        folder: Its working folder.
        conf: See `server_conf`.
        texts: The statements; the first that fails ends it.
    """
    script = folder / "script.sql"
    script.write_text("".join(f"{text};\n" for text in texts))
    pairs = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    command = [str(spark_home() / "bin" / "spark-sql"), "--master", "local[2]", *pairs]
    return subprocess.run(
        [*command, "-f", str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env={**os.environ, "SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"},
    )


@dataclass(frozen=True)
class Server:
    """One JVM with a Thrift and a Connect server.

    Args:
        started: Its process.
        thrift: The port for JDBC.
        connect: The port for Spark Connect.
        folder: Its working folder.
    """

    started: Started
    thrift: int
    connect: int
    folder: Path

    def sql(self, *texts: str, user: str = "ann") -> list[list[tuple[Any, ...]]]:
        """The rows of statements in one JDBC session of their own."""
        with self.session(user) as cursor:
            found = []
            for text in texts:
                cursor.execute(text)
                found.append(cursor.fetchall() if cursor.description else [])
            return found

    @contextmanager
    def session(self, user: str = "ann") -> Iterator[Any]:
        """A cursor of the Python DBAPI client in a session of its own."""
        from pyhive import hive

        connection = hive.connect("127.0.0.1", self.thrift, username=user)
        try:
            with connection.cursor() as cursor:
                yield cursor
        finally:
            connection.close()

    def beeline(self, *texts: str, user: str = "ann") -> subprocess.CompletedProcess[str]:
        """Statements by beeline; rows come as CSV."""
        script = self.folder / "beeline.sql"
        script.write_text("".join(f"{text};\n" for text in texts))
        url = f"jdbc:hive2://127.0.0.1:{self.thrift}/"
        command = [str(spark_home() / "bin" / "beeline"), "-u", url, "-n", user]
        command += ["--silent=true", "--outputformat=csv2", "-f", str(script)]
        done = subprocess.run(command, capture_output=True, timeout=180)
        told, errors = (_PROMPT.sub("", out.decode()) for out in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(command, done.returncode, told, errors)

    def python(self) -> int:
        """The sidecar's process id; 0 while there is none."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.jvm()), "-f", "cachemgr sidecar"],
            capture_output=True,
            text=True,
        ).stdout.split()
        return int(found[0]) if found else 0

    def jvm(self) -> int:
        """The server's process id: what was started becomes it."""
        return self.started.process.pid


@contextmanager
def server(
    folder: Path,
    conf: Mapping[str, str],
    init: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Server]:
    """A Thrift and a Connect server in one JVM, ready, ended with the context.

    Args:
        folder: Its working folder.
        conf: See `server_conf`.
        init: Statements to run first.
        variables: More of its environment.
    """
    thrift, connect = free_port(), free_port()
    both = {
        **conf,
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(connect),
    }
    command = submit(
        both,
        "--class",
        "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
        "spark-internal",
        "--hiveconf",
        f"hive.server2.thrift.port={thrift}",
        "--hiveconf",
        "hive.server2.thrift.bind.host=127.0.0.1",
    )
    environment = {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1", **variables}
    started = Started.run(command, folder / "server.log", folder, environment)
    made = Server(started, thrift, connect, folder)
    try:
        until(lambda: _listens(made), 120, "the Thrift server listens", every=0.5)
        if init:
            made.sql(*init)
        yield made
    finally:
        started.kill()


@contextmanager
def connect_server(folder: Path, conf: Mapping[str, str]) -> Iterator[str]:
    """A Connect server alone in its JVM, ready, ended with the context; yields host and port.

    Args:
        folder: Its working folder.
        conf: See `server_conf`.
    """
    port = free_port()
    bound = {
        **conf,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = submit(bound, "--class", main, "spark-internal")
    environment = {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    started = Started.run(command, folder / "server.log", folder, environment)
    try:
        until(lambda: _answers(started, port), 120, "the Connect server listens", every=0.5)
        yield f"127.0.0.1:{port}"
    finally:
        started.kill()


def _listens(made: Server) -> bool:
    return _answers(made.started, made.thrift)


def _answers(started: Started, port: int) -> bool:
    import socket

    assert started.alive, started.text()[-4000:]
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
