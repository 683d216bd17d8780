"""The release of this tree, and environments with it, each made once for all processes of a run."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.installed.environments import Installed, install
from tests.processes import ROOT, postgres_server

Shared = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def release(shared: Shared) -> Path:
    """What `make dist` makes of it."""
    return shared("release", build)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Shared:
    """A folder that the first process which wants it makes."""
    base = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        base = base.parent  # which all processes have

    def once(name: str, make: Callable[[Path], None]) -> Path:
        done = base / f"{name}.made"
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                make(base / name)
                done.touch()
        return base / name

    return once


@pytest.fixture(scope="session")
def wheel(release: Path) -> Path:
    """Its wheel."""
    (found,) = release.glob("*.whl")
    return found


def build(folder: Path) -> None:
    """Build the release."""
    command = [sys.executable, "-m", "tests.release", str(folder)]
    # the time of a commit that may be made while the tests run
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def environment(shared: Shared, wheel: Path) -> Callable[..., Installed]:
    """An environment with these extras, and the Spark of this version if they bring one."""

    def of(*extras: str, spark: str = "") -> Installed:
        name = "-".join(["with", *extras, spark])
        folder = shared(name, lambda new: install(wheel, new, *extras, spark=spark))
        return Installed(folder, spark)

    return of


@pytest.fixture
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL."""
    with postgres_server() as url:
        yield url
