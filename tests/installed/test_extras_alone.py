"""The wheel in an environment with the base, or with one extra: each command runs, or says which
extra it needs."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cachemgr.extras import EXTRAS as MODULES
from tests.commands import BASE, CONNECTED, FILES, HERE, NEEDING, OFFLINE, WORDS
from tests.installation import PROJECT
from tests.installed.environments import SPARKS, Installed

pytestmark = [pytest.mark.slow, pytest.mark.long]
_NONE = ""


@pytest.fixture(scope="module", params=(_NONE, *MODULES))
def extra(request: pytest.FixtureRequest) -> str:
    """The one that is installed."""
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def installed(extra: str, environment: Callable[..., Installed]) -> Installed:
    extras = (extra,) if extra else ()
    return environment(*extras, spark=SPARKS["4.1"] if extra == "spark" else "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def _missing(extra: str, needs: tuple[str, ...]) -> str:
    return ",".join(each for each in needs if each != extra)


def test_each_command_runs_or_says_what_it_needs(
    installed: Installed, extra: str, folder: Path, wheel: Path
) -> None:
    url = ("--metastore", f"sqlite:///{folder / 'metastore.db'}")
    for name, said in BASE.items():  # in their order: the first makes the metastore
        words = [*name.split(), *WORDS.get(name, []), *(() if name == "jar" else url)]
        code = int(said.startswith("[") or name == "doctor")  # which finds that extras are missing
        wrote = installed.run("cachemgr", *words, folder=folder, code=code)
        assert said in wrote and "EXTRA_MISSING" not in wrote, (name, wrote)

    def refused(command: tuple[str, list[str], tuple[str, ...]]) -> str:
        name, words, needs = command
        wrote = installed.run("cachemgr", *words, folder=folder, code=1)
        line = shlex.join(["pip", "install", f"{wheel}[{_missing(extra, needs)}]"])
        right = "[EXTRA_MISSING]" in wrote and wrote.strip().endswith(line)
        return "" if right and "Traceback" not in wrote else f"{name}: {wrote}"

    lacking = [
        *((name, [*name.split(), *shlex.split(words), *url], HERE)
          for name, words in CONNECTED.items()),
        *((name, [name], needs) for name, needs in NEEDING.items() if _missing(extra, needs)),
    ]  # fmt: skip
    with ThreadPoolExecutor(2) as both:
        assert [wrong for wrong in both.map(refused, lacking) if wrong] == []


def test_a_text_is_explained_offline(installed: Installed, folder: Path) -> None:
    wrote = installed.run("cachemgr", "explain", *OFFLINE, folder=folder)
    assert wrote.startswith("hit: by_region")


def test_help_and_version(installed: Installed, folder: Path) -> None:
    assert "Relational caches for Spark" in installed.run("cachemgr", "--help", folder=folder)
    assert PROJECT["version"] in installed.run("cachemgr", "--version", folder=folder)


@pytest.mark.postgres
def test_a_metastore_in_postgresql_needs_its_extra(
    installed: Installed, extra: str, folder: Path, postgres: str
) -> None:
    has = extra == "postgres"
    on_it = ("--metastore", postgres, "--location", str(folder / "caches"))
    wrote = installed.run("cachemgr", "db", "upgrade", *on_it[:2], folder=folder, code=1 - has)
    assert ("metastore is at" in wrote) == has and ("[postgres]" in wrote) != has
    if has:
        wrote = installed.run("cachemgr", "db", "check", *on_it, folder=folder)
        assert "metastore is as described" in wrote
