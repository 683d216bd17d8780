"""The release of this tree, built once for all processes of a run."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests in one environment run in one process, which installs it once."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            of = getattr(item, "callspec", None)
            name = f"{item.path.stem} {sorted(of.params.items()) if of else ''}"
            item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """What `make dist` makes of it."""
    base = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        base = base.parent  # which all processes have
    folder = base / "release"
    with (base / "release.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build(folder)
    return folder


@pytest.fixture(scope="session")
def wheel(release: Path) -> Path:
    """Its wheel."""
    (found,) = release.glob("*.whl")
    return found


def build(folder: Path) -> None:
    """Build the release."""
    command = [sys.executable, "-m", "tests.release", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
