"""What works with the base alone, and what says which extra it needs."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cachemgr.cli import main
from cachemgr.extras import EXTRAS as MODULES
from cachemgr.installation import install_command, install_words
from tests.commands import BASE, CONNECTED, FILES, HERE, NEEDING, OFFLINE, WORDS, names_of
from tests.installation import EXTRAS, PROJECT, Done, installed_by, modules_of, run_with

CACHE = {
    "namespace": "default", "name": "by_day", "status": {"combined": "OK"}, "refreshMode": "AUTO",
    "trigger": {"kind": "ON_DEMAND"}, "freshness": "STRICT", "maxStalenessSeconds": None,
    "published": {"rows": 3, "finishedAt": None}, "nextDueAt": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("extras")
    for name, text in FILES.items():
        (found / name).write_text(text)
    return found


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """A service that has one cache to list, and does nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            listed = self.command == "GET" and self.path.startswith("/api/v1/caches?")
            found: dict[str, Any] = {"caches": [CACHE], "nextPageToken": None}
            lost = {"error": {"type": "CACHE_NOT_FOUND", "message": "asked the service"}}
            body = json.dumps(found if listed else lost).encode()
            self.send_response(200 if listed else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_each_command_is_here() -> None:
    here = [*CONNECTED, *NEEDING, *BASE]
    assert sorted(here) == sorted(names_of(typer.main.get_command(main)))


def test_the_extras_of_the_program_are_those_of_pyproject() -> None:
    brought = {
        extra: {
            module
            for text in requirements
            for module in modules_of()[canonicalize_name(Requirement(text).name)]
        }
        for extra, requirements in EXTRAS.items()
    }
    assert {extra: set(modules) for extra, modules in MODULES.items()} == brought


def test_all_and_dev_bring_every_extra() -> None:
    name, optional = PROJECT["name"], PROJECT["optional-dependencies"]
    [every] = map(Requirement, optional["all"])
    assert every.name == name and every.extras == set(EXTRAS)
    assert f"{name}[all]" in optional["dev"]


@dataclass(frozen=True)
class Lacking:
    """What commands do where some extras are not installed."""

    extras: tuple[str, ...]
    done: Mapping[str, Done]

    def refuses(self, name: str, needs: Iterable[str]) -> bool:
        """Whether a command says how to install those of its extras that are missing."""
        line = install_command(*(e for e in needs if e in self.extras))
        done = self.done[name]
        said = done.stderr.removeprefix("error: ").strip()
        return done.code == 1 and said.startswith("[EXTRA_MISSING] ") and said.endswith(line)


@pytest.fixture(
    scope="module",
    params=[tuple(EXTRAS), *((extra,) for extra in EXTRAS)],
    ids=lambda extras: "without " + " ".join(extras),
)
def lacking(request: pytest.FixtureRequest, folder: Path, service: str) -> Lacking:
    extras: tuple[str, ...] = request.param
    url = f"sqlite:///{folder / '-'.join(extras)}.db"
    on_metastore = ["--metastore", url]
    commands: dict[str, list[str] | str] = {
        name: [*name.split(), *WORDS.get(name, []), *([] if name == "jar" else on_metastore)]
        for name in BASE
    }
    for name, words in CONNECTED.items():
        command = [*name.split(), *shlex.split(words)]
        commands[f"{name} there"] = [*command, "--server", service]
        if set(HERE).intersection(extras):
            commands[f"{name} here"] = [*command, *on_metastore]
    for name, needs in NEEDING.items():
        if set(needs).intersection(extras):
            commands[name] = [name]
    commands |= {
        "help": ["--help"],
        "offline": ["explain", *OFFLINE],
        "on PostgreSQL": ["db", "current", "--metastore", "postgresql://ann:secret@127.0.0.1:9/x"],
        "import": "import cachemgr, matcher.sql.reader, scheduler.triggers",
        "enable": "import cachemgr; cachemgr.enable",
    }
    if "spark" in extras:  # else it would be started
        commands["doctor with Spark"] = ["doctor", *on_metastore]
        commands["s3a"] = ["db", "check", *on_metastore, "--location", "s3a://bucket/caches"]
    commands |= {f"import {m}": f"import {m}" for e in extras for m in MODULES[e]}
    installed = tuple(extra for extra in EXTRAS if extra not in extras)
    found = run_with(installed, list(commands.values()), folder)
    return Lacking(extras, dict(zip(commands, found, strict=True)))


def test_no_command_ends_in_a_trace(lacking: Lacking) -> None:
    assert {name: done.trace for name, done in lacking.done.items() if done.trace} == {}
    assert [n for n, done in lacking.done.items() if "INTERNAL_ERROR" in done.stderr] == []


def test_nothing_of_a_missing_extra_can_be_imported(lacking: Lacking) -> None:
    base = {m for name in installed_by(PROJECT["dependencies"]) for m in modules_of().get(name, ())}
    for extra in lacking.extras:
        hidden = set(MODULES[extra]) - base
        assert hidden and all(
            lacking.done[f"import {module}"].stderr.startswith("No module named")
            for module in hidden
        )


def test_the_base_is_enough(lacking: Lacking) -> None:
    for name, said in BASE.items():
        done = lacking.done[name]
        assert said in done.stdout + done.stderr, (name, done)
        assert "EXTRA_MISSING" not in done.stderr
    assert "Relational caches for Spark" in lacking.done["help"].stdout
    assert lacking.done["offline"].stdout.startswith("hit: by_region")
    assert lacking.done["import"].code == 0


def test_the_base_is_enough_for_commands_on_a_service(lacking: Lacking) -> None:
    listed = lacking.done["cache list there"]
    assert listed.code == 0 and "by_day" in listed.stdout
    others = {n: lacking.done[f"{n} there"] for n in CONNECTED if n != "cache list"}
    assert {n: d for n, d in others.items() if "asked the service" not in d.stderr} == {}


def test_a_command_names_the_extra_that_it_lacks(lacking: Lacking) -> None:
    needs = {**{f"{name} here": HERE for name in CONNECTED}, **NEEDING}
    refused = {n: e for n, e in needs.items() if set(e).intersection(lacking.extras)}
    assert [n for n, e in refused.items() if not lacking.refuses(n, e)] == []


def test_a_database_names_the_extra_of_its_driver(lacking: Lacking) -> None:
    assert lacking.refuses("on PostgreSQL", ("postgres",)) == ("postgres" in lacking.extras)
    assert "secret" not in lacking.done["on PostgreSQL"].stderr


def test_a_function_names_the_extra_that_it_lacks(lacking: Lacking) -> None:
    assert lacking.refuses("enable", ("spark",)) == ("spark" in lacking.extras)
    assert (lacking.done["enable"].code == 0) == ("spark" not in lacking.extras)


def test_the_doctor_says_how_to_install_what_a_service_lacks(lacking: Lacking) -> None:
    told = lacking.done["doctor"].stdout
    missing = ",".join(e for e in HERE if e in lacking.extras)
    words = shlex.join(install_words(*missing.split(",")))
    assert (f"-m pip {words}" in told) == bool(missing)
    if "spark" in lacking.extras:
        told = lacking.done["doctor with Spark"].stdout
        assert lacking.done["doctor with Spark"].code == 1 and "it needs packages" in told


def test_storage_elsewhere_names_the_extra_that_it_lacks(lacking: Lacking) -> None:
    assert "spark" not in lacking.extras or lacking.refuses("s3a", ("spark",))
